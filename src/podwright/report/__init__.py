"""What a person looks at: the report of a run and the comparison of several, each one HTML file."""

from podwright.analysis.data import ReportData
from podwright.reading.run_data import gather
from podwright.report.comparison import render_comparison
from podwright.report.page import render_run
from podwright.report.write import write_comparison, write_run_report

__all__ = ["ReportData", "gather", "render_comparison", "render_run", "write_comparison", "write_run_report"]
