"""All files of a design, as `podwright design --out` writes them."""

from __future__ import annotations

import json

from podwright.design.document import design_json
from podwright.design.exports.dot import dot
from podwright.design.exports.ethernet_files import ethernet_files
from podwright.design.exports.fabric_drawing import fabric_svg
from podwright.design.exports.ibnet import ibnetdiscover
from podwright.design.exports.netbox import netbox_files
from podwright.design.exports.rack_drawing import racks_svg
from podwright.design.exports.schedulers import scheduler_files
from podwright.design.exports.sheets import bundle_sheets, rack_sheets, switch_sheets
from podwright.design.exports.tables import addresses, bill_of_materials, bundle_list, cable_plan, label_list
from podwright.design.exports.ufm import adapter_map, point_to_point, topo
from podwright.design.plan import Blueprint
from podwright.spec import SwitchModel


def design_files(design: Blueprint, tokens: str) -> dict[str, str]:
    """Return every file by its path; `tokens` is the sheet of design tokens that colours drawings and sheets."""
    files = {
        "design.json": json.dumps(design_json(design), indent=2) + "\n",
        "cables.csv": cable_plan(design),
        "bundles.csv": bundle_list(design),
        "labels.csv": label_list(design),
        "bom.csv": bill_of_materials(design),
        "addresses.csv": addresses(design),
        "racks.html": rack_sheets(design, tokens),
        "switches.html": switch_sheets(design, tokens),
        "bundles.html": bundle_sheets(design, tokens),
        **{f"racks/row-{row}.svg": text for row, text in racks_svg(design, tokens).items()},
        **scheduler_files(design),
        **ethernet_files(design),
        **{f"netbox/{name}": text for name, text in netbox_files(design).items()},
    }
    for fabric in design.wired:
        files[f"{fabric}.svg"] = fabric_svg(design, fabric, tokens)
        files[f"{fabric}.dot"] = dot(design, fabric)
        if _is_infiniband(design.requirements.switch_of(fabric)):
            files[f"ufm/{fabric}-p2p.csv"] = point_to_point(design, fabric)
            files[f"ufm/{fabric}-hca-map.csv"] = adapter_map(design, fabric)
            files[f"ufm/{fabric}.topo"] = topo(design, fabric)
            files[f"{fabric}.ibnetdiscover"] = ibnetdiscover(design, fabric)
    return dict(sorted(files.items()))


def _is_infiniband(switch: SwitchModel | None) -> bool:
    """Return whether a switch is InfiniBand; one that is written out by its ports alone is, as these fabrics are."""
    return switch is not None and switch.kind != "ethernet"
