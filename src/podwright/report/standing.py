"""Which of several runs came first, in one sentence, and against which of them the others are measured. Pure."""

from collections.abc import Sequence

from podwright.analysis.figures import field
from podwright.analysis.ranks import Story
from podwright.theme import words

_ENDS = {"failed": "failed", "cancelled": "was cancelled", "lost": "was lost"}


def measure_of(stories: Sequence[Story]) -> int | None:
    """Return the place of the first run that succeeded: nothing is measured against one that did not, or goes on."""
    return next((i for i, story in enumerate(stories) if is_measured(story)), None)


def is_measured(story: Story) -> bool:
    """Return whether a run's figures may be held against another's."""
    return story.data.record.state == "succeeded"


def sentence_of(stories: Sequence[Story]) -> str:
    """Say which run reached its goal soonest, or ended soonest, and what became of those that cannot be compared."""
    measured = [story for story in stories if is_measured(story)]
    others = [story for story in stories if not is_measured(story)]
    sentences = [_order(measured), *_left_out(others)]
    return " ".join(sentences)


def _order(stories: Sequence[Story]) -> str:
    if not stories:
        return "None of these runs succeeded, so no order can be given."
    if len(stories) == 1:
        return f"Only {_name(stories[0])} succeeded, so no order can be given."
    by_goal = _by_time(stories, "time_to_train_s")
    if by_goal:
        missed = [_name(story) for story in stories if story.data.record.time_to_train_s is None]
        return _first(by_goal, "reached the goal") + _missed(missed)
    by_end = _by_time(stories, "duration_s")
    if len(by_end) == len(stories):
        return _first(by_end, "ended")
    return "These runs do not report how long they took, so no order can be given."


def _by_time(stories: Sequence[Story], name: str) -> list[tuple[float, str]]:
    read = field(name)
    times = [(read(story), _name(story)) for story in stories]
    return sorted((time_s, name) for time_s, name in times if time_s is not None)


def _first(ranked: Sequence[tuple[float, str]], what: str) -> str:
    best_s, name = ranked[0]
    if len(ranked) == 1:
        return f"Only {name} {what}, in {words.duration(best_s)}."
    second_s, second = ranked[1]
    if best_s == second_s:
        return f"{name} and {second} {what} first, in {words.duration(best_s)}."
    lead = words.percent(1 - best_s / second_s)
    return f"{name} {what} first, in {words.duration(best_s)}: {lead} sooner than {second}."


def _missed(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f" {_listed(names)} did not reach it."


def _left_out(stories: Sequence[Story]) -> list[str]:
    """Return a sentence for every way in which runs ended otherwise, and one for those that go on."""
    by_end: dict[str, list[str]] = {}
    for story in stories:
        by_end.setdefault(_ENDS.get(story.data.record.state, "has not ended yet"), []).append(_name(story))
    return [f"{_listed(names)} {_for_several(end, len(names))}." for end, names in by_end.items()]


def _for_several(end: str, count: int) -> str:
    if count == 1:
        return end
    return end.replace("was ", "were ").replace("has ", "have ")


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _name(story: Story) -> str:
    return story.data.record.id
