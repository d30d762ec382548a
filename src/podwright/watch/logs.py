"""Where logs of hosts and runs may go, too: configurations for Loki and OpenSearch, neither of which has read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.spec import Pod

_HEAD = "Written by Podwright. No Loki and no OpenSearch has read this yet: LOKI_URL, and OPENSEARCH_HOST, are yours."
# What both ship: the journal of the host, and what ranks of runs wrote (`TIME RANK STREAM TEXT` a line).
_FOLDER, _RUN_LOGS = "$HOME/podwright", "runs/*/record/*/merged.log"


def loki_config(pod: Pod) -> str:
    """Return a configuration of Grafana Alloy, which sends to Loki."""
    return _ALLOY.replace("@pod@", json.dumps(pod.name)).replace("@logs@", json.dumps(_logs(pod)))


_ALLOY = f"""\
// {_HEAD}
loki.source.journal "hosts" {{
  labels     = {{pod = @pod@, host = constants.hostname, kind = "journal"}}
  forward_to = [loki.write.site.receiver]
}}

local.file_match "runs" {{
  path_targets = [{{__path__ = @logs@, pod = @pod@, kind = "run"}}]
}}

loki.source.file "runs" {{
  targets    = local.file_match.runs.targets
  forward_to = [loki.process.runs.receiver]
}}

loki.process "runs" {{
  stage.regex {{
    expression = "^(?P<at>[0-9.]+) (?P<rank>[0-9-]+) (?P<stream>[oe]) (?P<text>.*)$"
  }}
  stage.regex {{
    source     = "filename"
    expression = "/runs/(?P<run>[^/]+)/"
  }}
  stage.labels {{
    values = {{run = "", stream = ""}}
  }}
  stage.timestamp {{
    source = "at"
    format = "Unix"
  }}
  stage.output {{
    source = "text"
  }}
  forward_to = [loki.write.site.receiver]
}}

loki.write "site" {{
  endpoint {{
    url = sys.env("LOKI_URL")
  }}
}}
"""


def opensearch_config(pod: Pod) -> str:
    """Return a configuration of Fluent Bit, which sends to OpenSearch."""
    return f"""\
# {_HEAD}
[SERVICE]
    parsers_file  parsers.conf

[INPUT]
    name          systemd
    tag           hosts

[INPUT]
    name          tail
    tag           runs
    path          {_logs(pod)}
    path_key      file
    parser        podwright_run
    db            /var/lib/fluent-bit/podwright.db

[FILTER]
    name          record_modifier
    match         *
    record        pod {pod.name}

[OUTPUT]
    name          opensearch
    match         *
    host          ${{OPENSEARCH_HOST}}
    port          9200
    tls           on
    index         podwright-{pod.name}
    suppress_type_name on
"""


def fluent_parsers() -> str:
    """Return how Fluent Bit takes a line of a run apart."""
    return f"""\
# {_HEAD}
[PARSER]
    name          podwright_run
    format        regex
    regex         ^(?<at>[0-9.]+) (?<rank>[0-9-]+) (?<stream>[oe]) (?<text>.*)$
    time_key      at
    time_format   %s.%L
"""


def _logs(pod: Pod) -> str:
    """Return where runs of all users lie; a `$USER` in a folder is any user."""
    for scheduler in pod.schedulers:
        if scheduler.kind == "slurm":
            folder = scheduler.folder or _FOLDER
            return f"{folder.replace('$USER', '*').replace('$HOME', '/home/*')}/{_RUN_LOGS}"
    return f"/home/*/{_RUN_LOGS}"
