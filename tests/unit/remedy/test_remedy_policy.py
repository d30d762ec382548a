"""What becomes of nodes: the table by examples, and what must hold whatever is told in whatever order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.bringup.remedy.policy import (
    ACTS,
    CURES,
    Cure,
    Event,
    RemedyAlert,
    RemedyNode,
    RemedyPolicy,
    State,
    is_late,
    step,
    told,
)

POLICY = RemedyPolicy(frozenset({"xid", "remap", "link"}))
EVENTS: tuple[Event, ...] = ("done", "failed", "foreign", "opened", "late")


def alert(cure: Cure, remedy: str = "xid", key: str = "") -> RemedyAlert:
    return RemedyAlert(key or cure, remedy, cure, f"what asks for {cure}")


@dataclass
class Story:
    """A node and what happens to it, told in words such as `reset! done quiet done`."""

    policy: RemedyPolicy = POLICY
    node: RemedyNode = field(default_factory=lambda: RemedyNode("n2"))
    now: float = 0.0
    states: list[str] = field(default_factory=list)

    def tell(self, words: str) -> list[str]:
        """`CURE!` fires, `quiet` is over, all else are events; gives the states that the node came into."""
        for word in words.split():
            if word == "quiet":
                self.hear(())
            elif word.endswith("!"):
                cure = next(each for each in CURES if each == word[:-1])
                self.hear((*self.node.alerts, alert(cure, "link" if cure == "wait" else "xid")))
            else:
                self.happen(next(each for each in EVENTS if each == word))
        return self.states

    def hear(self, alerts: tuple[RemedyAlert, ...]) -> None:
        self.node, event = told(self.node, alerts, self.policy)
        self.happen(event)

    def happen(self, event: Event) -> None:
        self.now += 1
        after = step(self.node, event, self.policy, self.now)
        if after.state != self.node.state:
            self.states.append(after.state)
        self.node = after


@pytest.mark.parametrize(
    ("words", "states"),
    [
        ("reset! done done quiet done done", "draining mending waiting checking resuming open"),
        ("reset! quiet done done done done", "draining mending checking resuming open"),
        ("wait! done quiet done done", "draining waiting checking resuming open"),
        ("wait! quiet done done done", "draining checking resuming open"),
        ("wait! done quiet failed done", "draining waiting checking serving service"),
        ("service! done done", "draining serving service"),
        ("service! done done quiet opened", "draining serving service open"),
        ("reset! foreign quiet done opened", "draining left open"),
        ("reset! done foreign", "draining mending left"),
        ("reset! quiet done done done foreign", "draining mending checking resuming left"),
        # A reset that fails is followed by a reboot, that by people.
        ("reset! done failed failed done", "draining mending serving service"),
        ("reboot! done failed done", "draining mending serving service"),
        ("reset! done done late done done", "draining mending waiting mending waiting"),
        # It fires again while the node is looked at, and while it is given back.
        ("reset! done done quiet reset! done quiet done done", None),
        ("reset! quiet done done done reset! done", "draining mending checking resuming draining"),
        # A drain or a resume that failed is done again, and nothing else.
        ("reset! failed failed", "draining"),
        ("quiet done failed foreign opened late", ""),
    ],
)
def test_a_node_goes_its_way(words: str, states: str | None) -> None:
    wanted = "draining mending waiting checking waiting checking resuming open" if states is None else states
    assert " ".join(Story().tell(words)) == wanted


def test_a_reset_that_did_not_help_is_followed_by_a_reboot() -> None:
    story = Story()
    story.tell("reset! done done late")
    assert (story.node.state, story.node.cure, story.node.tried) == ("mending", "reboot", ("reset", "reboot"))


def test_what_is_tried_is_counted_over_all_drains_of_a_day() -> None:
    story, once = Story(), "reset! done done quiet done done"
    story.tell(f"{once} {once}")
    assert story.states[-1] == "open"
    story.tell("reset! done")
    assert story.states[-1] == "serving"
    later = Story(node=replace(story.node, state="open", alerts=()), now=2 * 86400.0)
    assert later.tell("reset! done")[-1] == "mending"


def test_a_policy_without_resets_waits_for_people() -> None:
    story = Story(RemedyPolicy(frozenset({"xid"}), resets=False))
    assert story.tell("reset! done") == ["draining", "waiting"]
    assert not is_late(story.node, story.policy, 1e9)
    assert story.tell("quiet done done")[2:] == ["checking", "resuming", "open"]


def test_what_the_policy_does_not_name_is_nobodys_affair() -> None:
    assert Story(RemedyPolicy(frozenset({"link"}))).tell("reset! reboot!") == []


def test_who_opens_a_node_knows_what_fires_there() -> None:
    story = Story()
    story.tell("reset! foreign opened")
    story.hear((alert("reset"),))
    assert story.states[-1] == "open"
    story.hear(())
    story.hear((alert("reset"),))
    assert story.states[-1] == "draining"


def test_a_cure_has_its_time() -> None:
    story = Story()
    story.tell("reset! done done")
    assert not is_late(story.node, POLICY, story.now + 1800)
    assert is_late(story.node, POLICY, story.now + 1801)


_ALERTS = st.lists(
    st.builds(alert, st.sampled_from(CURES), st.sampled_from(("xid", "remap", "link", "heat")), st.sampled_from("abc")),
    max_size=3,
    unique_by=lambda each: each.key,
)
_HAPPENING = st.one_of(_ALERTS.map(tuple), st.sampled_from(EVENTS))


@given(
    st.lists(st.tuples(_HAPPENING, st.floats(0, 40_000)), max_size=60),
    st.booleans(),
    st.integers(1, 3),
)
def test_whatever_is_told(
    happenings: list[tuple[tuple[RemedyAlert, ...] | Event, float]], resets: bool, most: int
) -> None:
    """No reset but of a node that was found empty, none too many, and nothing given back unless it is well."""
    policy = RemedyPolicy(frozenset({"xid", "link"}), resets, most)
    node, now = RemedyNode("n2"), 0.0
    mended: list[float] = []
    came_from: dict[State, State] = {}
    for happening, later in happenings:
        now += later
        before = node
        if isinstance(happening, tuple):
            node, event = told(node, happening, policy)
            assert all(each.remedy in policy.drain for each in node.alerts)
        else:
            event = happening
        after = step(node, event, policy, now)
        if after is node:
            continue
        came_from[after.state] = before.state
        if after.state == "mending":
            assert policy.resets
            assert before.state in ("draining", "mending", "waiting", "checking")
            mended.append(now)
            assert len([at for at in mended if now - at < policy.within_s]) <= most
        if after.state == "resuming":
            assert (before.state, event, after.alerts) == ("checking", "done", ())
        if after.state == "open":
            assert before.state == "resuming" or event == "opened"
            mended = mended if before.state == "resuming" else []
        if before.state in ("service", "left"):
            assert (after.state, event) == ("open", "opened")
        assert after.state != "draining" or after.alerts
        node = after
        assert (node.state in ACTS) == (node.state not in ("open", "waiting"))
