"""`remedy.py watch` on the monitoring host, `remedy.py hand` on every host: what their units start."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podwright.bringup.remedy.desk import MessageDesk
from podwright.bringup.remedy.hand import RemedyHand
from podwright.bringup.remedy.hands import HandAddress, RemedyHands, SchedulerPlace
from podwright.bringup.remedy.journal import RemedyJournal
from podwright.bringup.remedy.policy import RemedyPolicy
from podwright.bringup.remedy.unit import Acting, DryActing, RemedyUnit
from podwright.bringup.remedy.webhook import news_of
from podwright.files.whole import make_private
from podwright.telemetry.server import Guard, add_place, place_of

HAND_PORT, UNIT_PORT = 9837, 9836


def main(arguments: list[str]) -> None:
    """Take the words of `remedy.py`."""
    try:
        given = _parser().parse_args(arguments)
        guard = Guard.of_files(given.certificate, given.key, given.token)
        if given.verb == "hand":
            commands = tuple(filter(None, given.commands.split(",")))
            MessageDesk(place_of(given.listen), RemedyHand(commands), guard).serve_forever()
        settings = json.loads(Path(given.settings).read_text())
        serve_unit(unit_of(settings, Path(given.folder)), place_of(given.listen), guard)
    except (ValueError, OSError) as error:
        raise SystemExit(f"remedy.py: {error}") from None


def serve_unit(unit: RemedyUnit, place: tuple[str, int], guard: Guard) -> None:
    """Hear of alerts until the process ends."""

    def hear(message: Any) -> Mapping[str, Any]:
        news = list(news_of(message))
        unit.hear(news)
        return {"heard": len(news)}

    with MessageDesk(place, hear, guard) as desk:
        threading.Thread(target=desk.serve_forever, daemon=True).start()
        unit.run()


def unit_of(settings: Mapping[str, Any], folder: Path) -> RemedyUnit:
    """Return the unit that settings describe; its journal lies in `folder`."""
    make_private(folder)
    token = Path(settings["token"]).read_text().strip()
    hands = {
        host: HandAddress(place, settings["name"], settings["authority"], token)
        for host, place in settings["hands"].items()
    }
    schedulers = tuple(
        SchedulerPlace(each["kind"], each["host"], frozenset(each["members"])) for each in settings["schedulers"]
    )
    acting: Acting = RemedyHands(hands, schedulers, folder)
    is_dry = bool(settings["dry_run"])
    if is_dry:
        acting = DryActing(acting)
    policy = RemedyPolicy(frozenset(settings["drain"]), settings["reset"] != "never", int(settings["max"]))
    nodes = frozenset[str]().union(*(place.members for place in schedulers))
    return RemedyUnit(nodes, policy, RemedyJournal.of(folder, is_dry), acting)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="remedy.py", description="Drains, mends and resumes nodes by policy.")
    verbs = made.add_subparsers(dest="verb", required=True)
    watch = verbs.add_parser("watch", help="hear of alerts and decide")
    watch.add_argument("--settings", required=True, help="what `pod up` wrote: the policy, and the pod's hosts")
    watch.add_argument("--folder", required=True, help="where the journal lies")
    add_place(watch, f"127.0.0.1:{UNIT_PORT}")
    hand = verbs.add_parser("hand", help="do on this host what the unit asks for")
    hand.add_argument("--commands", default="", help="the schedulers whose commands are here: slurm, kubernetes")
    add_place(hand, f"127.0.0.1:{HAND_PORT}")
    return made


if __name__ == "__main__":
    main(sys.argv[1:])
