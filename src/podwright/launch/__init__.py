"""Launch: the one way a run is started and followed.

All of it is imported when it is first used: a command that only prints its help needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.launch.again import start_again, start_with_code_of
    from podwright.launch.cluster_image import ClusterImage, ImageBuild
    from podwright.launch.ending import Cancelled, Removal, Waited, cancel_named, removable, remove_runs, wait_for_all
    from podwright.launch.finding import find, find_all, find_all_to_read, find_to_read, rebuild, recent
    from podwright.launch.forget import abandon_silent, open_runs
    from podwright.launch.forward import PortRequest, open_port, until_it_ends
    from podwright.launch.latest import Latest, runs_at_work
    from podwright.launch.log_filter import LineFilter, filtered_logs
    from podwright.launch.origin import commits_between
    from podwright.launch.overview import RunOverview, overview_of
    from podwright.launch.prune import Prunable, Pruned, prunable, prune_runs
    from podwright.launch.records import RunRecords
    from podwright.launch.run import Change, Run, cancel_runs, refuse_silence
    from podwright.launch.run_filter import ANY, RunChoice
    from podwright.launch.session import Session
    from podwright.launch.shared_runs import publish_page
    from podwright.launch.starting import notifier, profiled, render, start, start_verified
    from podwright.runs.states import STATES

__all__ = [
    "ANY",
    "STATES",
    "Cancelled",
    "Change",
    "ClusterImage",
    "ImageBuild",
    "Latest",
    "LineFilter",
    "PortRequest",
    "Prunable",
    "Pruned",
    "Removal",
    "Run",
    "RunChoice",
    "RunOverview",
    "RunRecords",
    "Session",
    "Waited",
    "abandon_silent",
    "cancel_named",
    "cancel_runs",
    "commits_between",
    "filtered_logs",
    "find",
    "find_all",
    "find_all_to_read",
    "find_to_read",
    "notifier",
    "open_port",
    "open_runs",
    "overview_of",
    "profiled",
    "prunable",
    "prune_runs",
    "publish_page",
    "rebuild",
    "recent",
    "refuse_silence",
    "removable",
    "remove_runs",
    "render",
    "runs_at_work",
    "start",
    "start_again",
    "start_verified",
    "start_with_code_of",
    "until_it_ends",
    "wait_for_all",
]

__getattr__ = late_names(__name__, __file__)
