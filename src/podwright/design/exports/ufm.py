"""What UFM's cable validation takes: the point-to-point sheet, the map of adapters, and the `.topo` file."""

from __future__ import annotations

from podwright.design.exports.port_names import PortNames
from podwright.design.exports.tables import write_csv
from podwright.design.plan import Design
from podwright.design.racks import model_name
from podwright.spec import SwitchModel

# Gb/s of a port of four lanes -> what a lane carries, as the file writes it.
LANES = {40: "10G", 56: "14G", 100: "25G", 200: "50G", 400: "100G", 800: "200G"}


def point_to_point(design: Design, fabric: str) -> str:
    """Return the sheet of one fabric; a host's port is the number of its adapter in the map."""
    where = design.floor.rack_and_unit
    rows = [
        (*where(cable.a), cable.a, cable.a_port, *where(cable.b), cable.b, cable.b_port)
        for cable in design.wired[fabric].cables
    ]
    return write_csv(("Rack", "U", "Name", "HCA/Port", "Rack", "U", "Name", "Port"), rows)


def adapter_map(design: Design, fabric: str) -> str:
    """Return which adapter each port number of the sheet means."""
    from podwright.design.requirements import ports_of

    model = design.requirements.models[design.requirements.hosts[0]]
    return write_csv(("port", "hca-name"), enumerate(ports_of(model, fabric), 1))


def topo(design: Design, fabric: str) -> str:
    """Return the `.topo` file of one fabric: switch by switch, each of its ports with what it leads to."""
    names = PortNames(design)
    model = design.requirements.switch_of(fabric)
    assert model is not None, "a fabric is only wired where its switch is known"
    kind, lane = _kind(model), LANES.get(int(model.speed_gbps or 200), "50G")
    ports: dict[str, list[tuple[int, str]]] = {switch.name: [] for switch in design.wired[fabric].switches}
    for cable in design.wired[fabric].cables:
        ports[cable.b].append((cable.b_port, _end(cable.a, cable.a_port, fabric, names, kind)))
        if cable.a in ports:
            ports[cable.a].append((cable.a_port, _end(cable.b, cable.b_port, fabric, names, kind)))
    lines = []
    for name, ends in ports.items():
        lines += [f"{kind} {name}", *(f"    P{port} -4x-{lane}-> {end}" for port, end in sorted(ends)), ""]
    return "\n".join(lines)


def _end(device: str, port: int, fabric: str, names: PortNames, kind: str) -> str:
    if names.is_switch(device):
        return f"{kind} {device} P{port}"
    return f"HCA_mlx5 {device} {names.name(device, fabric, port)}/P1"


def _kind(switch: SwitchModel) -> str:
    name = model_name(switch).upper().replace(" ", "_")
    if name.startswith(("QM", "SB", "SN")):
        return f"M{name}"
    return name
