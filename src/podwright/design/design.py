"""The front door of design: a pod sized, wired and placed, and what is made of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from podwright.design.plan import NEEDED_BYTES_S, Blueprint, located

if TYPE_CHECKING:
    from podwright.design.check import Checked
    from podwright.design.growth import Growth
    from podwright.design.growth_steps import GrowthStep
    from podwright.design.losses import Loss


class Design(Blueprint):
    """A pod designed. Nothing is touched by it: documents and files are returned, and what was built is handed in."""

    def as_json(self, gpu_read_bytes_s: int = NEEDED_BYTES_S, growth: Growth | None = None) -> dict[str, Any]:
        """Return the document of `design`; `gpu_read_bytes_s` is what one GPU must be able to read."""
        from podwright.design.document import design_json

        document = design_json(self, gpu_read_bytes_s)
        if growth is not None:
            document["growth"] = growth.as_json()
        return document

    def cables_json(self) -> list[dict[str, Any]]:
        """Return every cable, as `design --cables --json` prints them."""
        return [{**laid.cable._asdict(), "length_m": laid.length_m, "medium": laid.medium} for laid in self.laid]

    def files(self, growth: Growth | None = None) -> dict[str, str]:
        """Return all that is needed to build, check and use the pod: the text of each file by its path."""
        from podwright import theme
        from podwright.design.exports.files import design_files
        from podwright.design.exports.tables import growth_plan

        files = design_files(self, theme.asset("tokens.css"))
        if growth is not None:
            files["growth.csv"] = growth_plan(growth)
        return files

    def workbook(self) -> bytes:
        """Return the cable plan as a workbook (XLSX), a sheet for each rack."""
        from podwright.design.exports.workbook import cable_workbook

        return cable_workbook(self)

    def growth_from(self, old: Blueprint, allow_moves: bool = False) -> Growth:
        """Return what it takes to make this pod of an older one; moves of cables in use are refused unless allowed."""
        from podwright.design.growth import allowed_growth

        return located(self.pod, lambda: allowed_growth(old, self, allow_moves))

    @staticmethod
    def steps(growth: Growth) -> list[GrowthStep]:
        """Return a growth leaf by leaf, with what holds after each step."""
        from podwright.design.growth_steps import growth_steps

        return growth_steps(growth)

    def lose(self, names: Iterable[str]) -> Loss:
        """Return what is left without these devices; a name that the plan does not have is refused."""
        from podwright.design.losses import lose

        return lose(self, names)

    def check(self, found: Mapping[str, str], source: str) -> Checked:
        """Compare the design with what was discovered: texts by their files, in the folder `source` or `source` alone.

        One file is of `ibnetdiscover`, or of an Ethernet switch that it is named after.
        """
        from podwright.design.check import check_fabric, check_neighbours

        switches = {switch.name for switch in self.wired["compute"].switches} if self.underlay else set()
        if set(found) == {source} and PurePath(source).stem not in switches:
            return check_fabric(self, found[source], source)
        return check_neighbours(self, found, source)
