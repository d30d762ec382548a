"""Launch: the one way a run is started and followed.

All of it is imported when it is first used: a command that only prints its help needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.launch.again import start_again, start_with_code_of
    from podwright.launch.browsing import RunsPage, RunsTally, browse, refresh, runs_on_host, tally
    from podwright.launch.cluster_image import ClusterImage, ImageBuild
    from podwright.launch.differing import RunsApart, diff_runs, environment_changes
    from podwright.launch.ending import Cancelled, Removal, Waited, cancel_named, removable, remove_runs, wait_for_all
    from podwright.launch.exchange.exporting import ExportOptions, RunsExported, export_runs
    from podwright.launch.exchange.importing import RunsImported, import_runs
    from podwright.launch.exchange.syncing import RunsSynced, sync_runs
    from podwright.launch.exchange.taking_over import RunsOnTarget, RunTakenUp, runs_on, take_up
    from podwright.launch.finding import find, find_all, find_all_to_read, find_to_read, rebuild, recent
    from podwright.launch.forget import abandon_silent, open_runs
    from podwright.launch.forward import PortRequest, open_port, until_it_ends
    from podwright.launch.labelling import RunNoted, RunsTagged, TagChange, check_note, note_run, tag_runs, tags_of
    from podwright.launch.latest import Latest, runs_at_work
    from podwright.launch.log_filter import LineFilter, filtered_logs
    from podwright.launch.origin import commits_between
    from podwright.launch.overview import RunOverview, overview_of
    from podwright.launch.prune import Prunable, Pruned, prunable, prune_runs
    from podwright.launch.rank_bytes import LogHits, RankBytes
    from podwright.launch.records import RunRecords
    from podwright.launch.run import Change, Run, cancel_runs, is_held, records_anyway, refuse_silence, value_here
    from podwright.launch.run_files import RunFile, RunFiles, files_of, open_file
    from podwright.launch.run_filter import ANY, RunChoice
    from podwright.launch.searching import BestRequest, FoundRuns, RunSearch, best, search
    from podwright.launch.session import Session
    from podwright.launch.shared_runs import publish_page
    from podwright.launch.spent import SPENT_BY, RunsSpent, spent_on_runs
    from podwright.launch.starting import notifier, profiled, render, start, start_verified
    from podwright.runs.states import STATES

__all__ = [
    "ANY",
    "SPENT_BY",
    "STATES",
    "BestRequest",
    "Cancelled",
    "Change",
    "ClusterImage",
    "ExportOptions",
    "FoundRuns",
    "ImageBuild",
    "Latest",
    "LineFilter",
    "LogHits",
    "PortRequest",
    "Prunable",
    "Pruned",
    "RankBytes",
    "Removal",
    "Run",
    "RunChoice",
    "RunFile",
    "RunFiles",
    "RunNoted",
    "RunOverview",
    "RunRecords",
    "RunSearch",
    "RunTakenUp",
    "RunsApart",
    "RunsExported",
    "RunsImported",
    "RunsOnTarget",
    "RunsPage",
    "RunsSpent",
    "RunsSynced",
    "RunsTagged",
    "RunsTally",
    "Session",
    "TagChange",
    "Waited",
    "abandon_silent",
    "best",
    "browse",
    "cancel_named",
    "cancel_runs",
    "check_note",
    "commits_between",
    "diff_runs",
    "environment_changes",
    "export_runs",
    "files_of",
    "filtered_logs",
    "find",
    "find_all",
    "find_all_to_read",
    "find_to_read",
    "import_runs",
    "is_held",
    "note_run",
    "notifier",
    "open_file",
    "open_port",
    "open_runs",
    "overview_of",
    "profiled",
    "prunable",
    "prune_runs",
    "publish_page",
    "rebuild",
    "recent",
    "records_anyway",
    "refresh",
    "refuse_silence",
    "removable",
    "remove_runs",
    "render",
    "runs_at_work",
    "runs_on",
    "runs_on_host",
    "search",
    "spent_on_runs",
    "start",
    "start_again",
    "start_verified",
    "start_with_code_of",
    "sync_runs",
    "tag_runs",
    "tags_of",
    "take_up",
    "tally",
    "until_it_ends",
    "value_here",
    "wait_for_all",
]

__getattr__ = late_names(__name__, __file__)
