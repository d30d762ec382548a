"""The collective models against what was published, and against laws that hold whatever the constants are."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.design import JobPrediction, JobRequest
from podwright.design.predict import acceptance, collectives, placement
from podwright.design.predict.collectives import FAMILIES, CollectiveJob, Wires, available, chosen, estimate, wires_of
from podwright.spec import Pod, Refusal, load_pod, node_model
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "collectives"


def rows(name: str) -> list[dict[str, str]]:
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def pod(tmp_path: Path, hosts: str = "dgx[001-140]", model: str = "dgx-a100", more: str = "") -> Pod:
    path = tmp_path / "pod.yaml"
    path.write_text(f'name: adas\nnodes:\n  - {{hosts: "{hosts}", model: {model}}}\n{more}')
    return load_pod(path)


def off(model: str, nodes: int, size_bytes: int, bus_gb_s: float) -> float:
    expected = estimate(CollectiveJob(nodes, wires_of(node_model(model))), "ring", size_bytes)
    return expected.bus_gb_s / bus_gb_s - 1


def curve_errors(role: str) -> list[tuple[int, float]]:
    """Return the size and the error of every point of the published curves with this role."""
    errors = []
    for row in rows("h100-curves.csv"):
        if row["role"] != role:
            continue
        size_bytes = int(row["size_mib"]) << 20
        job = CollectiveJob(int(row["nodes"]), wires_of(node_model("dgx-h100")))
        expected = chosen(job, size_bytes)
        if row["algorithm"] != "chosen":
            expected = estimate(job, row["algorithm"], size_bytes)
        errors.append((size_bytes, expected.bus_gb_s / float(row["bus_gb_s"]) - 1))
    return errors


@pytest.mark.parametrize("row", rows("two-dgx-a100.csv"), ids=lambda row: row["size_bytes"])
def test_published_curve_of_two_nodes(row: dict[str, str]) -> None:
    assert abs(off("dgx-a100", 2, int(row["size_bytes"]), float(row["bus_gb_s"]))) <= 0.10


def test_the_stated_error_in_sample_is_the_true_one() -> None:
    errors = [abs(off("dgx-a100", 2, int(r["size_bytes"]), float(r["bus_gb_s"]))) for r in rows("two-dgx-a100.csv")]
    assert round(max(errors), 2) == collectives.RING_IN_SAMPLE_ERROR
    fitted = [abs(error) for _, error in curve_errors("fitted")]
    assert round(max(fitted), 2) == collectives.TREE_IN_SAMPLE_ERROR
    text = " ".join(collectives.VALIDATED)
    assert f"(ring, {round(max(errors) * 100)} % off in sample)" in text
    assert f"(trees, {round(max(fitted) * 100)} % in sample)" in text


def test_the_stated_error_on_curves_that_nothing_was_fitted_on_is_the_true_one() -> None:
    worst = {}
    for least_bytes in collectives.HELD_OUT_ERRORS:
        errors = [abs(error) for size_bytes, error in curve_errors("held-out") if size_bytes >= least_bytes]
        worst[least_bytes] = round(max(errors), 2)
    assert worst == collectives.HELD_OUT_ERRORS
    text = " ".join(collectives.VALIDATED)
    assert "32 % off from 64 MiB, 16 % off from 1 GiB" in text
    assert list(worst.values()) == [0.32, 0.16]
    forced = [error for _, error in curve_errors("off-sheet")]
    assert (round(min(forced), 2), round(max(forced), 2)) == (-0.25, 0.46)


def test_a_fabric_that_works_raises_no_alarm() -> None:
    lowest = {least_bytes: 1.0 for least_bytes, _ in acceptance.ALARM_SHARES}
    for size_bytes, error in [*curve_errors("fitted"), *curve_errors("held-out")]:
        for least_bytes in lowest:
            if size_bytes >= least_bytes:
                lowest[least_bytes] = min(lowest[least_bytes], 1 / (1 + error))
    for least_bytes, share in acceptance.ALARM_SHARES:
        assert share <= lowest[least_bytes] < share + 0.05


def sheet_of(given_pod: Pod, nodes: int) -> acceptance.AcceptanceSheet:
    return JobPrediction.of(given_pod, JobRequest(nodes)).sheet


def test_small_messages_have_no_alarm(tmp_path: Path) -> None:
    given_pod = pod(tmp_path)
    for count in (1, 2, 8):
        sheet = sheet_of(given_pod, count).rows()
        silent = [row.expected.size_bytes for row in sheet if row.alarm_gb_s is None]
        assert silent == [size for size in acceptance.SIZES if size < 64 << 20]


def test_only_sizes_that_published_curves_have_get_an_alarm(tmp_path: Path) -> None:
    checked = max(int(row["nodes"]) for row in rows("h100-curves.csv") if row["role"] == "held-out")
    assert checked == collectives.CHECKED_NODES
    sheet = sheet_of(pod(tmp_path), checked + 1)
    assert all(row.alarm_gb_s is None for row in sheet.rows())
    assert sheet.origin.endswith("above 8 nodes nothing has checked it: no alarm")
    assert "no alarm" not in sheet_of(pod(tmp_path), checked).origin


@given(st.sampled_from(FAMILIES), st.integers(10, 34))
def test_three_nodes_are_never_faster_than_two(family: collectives.GpuFamily, power: int) -> None:
    two, three = (CollectiveJob(nodes, Wires(family, 8, 8, 24.0)) for nodes in (2, 3))
    assert chosen(two, 1 << power).time_s <= chosen(three, 1 << power).time_s


@pytest.mark.parametrize(
    "row", rows("large-messages.csv"), ids=lambda r: f"{r['system']}-{r['nodes']}-{r['algorithm']}"
)
def test_large_messages_as_reported(row: dict[str, str]) -> None:
    wires = replace(wires_of(node_model(row["system"])), nics=int(row["nics"]))
    found = estimate(CollectiveJob(int(row["nodes"]), wires), row["algorithm"], 1 << 36).bus_gb_s
    assert 0.9 * float(row["least_gb_s"]) <= found <= 1.1 * float(row["most_gb_s"])


def test_sharp_takes_the_same_steps_on_any_number_of_nodes() -> None:
    wires = wires_of(node_model("dgx-a100"))
    times = [estimate(CollectiveJob(nodes, wires, in_network=True), "sharp", 1 << 20).time_s for nodes in (2, 20, 140)]
    assert times == [pytest.approx(79e-6, rel=0.01)] * 3


JOBS = st.builds(
    CollectiveJob,
    nodes=st.integers(2, 2048),
    wires=st.builds(
        Wires,
        family=st.sampled_from(FAMILIES),
        gpus=st.sampled_from([4, 8, 16]),
        nics=st.integers(1, 8),
        nic_gb_s=st.sampled_from([12.0, 24.0, 48.0]),
    ),
    share=st.floats(0.1, 1.0),
    in_network=st.booleans(),
)


@given(job=JOBS, power=st.integers(10, 34))
def test_laws_of_any_job(job: CollectiveJob, power: int) -> None:
    for name in available(job):
        small, large = estimate(job, name, 1 << power), estimate(job, name, 1 << power + 1)
        assert small.time_s < large.time_s
    ring = estimate(job, "ring", 1 << power)
    assert ring.bus_gb_s <= job.ring_gb_s * (1 + 1e-9)
    assert estimate(replace(job, nodes=job.nodes + 1), "ring", 1 << power).time_s > ring.time_s
    assert estimate(replace(job, share=job.share / 2), "ring", 1 << power).time_s >= ring.time_s
    assert chosen(job, 1 << power).algorithm != "sharp"


def test_the_first_nodes_stand_in_one_unit(tmp_path: Path) -> None:
    given_pod = pod(tmp_path)
    spans = {}
    for count in (1, 20, 21, 140):
        spans[count] = placement.place(given_pod, placement.first_hosts(given_pod, count)).span
    assert spans == {1: "one node", 20: "one scalable unit", 21: "2 scalable units", 140: "7 scalable units"}


def test_order_of_ranks_matters_where_the_fabric_is_narrow(tmp_path: Path) -> None:
    narrow = pod(tmp_path, more="fabrics:\n  compute: {oversubscription: 4}\n")
    across = placement.place(narrow, placement.first_hosts(narrow, 40))
    assert placement.job(across).share == 1.0
    assert placement.job(across, "scattered").share == 0.25


def test_the_core_counts_between_pods(tmp_path: Path) -> None:
    tapered = pod(tmp_path)
    two = placement.place(tapered, placement.first_hosts(tapered, 140), pods=2)
    assert placement.job(two, "scattered").share == 0.5


def test_what_a_failure_costs(tmp_path: Path) -> None:
    given_pod = pod(tmp_path)
    inside = placement.place(given_pod, placement.first_hosts(given_pod, 20))
    across = placement.place(given_pod, placement.first_hosts(given_pod, 140))
    assert [(one.what, one.scattered) for one in placement.failures(inside)] == [("port of a node", 0.875)]
    costs = {one.what: (one.in_order, one.scattered) for one in placement.failures(across)}
    assert costs == {
        "port of a node": (0.875, 0.875),
        "leaf-spine link": (1.0, 0.95),
        "spine switch": (1.0, 0.9),
    }


def test_sheets(tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    given_pod = pod(tmp_path)
    sheet = sheet_of(given_pod, 16)
    golden(CASES / "sixteen-nodes" / "expected" / "sheet.csv", sheet.as_csv())
    document = json.dumps(sheet.as_json(), indent=2) + "\n"
    golden(CASES / "sixteen-nodes" / "expected" / "sheet.json", document)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("cpu-server", "has no GPUs"),
        ("{gpus: {model: RTX-4090, count: 8}}", "there are no constants for the GPU RTX-4090"),
        ("{gpus: {model: H100-PCIe, count: 8}}", "the node model has no compute ports"),
    ],
)
def test_refusals(tmp_path: Path, model: str, message: str) -> None:
    given_pod = pod(tmp_path, "n[1-2]", model)
    with pytest.raises(Refusal, match=message):
        placement.place(given_pod, ["n1", "n2"])


def test_nodes_must_be_alike_and_there(tmp_path: Path) -> None:
    mixed = pod(tmp_path, "a[1-2]", more='  - {hosts: "b[1-2]", model: dgx-h100}\n')
    with pytest.raises(Refusal, match="these nodes are not alike"):
        placement.place(mixed, ["a1", "b1"])
    with pytest.raises(Refusal, match="has 4 nodes with GPUs, not 5"):
        placement.first_hosts(mixed, 5)
