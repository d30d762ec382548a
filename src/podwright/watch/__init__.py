"""What watches a pod: rules, alerts, who hears of them, and dashboards, made from the pod's file.

Everything here is pure: bring-up writes these files to the monitoring host, and `pod watch` into a folder. Names are
imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.watch.alerts import alerts_of
    from podwright.watch.alerts.alert import Alert
    from podwright.watch.answers import QUESTION, AlertsResult, FiringAlert, firing
    from podwright.watch.dashboards import DASHBOARDS, Dashboard, dashboard_json
    from podwright.watch.files import WatchFiles, rule_groups, targets_file, watch_files, yaml_file
    from podwright.watch.frame import FRAME_QUESTION, FrameGpu, FrameNode, PodFrame, frame_of
    from podwright.watch.receivers import alertmanager_config, bmc_secrets, secret_file, secret_names
    from podwright.watch.scrape import ScrapeJob, Target, exporters_name, prometheus_config

__all__ = [
    "DASHBOARDS",
    "FRAME_QUESTION",
    "QUESTION",
    "Alert",
    "AlertsResult",
    "Dashboard",
    "FiringAlert",
    "FrameGpu",
    "FrameNode",
    "PodFrame",
    "ScrapeJob",
    "Target",
    "WatchFiles",
    "alertmanager_config",
    "alerts_of",
    "bmc_secrets",
    "dashboard_json",
    "exporters_name",
    "firing",
    "frame_of",
    "prometheus_config",
    "rule_groups",
    "secret_file",
    "secret_names",
    "targets_file",
    "watch_files",
    "yaml_file",
]

__getattr__ = late_names(__name__, __file__)
