"""`data`: which files there are, what their labels hold, and which of them a training is given."""

from podwright.cli.commands.data_policy import data_policy_command, data_watch_command
from podwright.cli.commands.data_scan import (
    data_find_command,
    data_scan_command,
    data_sql_command,
    data_stats_command,
    data_tag_command,
)
from podwright.cli.commands.data_select import (
    data_diff_command,
    data_forget_command,
    data_ls_command,
    data_select_command,
)
from podwright.cli.commands.data_stage import data_stage_command

__all__ = [
    "data_diff_command",
    "data_find_command",
    "data_forget_command",
    "data_ls_command",
    "data_policy_command",
    "data_scan_command",
    "data_select_command",
    "data_sql_command",
    "data_stage_command",
    "data_stats_command",
    "data_tag_command",
    "data_watch_command",
]
