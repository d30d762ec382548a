"""What fires, from Prometheus' own answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podwright.cli.commands.look.alerts import page
from podwright.spec import Refusal
from podwright.watch import firing


def alert(name: str, severity: str, at: str = "2026-11-19T11:37:46.123456789Z", **more: Any) -> dict[str, Any]:
    notes = {"summary": f"{name} is wrong", "cause": "a cable", "command": "ssh n1 ibstat"}
    labels = {"alertname": name, "severity": severity, "host": "n1", **more.pop("labels", {})}
    return {"state": "firing", "activeAt": at, "labels": labels, "annotations": notes, **more}


def answer(*alerts: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"alerts": alerts}})


def test_the_gravest_comes_first_and_what_waits_is_none() -> None:
    result = firing(
        "adas", answer(alert("A", "warning"), alert("B", "critical"), alert("C", "critical", state="pending"))
    )
    assert [each.name for each in result.alerts] == ["B", "A"]
    assert result.is_critical
    assert not firing("adas", answer(alert("A", "warning"))).is_critical
    assert result.as_json()[0] == {
        **{"name": "B", "severity": "critical", "since": "2026-11-19T11:37:46Z", "host": "n1", "run": None},
        **{"reason": "B is wrong", "cause": "a cable", "command": "ssh n1 ibstat"},
    }


def test_the_page_says_what_is_wrong_and_where_to_look() -> None:
    lines = list(page(firing("adas", answer(alert("LinkDown", "warning")))))
    assert lines == [
        "warning   LinkDown  since 2026-11-19T11:37:46Z",
        "  LinkDown is wrong",
        "  likely: a cable",
        "  look:   ssh n1 ibstat",
    ]
    assert list(page(firing("adas", answer()))) == ["adas: nothing fires"]


@pytest.mark.parametrize("text", ["", "[]", '{"data": {}}', '{"data": {"alerts": [{"state": "firing"}]}}'])
def test_another_answer_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="no list of alerts"):
        firing("adas", text)
