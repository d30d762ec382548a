"""Host lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.spec.hostlist import MAX_HOSTS, expand_hosts, fold_hosts, natural_key
from podwright.spec.problems import Refusal

NUMBERS = st.integers(min_value=0, max_value=300)
HOSTS = st.lists(
    st.builds(
        lambda head, rack, number, width, tail: f"{head}{rack}n{number:0{width}d}{tail}",
        st.sampled_from(["dgx", "mgmt", "a-b"]),
        st.sampled_from(["", "1", "02"]),
        NUMBERS,
        st.integers(min_value=1, max_value=4),
        st.sampled_from(["", ".site", "-ib0"]),
    ),
    unique=True,
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[001-003]", ["n001", "n002", "n003"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[1,3,5-6]", ["n1", "n3", "n5", "n6"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("n[1-2].site, m1", ["n1.site", "n2.site", "m1"]),
    ],
)
def test_expand(text: str, hosts: list[str]) -> None:
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n3", "n4"], "n[1,3-4]"),
        (["n9", "n10"], "n[9-10]"),
        (["n09", "n10"], "n[09-10]"),
        (["n1", "m1"], "n1,m1"),
        (["worker", "worker2", "worker3"], "worker,worker[2-3]"),
        ([f"dgx{number:03d}" for number in range(1, 141)], "dgx[001-140]"),
    ],
)
def test_fold(hosts: list[str], text: str) -> None:
    assert fold_hosts(hosts) == text


@given(HOSTS)
def test_fold_then_expand_gives_the_list_back(hosts: list[str]) -> None:
    for order in (hosts, sorted(hosts, key=natural_key)):
        assert (expand_hosts(fold_hosts(order)) if order else []) == order


@given(st.text(alphabet="abn0123456789[]-,. ", max_size=40))
def test_any_text_is_a_host_list_or_refused(text: str) -> None:
    try:
        hosts = expand_hosts(text)
    except Refusal:
        return
    assert len(set(hosts)) == len(hosts) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-3],n2", '"n2" is named twice'),
        ("n[3-1]", '"[3-1]" runs backwards'),
        ("n[a-b]", '"[a-b]" is not a range of hosts'),
        ("n[]", '"[]" is not a range of hosts'),
        ("n[1-2", '"n[1-2" is not a host list: unexpected `[`'),
        ("n]", '"n]" is not a host list: unexpected `]`'),
        ("a,", '"a," is not a host list: it ends with a comma'),
        (" ", "no hosts are named"),
        ("a b", '"a b" is not a host name'),
        ("n[1-999999999999]", f"more than {MAX_HOSTS:,} hosts"),
        ("n[1-1000]m[1-1000]", f"more than {MAX_HOSTS:,} hosts"),
        ("a[1-60000],b[1-60000]", f"more than {MAX_HOSTS:,} hosts"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(Refusal) as caught:
        expand_hosts(text)
    assert caught.value.problems[0].message == message


def test_natural_order() -> None:
    assert sorted(["n10", "n9", "m1", "n1"], key=natural_key) == ["m1", "n1", "n9", "n10"]
