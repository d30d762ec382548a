"""Which cores, GPU and cards a rank gets."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.pilot.ranks.topology import bind_ranks, binding, cpu_list, discover, merged, nic_env, rdma_report

# DGX A100: two sockets of four NUMA nodes with 16 cores of two threads; GPU pairs on nodes 3, 1, 7, 5.
PAIR_NODES = (3, 1, 7, 5)
A100 = {
    "numa": [{"node": n, "cores": f"{16 * n}-{16 * n + 15},{128 + 16 * n}-{143 + 16 * n}"} for n in range(8)],
    "gpus": [{"index": i, "numa": PAIR_NODES[i // 2]} for i in range(8)],
    "nics": [
        *({"name": f"mlx5_{i}", "kind": "compute", "numa": PAIR_NODES[i // 2], "gpus": [i]} for i in range(8)),
        {"name": "mlx5_8", "kind": "storage", "numa": 3},
    ],
}


def span(*ranges):
    return [cpu for first, last in ranges for cpu in range(first, last + 1)]


@pytest.fixture
def a100(plain):
    """The same machine as its /sys shows it."""
    for node in A100["numa"]:
        plain.write({f"/sys/devices/system/node/node{node['node']}/cpulist": node["cores"] + "\n"})
    for cpu in range(256):
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        plain.write({path: f"{cpu % 128},{cpu % 128 + 128}\n"})
    for gpu in A100["gpus"]:
        plain.write({f"/sys/bus/pci/devices/{pci(gpu['index'])}/numa_node": f"{gpu['numa']}\n"})
    for nic in A100["nics"]:
        plain.write({f"/sys/class/infiniband/{nic['name']}/device/numa_node": f"{nic['numa']}\n"})
    return plain


def pci(index):
    return f"0000:{index:02x}:00.0"


def found_gpus(count=8):
    return [{"index": i, "pci": pci(i)} for i in range(count)]


def test_a_rank_gets_half_the_cores_of_its_gpus_node():
    placed = binding(A100, range(8), 8, range(256))
    assert [place.gpu for place in placed] == list(range(8))
    assert [place.numa for place in placed] == [3, 3, 1, 1, 7, 7, 5, 5]
    assert placed[0].cores == span((48, 55), (176, 183))
    assert placed[1].cores == span((56, 63), (184, 191))
    assert placed[7].cores == span((88, 95), (216, 223))
    assert placed[6].nics == ["mlx5_6"]


def test_sysfs_says_the_same(a100):
    found = merged(discover(str(a100.root), found_gpus()), None)
    placed = binding(found, range(8), 8, range(256))
    expected = binding(A100, range(8), 8, range(256))
    assert [(p.gpu, p.numa, p.cores) for p in placed] == [(p.gpu, p.numa, p.cores) for p in expected]
    assert placed[0].nics == ["mlx5_0", "mlx5_1", "mlx5_8"]


def test_the_library_adds_what_sysfs_does_not_know(a100):
    a100.write({f"/sys/bus/pci/devices/{pci(i)}/numa_node": "-1\n" for i in range(8)})
    found = merged(discover(str(a100.root), found_gpus()), A100)
    assert binding(found, range(8), 8, range(256)) == binding(A100, range(8), 8, range(256))


def test_gpus_numbered_anew_are_not_looked_up_in_the_library(a100):
    a100.write({f"/sys/bus/pci/devices/{pci(i)}/numa_node": "-1\n" for i in range(8)})
    assert [row["numa"] for row in merged(discover(str(a100.root), found_gpus(2)), A100)["gpus"]] == [None, None]


def test_without_sysfs_the_library_is_all_there_is(plain):
    assert binding(merged(discover(str(plain.root)), A100), range(8), 8, range(256))[0].numa == 3


def test_without_gpus_ranks_share_whole_cores():
    placed = binding({**A100, "gpus": []}, [], 8, range(256))
    assert [place.cores for place in placed] == [
        span((16 * n, 16 * n + 15), (128 + 16 * n, 143 + 16 * n)) for n in range(8)
    ]
    assert [place.numa for place in placed] == list(range(8))
    assert placed[0].gpu is None


def test_more_ranks_than_cores_share_threads_and_more_than_cpus_are_not_bound():
    facts = {"numa": [{"node": 0, "cores": "0-1,2-3"}]}
    assert [place.cores for place in binding(facts, [], 3, range(4))] == [[0], [2], [1, 3]]
    assert binding(facts, [], 5, range(4)) == []
    assert binding(facts, [], 0, range(4)) == []


def test_ranks_whose_node_is_not_allowed_take_the_cpus_left():
    placed = binding(A100, [0, 2], 2, [16, 17, 144, 145, 0, 1])
    assert [(place.numa, place.cores) for place in placed] == [(0, [0, 1]), (1, [16, 17, 144, 145])]


def test_one_rank_with_all_gpus_is_not_tied_to_one_node():
    (place,) = binding(A100, range(8), 1, range(256))
    assert place.cores == list(range(256))
    assert place.numa is None
    (place,) = binding(A100, [4], 1, range(256))
    assert place.cores == span((112, 127), (240, 255))


def test_a_node_with_fewer_cpus_than_ranks_is_shared_by_them():
    placed = binding(A100, [0, 1, 2], 3, [48, 16, 17])
    assert [place.cores for place in placed] == [[48], [48], [16, 17]]


def test_more_ranks_than_gpus_take_turns():
    assert [place.gpu for place in binding(A100, [2, 3], 4, range(256))] == [2, 3, 2, 3]


def test_nothing_known_spreads_over_what_is_allowed():
    assert [place.cores for place in binding(None, [0, 1], 2, [3, 4, 5, 9])] == [[3, 4], [5, 9]]


@given(st.sets(st.integers(0, 255), min_size=1), st.integers(1, 64), st.booleans())
def test_every_rank_has_allowed_cores_and_no_gpu_means_no_overlap(allowed, ranks, with_gpus):
    placed = binding(A100, range(8) if with_gpus else [], ranks, allowed)
    assert len(placed) == (ranks if ranks <= len(allowed) else 0)
    assert all(place.cores and allowed.issuperset(place.cores) for place in placed)
    if placed and not with_gpus:
        assert sorted(cpu for place in placed for cpu in place.cores) == sorted(allowed)


def test_cards_are_named_for_nccl_and_ucx():
    place = binding(A100, range(8), 8, range(256))[3]
    assert nic_env(place, True) == {
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7",
        "UCX_NET_DEVICES": "mlx5_3:1",
    }
    assert nic_env(place, False) == {}
    assert nic_env(place._replace(nics=[], fabric=[]), True) == {}


def test_places_of_this_machine():
    (place,) = bind_ranks(None, [], 1, rdma=False)
    assert place["cores"] == sorted(os.sched_getaffinity(0))
    assert place["env"] == {}
    assert place.keys() == {"cores", "gpu", "numa", "nics", "env"}


def test_capabilities_have_names(plain):
    plain.write({"/proc/self/status": "Name:\tpilot\nCapEff:\t0000010000004001\nCapBnd:\tffff\n"})
    report = rdma_report(str(plain.root))
    assert report["capabilities"] == ["CAP_CHOWN", "CAP_IPC_LOCK", "CAP_CHECKPOINT_RESTORE"]
    assert report["memlock_bytes"] >= -1


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), ("0\n", [0])])
def test_lists_of_cpus(text, cpus):
    assert cpu_list(text) == cpus
