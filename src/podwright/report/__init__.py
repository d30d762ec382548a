"""What a person looks at: the report of a run, the comparison of several, pages of data, each one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.report.comparison import render_comparison, view_of_points, view_of_runs
    from podwright.report.dataset import view_of_gallery, write_dataset_page
    from podwright.report.history import history_of
    from podwright.report.page import RunView, add_words, asset, compiled, render_run, view_of_run
    from podwright.report.selection import view_of_selection, write_selection_page
    from podwright.report.strips import view_of_pair
    from podwright.report.suite import view_of_suite, write_suite_report
    from podwright.report.write import write_comparison, write_report, write_run_report

__all__ = [
    "RunView",
    "add_words",
    "asset",
    "compiled",
    "history_of",
    "render_comparison",
    "render_run",
    "view_of_gallery",
    "view_of_pair",
    "view_of_points",
    "view_of_run",
    "view_of_runs",
    "view_of_selection",
    "view_of_suite",
    "write_comparison",
    "write_dataset_page",
    "write_report",
    "write_run_report",
    "write_selection_page",
    "write_suite_report",
]

__getattr__ = late_names(__name__, __file__)
