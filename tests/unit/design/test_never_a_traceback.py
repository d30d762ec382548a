"""Whatever a pod says, it is designed with every port once, or refused with a hint."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podwright import theme
from podwright.design import Design
from podwright.design.document import design_json
from podwright.design.exports.files import design_files
from podwright.spec import Pod, Refusal

TOKENS = theme.asset("tokens.css")
SWITCHES = st.sampled_from(["qm8790", "sn3700", "sn2201", *({"ports": ports} for ports in (1, 3, 4, 8, 64))])


def some(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with any of these fields."""
    return st.fixed_dictionaries({}, optional={name: _one(values) for name, values in fields.items()})


def _one(values: Any) -> st.SearchStrategy[Any]:
    return values if isinstance(values, st.SearchStrategy) else st.sampled_from(values)


FABRICS = some(
    compute=some(
        switch=SWITCHES,
        layout=["rail", "classic"],
        rails=[1, 2, 3, 8],
        scalable_unit=[1, 3, 7, 33],
        oversubscription=[1, 1.3, 50],
        taper=[1, 1.7, 100],
        pods_planned=[1, 2, 9],
        nodes_planned=[60, 99, 300],
        reserved_slots=[0, 1, 5],
        manager_cables=[0, 1, 99],
    ),
    storage=some(switch=SWITCHES, scalable_unit=[1, 3, 20], node_ports=[1, 2, 3], ports_per_unit=[1, 8, 20]),
    management=some(switch=SWITCHES, aggregation=SWITCHES),
)
MODELS = st.sampled_from(["dgx-1", "dgx-2h", "dgx-a100", "dgx-h100", "dgx-b200", "cpu-server"])
ROLES = st.sampled_from(["compute", "management", "login", "storage"])
SYSTEMS = [
    {"name": "a", "kind": "lustre", "model": "ddn-ai400x"},
    {"name": "b", "kind": "lustre", "model": "ddn-a3i-9-to-1"},
    {"name": "c", "kind": "nfs"},
]


@settings(max_examples=80)
@given(
    st.tuples(st.integers(1, 60), MODELS, ROLES),
    FABRICS,
    st.lists(st.sampled_from(SYSTEMS), unique_by=lambda one: one["name"]),
    some(rack_units=[6, 8, 42], power=["7kW", "35kW"], count=[1, 40], per_row=[1, 16]),
)
def test_any_pod(
    nodes: tuple[int, str, str], fabrics: dict[str, Any], systems: list[Any], racks: dict[str, Any]
) -> None:
    groups = [
        {"hosts": f"n[01-{nodes[0]:02d}]", "model": nodes[1]},
        {"hosts": "m[1-2]", "model": "cpu-server", "roles": [nodes[2]]},
    ]
    given = {"name": "p", "nodes": groups, "fabrics": fabrics, "storage": systems, "racks": racks}
    try:
        design = Design.of(Pod.model_validate(given))
        design_json(design)
    except Refusal as refusal:
        check_hint(refusal)
        return
    ports = [(c.fabric, *end) for c in design.cables for end in ((c.a, c.a_port), (c.b, c.b_port))]
    assert len(ports) == len(set(ports))
    assert design_files(design, TOKENS)["design.json"]


def check_hint(refusal: Refusal) -> None:
    """A refusal says where and how to mend it."""
    assert all(problem.hint and problem.field for problem in refusal.problems)
