"""The console's API from Python; made of its routes (`scripts/make_client.py`)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from podwright.console.api_calls import ApiCalls
from podwright.console.routes import documents as docs


class ConsoleClient(ApiCalls):
    """One console, by its address and a token. A refusal is an HTTPError, whose body says what is wrong."""

    def overview(self) -> docs.OverviewDocument:
        """Return `/overview`: how the home does. It takes the right to look."""
        answer: docs.OverviewDocument = json.loads(self._asked("/overview", {}))
        return answer

    def list_runs(
        self,
        where: str | None = None,
        sort: str | None = None,
        columns: str = "",
        state: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> list[docs.RunDocument]:
        """Return `/runs`: a page of runs. It takes the right to look."""
        answer: list[docs.RunDocument] = json.loads(
            self._asked(
                "/runs",
                {"where": where, "sort": sort, "columns": columns, "state": state, "after": after, "limit": limit},
            )
        )
        return answer

    def cancel_runs(self, runs: tuple[str, ...]) -> docs.CancelledDocument:
        """Send `/runs/cancel`: ask runs to end. It takes the right to steer."""
        answer: docs.CancelledDocument = json.loads(self._asked("/runs/cancel", {}, {"runs": list(runs)}))
        return answer

    def tag_runs(
        self, runs: tuple[str, ...], added: tuple[str, ...] = (), removed: tuple[str, ...] = ()
    ) -> docs.TaggedDocument:
        """Send `/runs/tag`: tag runs. It takes the right to steer."""
        answer: docs.TaggedDocument = json.loads(
            self._asked("/runs/tag", {}, {"runs": list(runs), "added": list(added), "removed": list(removed)})
        )
        return answer

    def show_run(self, run: str) -> docs.RunDocument:
        """Return `/runs/{run}`: a run. It takes the right to look."""
        answer: docs.RunDocument = json.loads(self._asked(f"/runs/{quote(run, safe='')}", {}))
        return answer

    def series_of_run(self, run: str) -> docs.SeriesDocument:
        """Return `/runs/{run}/series`: what its charts are drawn of. It takes the right to look."""
        answer: docs.SeriesDocument = json.loads(self._asked(f"/runs/{quote(run, safe='')}/series", {}))
        return answer

    def log_lines(self, run: str, rank: int | None = None, tail: int = 1000) -> list[docs.LineDocument]:
        """Return `/runs/{run}/logs`: its last lines. It takes the right to look."""
        answer: list[docs.LineDocument] = json.loads(
            self._asked(f"/runs/{quote(run, safe='')}/logs", {"rank": rank, "tail": tail})
        )
        return answer

    def search_log(self, run: str, text: str, rank: int = 0, begin: int = 0) -> docs.SearchDocument:
        """Return `/runs/{run}/search`: lines with a text. It takes the right to look."""
        answer: docs.SearchDocument = json.loads(
            self._asked(f"/runs/{quote(run, safe='')}/search", {"text": text, "rank": rank, "begin": begin})
        )
        return answer

    def list_files(self, run: str, path: str = "") -> docs.FilesDocument:
        """Return `/runs/{run}/files`: a folder of it. It takes the right to look."""
        answer: docs.FilesDocument = json.loads(self._asked(f"/runs/{quote(run, safe='')}/files", {"path": path}))
        return answer

    def cost_of_run(self, run: str) -> dict[str, Any]:
        """Return `/runs/{run}/cost`: what it cost. It takes the right to look."""
        answer: dict[str, Any] = json.loads(self._asked(f"/runs/{quote(run, safe='')}/cost", {}))
        return answer

    def diff_runs(self, run: str, other: str = "") -> docs.DiffDocument:
        """Return `/runs/{run}/diff`: what differs from another run. It takes the right to look."""
        answer: docs.DiffDocument = json.loads(self._asked(f"/runs/{quote(run, safe='')}/diff", {"other": other}))
        return answer

    def note_run(self, run: str, text: str = "") -> docs.NotedDocument:
        """Send `/runs/{run}/note`: write a note on it. It takes the right to steer."""
        answer: docs.NotedDocument = json.loads(self._asked(f"/runs/{quote(run, safe='')}/note", {}, {"text": text}))
        return answer

    def run_again(self, run: str, resume: bool = False) -> docs.StartedDocument:
        """Send `/runs/{run}/again`: start it once more. It takes the right to steer."""
        answer: docs.StartedDocument = json.loads(
            self._asked(f"/runs/{quote(run, safe='')}/again", {}, {"resume": resume})
        )
        return answer

    def compare(
        self, side: tuple[str, ...] = (), metric: str = "duration_s", margin: str = "3%"
    ) -> list[docs.ComparisonDocument]:
        """Return `/compare`: whether sides differ. It takes the right to look."""
        answer: list[docs.ComparisonDocument] = json.loads(
            self._asked("/compare", {"side": list(side), "metric": metric, "margin": margin})
        )
        return answer

    def queue(self) -> list[docs.QueueDocument]:
        """Return `/queue`: what runs and waits on each target. It takes the right to look."""
        answer: list[docs.QueueDocument] = json.loads(self._asked("/queue", {}))
        return answer

    def list_pods(self) -> list[docs.PodDocument]:
        """Return `/pods`: the pods that are known. It takes the right to look."""
        answer: list[docs.PodDocument] = json.loads(self._asked("/pods", {}))
        return answer

    def show_pod(self, pod: str) -> dict[str, Any]:
        """Return `/pods/{pod}`: a pod's design. It takes the right to look."""
        answer: dict[str, Any] = json.loads(self._asked(f"/pods/{quote(pod, safe='')}", {}))
        return answer

    def pod_live(self, pod: str) -> docs.LiveDocument:
        """Return `/pods/{pod}/live`: what it does now. It takes the right to look."""
        answer: docs.LiveDocument = json.loads(self._asked(f"/pods/{quote(pod, safe='')}/live", {}))
        return answer

    def show_node(self, pod: str, node: str) -> docs.NodeDocument:
        """Return `/pods/{pod}/nodes/{node}`: a node of it. It takes the right to look."""
        answer: docs.NodeDocument = json.loads(
            self._asked(f"/pods/{quote(pod, safe='')}/nodes/{quote(node, safe='')}", {})
        )
        return answer

    def node_status(self, pod: str, node: str) -> dict[str, Any]:
        """Return `/pods/{pod}/nodes/{node}/status`: whether it drifted. It takes the right to steer."""
        answer: dict[str, Any] = json.loads(
            self._asked(f"/pods/{quote(pod, safe='')}/nodes/{quote(node, safe='')}/status", {})
        )
        return answer

    def cost_of_pod(self, pod: str, rate: str = "") -> dict[str, Any]:
        """Return `/pods/{pod}/cost`: what owning it costs. It takes the right to look."""
        answer: dict[str, Any] = json.loads(self._asked(f"/pods/{quote(pod, safe='')}/cost", {"rate": rate}))
        return answer

    def rent_of_pod(self, pod: str, rate: str = "") -> dict[str, Any]:
        """Return `/pods/{pod}/rent`: its own price beside rent. It takes the right to look."""
        answer: dict[str, Any] = json.loads(self._asked(f"/pods/{quote(pod, safe='')}/rent", {"rate": rate}))
        return answer

    def spending(self, days: int = 30) -> docs.SpendingDocument:
        """Return `/cost`: what runs cost. It takes the right to look."""
        answer: docs.SpendingDocument = json.loads(self._asked("/cost", {"days": days}))
        return answer

    def alerts(self) -> list[docs.AlertDocument]:
        """Return `/alerts`: what fires. It takes the right to look."""
        answer: list[docs.AlertDocument] = json.loads(self._asked("/alerts", {}))
        return answer

    def list_data(self) -> docs.CatalogDocument:
        """Return `/data`: datasets and selections. It takes the right to look."""
        answer: docs.CatalogDocument = json.loads(self._asked("/data", {}))
        return answer

    def show_data(self, name: str) -> dict[str, Any]:
        """Return `/data/{name}`: a dataset's columns, or a selection's images. It takes the right to look."""
        answer: dict[str, Any] = json.loads(self._asked(f"/data/{quote(name, safe='')}", {}))
        return answer

    def statistics_of(self, name: str) -> docs.StatisticsDocument:
        """Return `/data/{name}/stats`: what its labels hold. It takes the right to look."""
        answer: docs.StatisticsDocument = json.loads(self._asked(f"/data/{quote(name, safe='')}/stats", {}))
        return answer

    def diff_data(self, name: str, other: str = "") -> docs.DataDiffDocument:
        """Return `/data/{name}/diff`: what another adds. It takes the right to look."""
        answer: docs.DataDiffDocument = json.loads(self._asked(f"/data/{quote(name, safe='')}/diff", {"other": other}))
        return answer

    def list_policies(self) -> list[docs.PolicyDocument]:
        """Return `/policies`: policies, and where they stand. It takes the right to look."""
        answer: list[docs.PolicyDocument] = json.loads(self._asked("/policies", {}))
        return answer

    def list_suites(self) -> list[docs.SuiteDocument]:
        """Return `/suites`: suites that were run. It takes the right to look."""
        answer: list[docs.SuiteDocument] = json.loads(self._asked("/suites", {}))
        return answer

    def show_suite(self, suite: str) -> docs.SuiteDocument:
        """Return `/suites/{suite}`: a suite's newest round. It takes the right to look."""
        answer: docs.SuiteDocument = json.loads(self._asked(f"/suites/{quote(suite, safe='')}", {}))
        return answer

    def gate_of_suite(
        self, suite: str, metric: str = "duration_s", margin: str = "3%", better: str = ""
    ) -> docs.GateDocument:
        """Return `/suites/{suite}/gate`: what the gate says of it. It takes the right to look."""
        answer: docs.GateDocument = json.loads(
            self._asked(f"/suites/{quote(suite, safe='')}/gate", {"metric": metric, "margin": margin, "better": better})
        )
        return answer

    def scaling_of_suite(self, suite: str) -> docs.ScalingDocument:
        """Return `/suites/{suite}/scaling`: how it scales. It takes the right to look."""
        answer: docs.ScalingDocument = json.loads(self._asked(f"/suites/{quote(suite, safe='')}/scaling", {}))
        return answer

    def changes(self, since: str = "") -> docs.ChangesDocument:
        """Return `/changes`: changes behind a place. It takes the right to look."""
        answer: docs.ChangesDocument = json.loads(self._asked("/changes", {"since": since}))
        return answer

    def describe(self) -> dict[str, Any]:
        """Return `/openapi.json`: this table. It takes the right to look."""
        answer: dict[str, Any] = json.loads(self._asked("/openapi.json", {}))
        return answer

    def list_tokens(self) -> list[docs.TokenDocument]:
        """Return `/tokens`: tokens that are good. It takes the right to manage."""
        answer: list[docs.TokenDocument] = json.loads(self._asked("/tokens", {}))
        return answer

    def make_token(self, name: str, rights: tuple[str, ...] = (), days: int = 30) -> docs.TokenDocument:
        """Send `/tokens`: make a token. It takes the right to manage."""
        answer: docs.TokenDocument = json.loads(
            self._asked("/tokens", {}, {"name": name, "rights": list(rights), "days": days})
        )
        return answer

    def revoke_token(self, token: str) -> list[docs.TokenDocument]:
        """Send `/tokens/revoke`: end a token. It takes the right to manage."""
        answer: list[docs.TokenDocument] = json.loads(self._asked("/tokens/revoke", {}, {"token": token}))
        return answer

    def read_audit(self) -> list[docs.ActDocument]:
        """Return `/audit`: who did what. It takes the right to manage."""
        answer: list[docs.ActDocument] = json.loads(self._asked("/audit", {}))
        return answer
