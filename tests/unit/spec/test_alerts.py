"""Who hears of alerts: each receiver says what its kind needs, and no secret stands in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.spec import load_pod
from podwright.spec.problems import Refusal

POD = 'name: adas\nnodes: [{hosts: "n[1-2]", model: dgx-a100}]\n'
MAIL = "mail: {server: 'smtp.site.example:587', from: pods@site.example, user: pods, secret: MAIL_PASSWORD}"


def pod(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_text(POD + text)
    return path


def test_receivers_by_severity_and_team(tmp_path: Path) -> None:
    text = (
        "teams: [{name: vision, members: [alice], alerts: [vision@site.example]}]\n"
        f"alerts: {{{MAIL}, receivers: [{{kind: mail, to: ops@site.example}},"
        " {kind: slack, to: '#vision', secret: SLACK_URL, team: vision},"
        " {kind: pagerduty, secret: PAGERDUTY_KEY, severity: critical}]}\n"
    )
    loaded = load_pod(pod(tmp_path, text))
    kinds = [(each.kind, each.severity, each.team) for each in loaded.alerts.receivers]
    assert kinds == [("mail", "warning", None), ("slack", "warning", "vision"), ("pagerduty", "critical", None)]


def test_left_out_nobody_is_told(tmp_path: Path) -> None:
    assert load_pod(pod(tmp_path, "")).alerts.receivers == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alerts: {receivers: [{kind: mail, to: ops@site.example}]}", "alerts.mail: is missing: mails need a server"),
        (f"alerts: {{{MAIL}, receivers: [{{kind: mail}}]}}", "receivers[0].to: is missing: mail needs it"),
        ("alerts: {receivers: [{kind: slack, to: '#ops'}]}", "receivers[0].secret: is missing: slack needs it"),
        ("alerts: {receivers: [{kind: pagerduty}]}", "receivers[0].secret: is missing"),
        ("alerts: {receivers: [{kind: webhook, to: 'nowhere'}]}", '"nowhere" is nothing that webhook can send to'),
        ("alerts: {receivers: [{kind: webhook, to: 'https://u:p@h/'}]}", "is nothing that webhook can send to"),
        ("alerts: {receivers: [{kind: pager}]}", "alerts.receivers[0].kind: "),
        ("alerts: {receivers: [{kind: slack, secret: 'https://x/y'}]}", '"https://x/y" is not the name of a variable'),
        ("alerts: {receivers: [{kind: slack, secret: S, team: vison}]}", '"vison" is not a team of the pod'),
        ("alerts: {mail: {server: smtp, from: a@b.example}}", '"smtp" is not a server and its port'),
        ("alerts: [3]", "alerts: must be"),
        ("teams: [{name: a, members: [x], alerts: ['#vision']}]", 'teams[0].alerts[0]: "#vision" is no receiver'),
        ("teams: [{name: a, members: [x], alerts: [a@b.example]}]", "alerts.mail: is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        load_pod(pod(tmp_path, text))
    assert said in str(refused.value)
    assert f"{tmp_path}/pod.yaml:" in str(refused.value)
