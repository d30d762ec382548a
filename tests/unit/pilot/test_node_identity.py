"""Which node and which rank a process is: the engines' own variables."""

from __future__ import annotations

import os

import pytest

from podwright.pilot.ranks.shim_protocol import find_rank
from podwright.pilot.system.node_identity import NodeIdentity, identify_node

PLACES = [
    (
        {"PODWRIGHT_NODE": "2", "PODWRIGHT_RESTART": "1", "PODWRIGHT_JOB": "j", "PODWRIGHT_LEADER": "10.0.0.1"},
        (2, 1, "10.0.0.1", "j"),
    ),
    (
        {"SLURM_NODEID": "3", "SLURM_RESTART_COUNT": "0", "PODWRIGHT_RESTART": "2", "SLURM_JOB_ID": "77"},
        (3, 2, "127.0.0.1", "77", "2"),
    ),
    ({"SLURM_NODEID": "3", "SLURM_JOB_ID": "77"}, (3, 0, "127.0.0.1", "77", "0")),
    ({"JOB_COMPLETION_INDEX": "5", "PODWRIGHT_RESTART": "4", "PODWRIGHT_JOB": "uid"}, (5, 4, "127.0.0.1", "uid")),
    ({"OMPI_COMM_WORLD_RANK": "6", "OMPI_COMM_WORLD_NODE_RANK": "0", "PODWRIGHT_JOB": "m"}, (6, 0, "127.0.0.1", "m")),
    ({"PODWRIGHT_NODE": "1", "SLURM_NODEID": "0", "PODWRIGHT_JOB": "j"}, (1, 0, "127.0.0.1", "j")),
    ({"PODWRIGHT_NODE": "", "SLURM_NODEID": "4", "SLURM_JOB_ID": "5"}, (4, 0, "127.0.0.1", "5", "0")),
    ({"PODWRIGHT_NODE": "x", "PODWRIGHT_JOB": "j"}, (0, 0, "127.0.0.1", "j")),
]


@pytest.mark.parametrize(("environ", "place"), PLACES, ids=range(len(PLACES)))
def test_place(environ: dict[str, str], place: tuple[int, int, str, str]) -> None:
    node, restart, leader, job, *copy = place
    found = identify_node({**environ, "PODWRIGHT_HOST": "here"})
    assert found == NodeIdentity(node, restart, leader, "here", job, *copy)


def test_without_an_engine_it_is_a_run_of_one_node() -> None:
    place = identify_node({})
    assert (place.node, place.restart, place.leader) == (0, 0, "127.0.0.1")
    assert place.job == f"{place.host}.{os.getpid()}"


def test_an_engine_may_ask_a_node_to_wait_longer_for_the_others() -> None:
    assert identify_node({"PODWRIGHT_JOIN_S": "80"}).join_s == 80
    assert identify_node({}).join_s == 0


RANKS = [
    ({"OMPI_COMM_WORLD_RANK": "9", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "RANK": "0", "LOCAL_RANK": "0"}, (9, 1)),
    ({"PMIX_RANK": "9", "SLURM_LOCALID": "1", "SLURM_PROCID": "8"}, (9, 1)),
    ({"SLURM_PROCID": "8", "SLURM_LOCALID": "0", "RANK": "3"}, (8, 0)),
    ({"PODWRIGHT_RANK": "2", "PODWRIGHT_LOCAL_RANK": "0", "RANK": "3"}, (2, 0)),
    ({"RANK": "3", "LOCAL_RANK": "1"}, (3, 1)),
    ({"RANK": "3"}, (3, 0)),
    ({"RANK": "three"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("environ", "rank"), RANKS, ids=range(len(RANKS)))
def test_rank(environ: dict[str, str], rank: tuple[int, int] | None) -> None:
    assert find_rank(environ) == rank
