"""What UFM's cable validation takes: the point-to-point sheet, the map of adapters, and the `.topo` file."""

from __future__ import annotations

from podwright.design.csv_text import write_csv
from podwright.design.plan import Blueprint
from podwright.design.racks import model_name
from podwright.design.requirements import ports_of
from podwright.design.sockets import Socket, Sockets
from podwright.spec import SwitchModel

# Gb/s of a port of four lanes -> what a lane carries, as the file writes it.
LANES = {40: "10G", 56: "14G", 100: "25G", 200: "50G", 400: "100G", 800: "200G"}


def point_to_point(design: Blueprint, fabric: str) -> str:
    """Return the sheet of one fabric; a host's port is the number of its adapter in the map."""
    where = design.floor.rack_and_unit
    rows = [
        (*where(cable.a), cable.a, cable.a_port, *where(cable.b), cable.b, cable.b_port)
        for cable in design.wired[fabric].cables
    ]
    return write_csv(("Rack", "U", "Name", "HCA/Port", "Rack", "U", "Name", "Port"), rows)


def adapter_map(design: Blueprint, fabric: str) -> str:
    """Return which adapter each port number of the sheet means."""
    model = design.requirements.models[design.requirements.hosts[0]]
    return write_csv(("port", "hca-name"), enumerate(ports_of(model, fabric), 1))


def topo(design: Blueprint, fabric: str) -> str:
    """Return the `.topo` file of one fabric: switch by switch, each of its ports with what it leads to."""
    model = design.requirements.switch_of(fabric)
    assert model is not None, "a fabric is only wired where its switch is known"
    kind, lane = _kind(model), LANES.get(int(model.speed_gbps or 200), "50G")
    ports: dict[str, list[tuple[int, str]]] = {switch.name: [] for switch in design.wired[fabric].switches}
    for cable in design.wired[fabric].cables:
        near, far = design.sockets.ends(cable)
        ports[cable.b].append((cable.b_port, _end(near, cable.a_port, design.sockets, kind)))
        if cable.a in ports:
            ports[cable.a].append((cable.a_port, _end(far, cable.b_port, design.sockets, kind)))
    lines = []
    for name, ends in ports.items():
        lines += [f"{kind} {name}", *(f"    P{port} -4x-{lane}-> {end}" for port, end in sorted(ends)), ""]
    return "\n".join(lines)


def _end(end: Socket, port: int, sockets: Sockets, kind: str) -> str:
    if sockets.is_switch(end.device):
        return f"{kind} {end.device} P{port}"
    return f"HCA_mlx5 {end.device} {end.name}/P1"


def _kind(switch: SwitchModel) -> str:
    name = model_name(switch).upper().replace(" ", "_")
    if name.startswith(("QM", "SB", "SN")):
        return f"M{name}"
    return name
