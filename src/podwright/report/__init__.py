"""What a person looks at: the report of a run, the comparison of several, pages of data, each one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.report.comparison import render_comparison
    from podwright.report.dataset import write_dataset_page
    from podwright.report.page import RunView, add_words, asset, compiled, render_run, view_of_run
    from podwright.report.selection import write_selection_page
    from podwright.report.suite import write_suite_report
    from podwright.report.write import write_comparison, write_report, write_run_report

__all__ = [
    "RunView",
    "add_words",
    "asset",
    "compiled",
    "render_comparison",
    "render_run",
    "view_of_run",
    "write_comparison",
    "write_dataset_page",
    "write_report",
    "write_run_report",
    "write_selection_page",
    "write_suite_report",
]

__getattr__ = late_names(__name__, __file__)
