"""The table of routes. Router, rights, OpenAPI and the Python client are made of it, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podwright.console.access.rights import Right
from podwright.console.routes import compare, cost, data, entry, files, live, logs, nodes, places, prove, run, runs
from podwright.console.routes import documents as docs
from podwright.console.web.answers import Answer, JsonAnswer
from podwright.console.web.openapi import openapi
from podwright.console.web.route import API, Nothing, Visit, WebRoute

PAGE, FORM, BYTES, EVENTS = "page", "form", "bytes", "events"
"""Results that are no documents."""
Answering = Callable[[Visit, Any], Answer]


def describe(visit: Visit, asked: Nothing) -> Answer:
    """Return this table as OpenAPI 3.1."""
    return JsonAnswer(openapi(ROUTES, visit.base))


def _page(path: str, request: type, answer: Answering, summary: str, right: Right = "look") -> WebRoute:
    return WebRoute("GET", path, right, request, PAGE, answer, summary)


def _form(path: str, request: type, answer: Answering, summary: str, right: Right = "steer") -> WebRoute:
    return WebRoute("POST", path, right, request, FORM, answer, summary)


def _ask(path: str, request: type, result: Any, answer: Answering, summary: str, right: Right = "look") -> WebRoute:
    return WebRoute("GET", API + path, right, request, result, answer, summary)


def _act(path: str, request: type, result: Any, answer: Answering, summary: str, right: Right = "steer") -> WebRoute:
    return WebRoute("POST", API + path, right, request, result, answer, summary)


_IN = (
    _page("/enter", entry.EnterRequest, entry.enter, "Enter by a link", "anyone"),
    WebRoute("GET", "/static/{file}", "anyone", entry.StaticRequest, BYTES, entry.static, "A file of the pages"),
)
_PAGES = (
    _form("/leave", Nothing, entry.leave, "Sign out", "look"),
    _page("/", Nothing, runs.overview_page, "How the home does"),
    _page("/runs", runs.RunsRequest, runs.runs_page, "The list of runs"),
    _form("/runs/act", runs.ActsRequest, runs.act_on_runs, "Act on runs"),
    _page("/runs/{run}", run.RunNamed, run.run_page, "A run"),
    _form("/runs/{run}", run.ActRequest, run.act_on_run, "Act on a run"),
    _page("/runs/{run}/log", logs.LogPageRequest, logs.log_page, "A rank's log"),
    _page("/runs/{run}/files", files.FilesRequest, files.files_page, "Files of a run"),
    _page("/runs/{run}/diff", run.DiffRequest, run.diff_page, "What differs from another run"),
    _page("/compare", compare.CompareRequest, compare.compare_page, "Sides, and whether they differ"),
    _page("/prove", Nothing, prove.prove_page, "Suites, and whether anything is slower"),
    _page("/prove/{suite}", prove.GateAsked, prove.suite_page, "A suite"),
    _page("/data", Nothing, data.data_page, "Datasets, selections and policies"),
    _page("/data/{name}", data.DataRequest, data.one_data_page, "A dataset or a selection"),
    _page("/cost", cost.CostRequest, cost.cost_page, "What runs cost, and whose they were"),
    _page("/cost/{pod}", cost.PodCostRequest, cost.pod_cost_page, "What a pod costs, and rent beside it"),
    _page("/queue", Nothing, places.queue_page, "What waits, and why"),
    _page("/pods", Nothing, places.pods_page, "The pods that are known"),
    _page("/pods/{pod}", places.PodNamed, places.pod_page, "A pod"),
    _page("/pods/{pod}/nodes/{node}", nodes.NodeRequest, nodes.node_page, "A node of a pod"),
    _page("/alerts", Nothing, places.alerts_page, "What fires"),
    _page("/settings", Nothing, entry.settings_page, "Tokens and the audit", "manage"),
    _form("/settings/tokens", entry.TokenRequest, entry.make_token_page, "Make a token", "manage"),
    _form("/settings/revoke", entry.TokenNamed, entry.revoke_token_page, "End a token", "manage"),
)
_RUNS = (
    _ask("/overview", Nothing, docs.OverviewDocument, runs.overview, "How the home does"),
    _ask("/runs", runs.RunsRequest, list[docs.RunDocument], runs.list_runs, "A page of runs"),
    _act("/runs/cancel", runs.RunsNamed, docs.CancelledDocument, runs.cancel_runs, "Ask runs to end"),
    _act("/runs/tag", runs.TagRequest, docs.TaggedDocument, runs.tag_runs, "Tag runs"),
    _ask("/runs/{run}", run.RunNamed, docs.RunDocument, run.show_run, "A run"),
    _ask("/runs/{run}/series", run.RunNamed, docs.SeriesDocument, run.series_of_run, "What its charts are drawn of"),
    _ask("/runs/{run}/logs", logs.LinesRequest, list[docs.LineDocument], logs.log_lines, "Its last lines"),
    _ask("/runs/{run}/log", logs.LogRequest, BYTES, logs.log_bytes, "What a rank wrote"),
    _ask("/runs/{run}/search", logs.SearchRequest, docs.SearchDocument, logs.search_log, "Lines with a text"),
    _ask("/runs/{run}/files", files.FilesRequest, docs.FilesDocument, files.list_files, "A folder of it"),
    _ask("/runs/{run}/file", files.FileRequest, BYTES, files.fetch_file, "A file of it"),
    _ask("/runs/{run}/cost", run.RunNamed, dict, cost.cost_of_run, "What it cost"),
    _ask("/runs/{run}/diff", run.DiffRequest, docs.DiffDocument, run.diff_runs, "What differs from another run"),
    _act("/runs/{run}/note", run.NoteRequest, docs.NotedDocument, run.note_run, "Write a note on it"),
    _act("/runs/{run}/again", run.AgainRequest, docs.StartedDocument, run.run_again, "Start it once more"),
)
_PLACES = (
    _ask("/compare", compare.CompareRequest, list[docs.ComparisonDocument], compare.compare, "Whether sides differ"),
    _ask("/queue", Nothing, list[docs.QueueDocument], places.queue, "What runs and waits on each target"),
    _ask("/pods", Nothing, list[docs.PodDocument], places.list_pods, "The pods that are known"),
    _ask("/pods/{pod}", places.PodNamed, dict, places.show_pod, "A pod's design"),
    _ask("/pods/{pod}/{drawing}.svg", places.DrawingRequest, BYTES, places.drawing, "A drawing of it"),
    _ask("/pods/{pod}/live", places.PodNamed, docs.LiveDocument, nodes.pod_live, "What it does now"),
    _ask("/pods/{pod}/nodes/{node}", nodes.NodeNamed, docs.NodeDocument, nodes.show_node, "A node of it"),
    _ask("/pods/{pod}/nodes/{node}/status", nodes.NodeNamed, dict, nodes.node_status, "Whether it drifted", "steer"),
    _ask("/pods/{pod}/cost", cost.PodCostRequest, dict, cost.cost_of_pod, "What owning it costs"),
    _ask("/pods/{pod}/rent", cost.PodCostRequest, dict, cost.rent_of_pod, "Its own price beside rent"),
    _ask("/cost", cost.CostRequest, docs.SpendingDocument, cost.spending, "What runs cost"),
    _ask("/alerts", Nothing, list[docs.AlertDocument], places.alerts, "What fires"),
    _ask("/data", Nothing, docs.CatalogDocument, data.list_data, "Datasets and selections"),
    _ask("/data/{name}", data.DataNamed, dict, data.show_data, "A dataset's columns, or a selection's images"),
    _ask("/data/{name}/stats", data.DataNamed, docs.StatisticsDocument, data.statistics_of, "What its labels hold"),
    _ask("/data/{name}/diff", data.DataDiffRequest, docs.DataDiffDocument, data.diff_data, "What another adds"),
    _ask("/policies", Nothing, list[docs.PolicyDocument], data.list_policies, "Policies, and where they stand"),
    _ask("/suites", Nothing, list[docs.SuiteDocument], prove.list_suites, "Suites that were run"),
    _ask("/suites/{suite}", prove.SuiteNamed, docs.SuiteDocument, prove.show_suite, "A suite's newest round"),
    _ask("/suites/{suite}/gate", prove.GateAsked, docs.GateDocument, prove.gate_of_suite, "What the gate says of it"),
    _ask("/suites/{suite}/scaling", prove.SuiteNamed, docs.ScalingDocument, prove.scaling_of_suite, "How it scales"),
    _ask("/events", live.ChangesRequest, EVENTS, live.stream, "Changes, as they come"),
    _ask("/changes", live.ChangesRequest, docs.ChangesDocument, live.changes, "Changes behind a place"),
)
_ACCESS = (
    _ask("/openapi.json", Nothing, dict, describe, "This table"),
    _ask("/tokens", Nothing, list[docs.TokenDocument], entry.list_tokens, "Tokens that are good", "manage"),
    _act("/tokens", entry.TokenRequest, docs.TokenDocument, entry.make_token, "Make a token", "manage"),
    _act("/tokens/revoke", entry.TokenNamed, list[docs.TokenDocument], entry.revoke_token, "End a token", "manage"),
    _ask("/audit", Nothing, list[docs.ActDocument], entry.read_audit, "Who did what", "manage"),
)
ROUTES = (*_IN, *_PAGES, *_RUNS, *_PLACES, *_ACCESS)
