"""Tags and notes: what the events of clients add up to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podwright.runs.events import NoteWritten, TagsChanged
from podwright.runs.labels import MAX_NOTE, MAX_TAGS, RunLabels, labels_of

TAGS = st.sampled_from(["paper", "draft", "best"])
CHANGES = st.builds(
    lambda added, removed: TagsChanged(time=0.0, added=tuple(added), removed=tuple(removed)),
    st.lists(TAGS, max_size=2),
    st.lists(TAGS, max_size=2),
)


def tags(*events: TagsChanged) -> tuple[str, ...]:
    return labels_of(events).tags


def changed(*added: str, removed: tuple[str, ...] = ()) -> TagsChanged:
    return TagsChanged(time=0.0, added=added, removed=removed)


def test_the_last_word_on_a_tag_counts() -> None:
    assert tags(changed("paper", "draft"), changed(removed=("draft", "never"))) == ("paper",)
    assert tags(changed(removed=("paper",)), changed("paper")) == ("paper",)


def test_the_last_note_counts_and_an_empty_one_takes_it_away() -> None:
    first, second, none = (NoteWritten(time=0.0, text=text) for text in ("a", "b", ""))
    assert labels_of([first, changed("x"), second]) == RunLabels(("x",), "b")
    assert labels_of([first, none]).note == ""


def test_what_is_no_tag_and_what_is_too_much_is_left_out() -> None:
    """Anybody may have written the line."""
    assert tags(changed("a b", "", "-x", "ok", "x" * 65)) == ("ok",)
    assert len(tags(changed(*(f"t{number}" for number in range(200))))) == MAX_TAGS
    assert len(labels_of([NoteWritten(time=0.0, text="x" * 99_999)]).note) == MAX_NOTE


@given(st.lists(CHANGES, max_size=6))
def test_what_an_older_record_says_changes_nothing(events: list[TagsChanged]) -> None:
    """The report starts at the sealed record, in which some of the events are already."""
    for count in range(len(events) + 1):
        assert labels_of(events, labels_of(events[:count])) == labels_of(events)
