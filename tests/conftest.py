"""What all tests share: golden files, compared whole; groups that keep together; one Kubernetes for all tests."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from podwright.lab.kubernetes import KubernetesLab

# The machine may be busy with other things: a slow example is no wrong one. Nights look for new examples, days do not.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the one flag that may change golden files, so that no ordinary test run does."""
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        default=False,
        help="write what the code gives now into the golden files; review the diff",
    )


@pytest.hookimpl(trylast=True)  # after pytest-xdist has named the groups
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keeps tests of one group in one process.

    pytest-xdist 3.8 writes the group into a field of the test that pytest 9.2 does not read any more. Without it every
    process would start labs of its own.
    """
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = type(item._id).parse(grouped)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Gives `golden(path, text)`: passes when the whole file is exactly the text, and a missing file fails."""
    rewrite = bool(request.config.getoption("--rewrite-golden"))

    def compare(path: Path, text: str) -> None:
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        if not path.is_file():
            pytest.fail(f"there is no golden file {path}; make it with --rewrite-golden and review it")
        assert text == path.read_bytes().decode("utf-8"), f"differs from {path}"

    return compare


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C be felt here and by what is started here; `nohup` and a shell's background leave it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def kubernetes_cluster(pytestconfig: pytest.Config) -> Iterator[KubernetesLab]:
    """Two nodes that run containers and 140 that are played; tests that use it have the marks `labs.ON_KUBERNETES`."""
    from tests.real.labs import aloud, kubernetes_lab

    # A machine that does other things too may let a node be silent for longer than half a minute.
    with kubernetes_lab(nodes=2, virtual_nodes=140, grace_s=60, say=aloud(pytestconfig)) as lab:
        yield lab
