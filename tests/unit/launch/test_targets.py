"""Targets and the pods behind them."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podwright import launch
from podwright.engines.base import Status
from podwright.engines.slurm import SlurmEngine
from podwright.launch import pods
from podwright.launch.session import MAX_ENGINES, POD_FILE, Session
from podwright.runs import Home
from podwright.spec import Refusal
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.runs.made import asked

POD = """\
name: adas
nodes: [{hosts: "d[1-4]", model: dgx-a100}]
schedulers:
  - {kind: slurm, hosts: "d[1-2]"}
  - {kind: slurm, name: night, hosts: "d[3-4]"}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_text(POD)
    return path


def test_a_pod_that_was_made_known_is_a_target(home: Home, file: Path) -> None:
    assert pods.add(home, file).name == "adas"
    assert pods.known(home) == ["adas"]
    engine, pod = Session(home).target("adas:night")
    assert isinstance(engine, SlurmEngine)
    assert pod is not None
    pods.forget(home, "adas")
    assert pods.known(home) == []


def test_a_file_is_a_target_too(home: Home, file: Path) -> None:
    engine, pod = Session(home).target(f"{file}:slurm")
    assert isinstance(engine, SlurmEngine)
    assert pod is not None
    assert pod.name == "adas"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("moon", "there is no target 'moon'"),
        ("../adas", "there is no target '../adas'"),
        ("adas", "the pod adas has 2 schedulers"),
        ("adas:day", 'the pod adas has no scheduler "day"'),
    ],
)
def test_what_is_no_target(home: Home, file: Path, target: str, words: str) -> None:
    pods.add(home, file)
    with pytest.raises(Refusal, match=re.escape(words)):
        Session(home).target(target)


def test_a_run_keeps_its_own_copy_of_the_pod(home: Home, file: Path) -> None:
    stored = home.store(file.read_bytes(), "pod.yaml")
    links = {POD_FILE.as_posix(): stored}
    folders = [home.create(asked(f"toy-{i}222", target="adas:night"), {}, links) for i in (2, 3)]
    file.unlink()
    session = Session(home)
    first, second = (session.engine_of(folder) for folder in folders)
    assert isinstance(first, SlurmEngine)
    assert first is second, "one engine asks for all runs of a pod"


def test_a_session_keeps_a_bounded_number_of_engines_and_closes_those_it_lets_go(home: Home) -> None:
    made: dict[str, FakeEngine] = {f"t{i}": FakeEngine() for i in range(MAX_ENGINES + 2)}
    session = Session(home, engines={name: (lambda engine=engine: engine) for name, engine in made.items()})
    for name in made:
        assert session.target(name)[0] is made[name]
    assert [name for name, engine in made.items() if engine.is_closed] == ["t0", "t1"]
    session.close()
    assert all(engine.is_closed for engine in made.values())


def test_one_thread_at_a_time_uses_an_engine(home: Home) -> None:
    engine = FakeEngine()
    session = Session(home, engines={"local": lambda: engine})
    session.target("local")
    order: list[str] = []

    def other() -> None:
        with session.using(engine):
            order.append("other")

    with session.using(engine):
        thread = threading.Thread(target=other)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_threads_share_a_session(home: Home) -> None:
    """Each asks for all runs of two targets; every answer is whole, whoever else is asking."""
    targets = {name: FakeEngine() for name in ("left", "right")}
    session = Session(home, engines={name: (lambda engine=engine: engine) for name, engine in targets.items()})
    for engine in targets.values():
        engine.says = Status("there")
    for index in range(8):
        home.create(asked(f"toy-{index}", target=("left", "right")[index % 2]), {}, {})
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = list(pool.map(lambda _: [record.id for record in launch.recent(session)], range(40)))
    assert {tuple(sorted(answer)) for answer in answers} == {tuple(f"toy-{index}" for index in range(8))}
