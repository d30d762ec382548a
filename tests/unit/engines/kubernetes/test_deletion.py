"""Many runs end by one request; without that right, some at a time."""

from __future__ import annotations

from podwright.clients.kubernetes.api import Api
from podwright.engines.kubernetes.delete import delete_runs
from tests.unit.clients.kubernetes.test_api import Server, api, server

__all__ = ["api", "server"]

PLACES = [("Job", "lab", f"sweep-2222-{number}") for number in (1, 2)]


def test_many_runs_are_deleted_by_one_request(server: Server, api: Api) -> None:
    server.answers = [(200, {})]
    delete_runs(api, PLACES)
    selector = "podwright.dev%2Frun+in+%28sweep-2222-1%2Csweep-2222-2%29"
    assert [(method, path) for method, path, _ in server.asked] == [
        ("DELETE", f"/base/apis/batch/v1/namespaces/lab/jobs?labelSelector={selector}")
    ]


def test_without_the_right_each_is_deleted_by_itself(server: Server, api: Api) -> None:
    server.answers = [(403, {"message": "you may not"}), (200, {}), (200, {}), (200, {})]
    delete_runs(api, PLACES)
    paths = {path for method, path, _ in server.asked if method == "DELETE"}
    assert {path.rpartition("/")[2] for path in paths if "?" not in path} == {"sweep-2222-1", "sweep-2222-2"}


def test_one_run_needs_no_selector(server: Server, api: Api) -> None:
    server.answers = [(200, {})]
    delete_runs(api, PLACES[:1])
    assert [path for _, path, _ in server.asked] == ["/base/apis/batch/v1/namespaces/lab/jobs/sweep-2222-1"]
