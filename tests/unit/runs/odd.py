"""Rows of a record as a damaged disk or another version may leave them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.runs.made import START, event

TAIL = ["Traceback", "RuntimeError: CUDA error"]
GPUS = [{"index": 0, "name": "H200", "uuid": "GPU-1", "memory_bytes": 1.5e11, "numa": 0, "pci": "0000:01:00.0"}]
GOOD: tuple[dict[str, Any], ...] = (
    event("pilot", 0.1, host="a", pid=7, restart=0, version="0.1", python="3.11", cpus=4, memory_bytes=9, gpus=GPUS),
    event("staged", 0.2, what="code", bytes=100, took_s=0.5),
    event("staging", 0.3, bytes=10, of=100, reused=0, from_source=10, from_peers=0),
    event("joined", 0.3, node=1, host="b", of=2),
    event("go", 1.0, attempt=1, world_size=4, hosts=["a", "b"], took_s=0.5),
    event("rank", 1.1, rank=0, local_rank=0, pid=8, cores=[0, 1], gpu=0, numa=None, nics=["mlx5_0"]),
    event("ready", 1.2, world_size=4),
    event("result", 2.0, rank=0, values={"step": 1, "loss": 0.5}),
    event("result", 2.1, rank=0, values={"mllog": "eval_accuracy", "eval_accuracy": 0.5, "time_ms": 5}),
    event("goal", 2.2, metric="loss", value=0.5, took_s=1.2),
    event("checkpoint", 2.3, name="step-1.pt", bytes=100),
    event("rank_end", 3.0, rank=1, code=1, signal=None, after_s=2.0),
    event("failed", 3.1, rank=1, node=0, host="a", code=1, signal=None, after_s=2, why="x", tail=TAIL, stopped=[0]),
    event("hang", 3.2, rank=1, node=0, silent_s=60.0, why="x"),
    event("slow", 3.2, rank=1, node=0, host="a", slower_by=0.5, evidence="x", stays=""),
    event("retry", 3.3, attempt=2, why="x", lost=None),
    event("seen", 3.4, what="xid", device="gpu 0", value=48, text="double bit ECC error"),
    event("sensor", 3.5, name="gpu", error="x"),
    event("rdma", 3.6, memlock_bytes=-1, capabilities=["CAP_IPC_LOCK"]),
    event("signal", 3.7, name="SIGTERM"),
    event("fenced", 3.8, by=[1, 0], job="9"),
    event("alone", 3.85, n=1, why="the leader on a is gone; another is waited for"),
    event("given_back", 3.9, why="x"),
    event("thinned", 4.0, what="metrics", from_s=1, to_s=10),
    event("software", 0.5, python="3.11.7", torch="2.3.0", cuda="12.4", nccl="2.20.5", cudnn="9.1"),
    event("stack", 4.1, rank=0, lines=["Current thread 0x1 (most recent call first):"]),
    event("recognised", 4.1, rank=0, names=[{"name": "loss", "how": "form"}]),
    event("workdir", 4.2, files=3, bytes=100, left=[{"path": "a", "why": "x"}], left_count=1, took_s=0.5),
    event("end", 9.0, state="failed", reason="x", exit_code=1),
    *(
        {"t": START + 5.0, "k": kind, **fields}
        for kind, fields in {
            "created": {"pid": 1},
            "submitted": {"pid": 1, "handle": "7"},
            "waiting": {"why": "x"},
            "idle": {"e": [0, 0], "why": "x"},
            "requeued": {"e": [0, 0], "why": "x"},
            "gone": {"e": None, "why": "x"},
            "cancel": {},
            "lost": {"why": "x"},
            "gap": {"text": "x"},
            "cost": {"amount": 2.5, "currency": "EUR", "origin": "x"},
            "event_files": {"values": {"loss": 0.25}},
            "tags": {"added": ["paper"], "removed": ["draft"]},
            "note": {"text": "the one with more frames"},
            "silent": {"since": 1.0, "why": "x"},
            "answered": {},
            "kept": {"pid": 1, "job": "x"},
            "node": {"node": 0, "restart": 0, "pid": 1},
            "node_end": {"node": 0, "restart": 0, "code": None, "signal": "SIGKILL"},
            "end": {"state": "failed", "reason": "x", "code": None},
        }.items()
    ),
)
"""A row of every kind, as it is written."""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, -1]),
    st.floats(),
    st.text(max_size=4),
    st.just("\ud800"),
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({key for row in GOOD for key in row})


def odd_rows() -> st.SearchStrategy[dict[str, Any]]:
    """Return rows of which some fields are of another type, or gone."""
    gone = st.sets(st.sampled_from(KEYS), max_size=2)
    return st.builds(_changed, st.sampled_from(GOOD), st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=3), gone)


def _changed(row: dict[str, Any], changes: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    return {key: value for key, value in {**row, **changes}.items() if key not in gone}
