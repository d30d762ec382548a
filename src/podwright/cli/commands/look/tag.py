"""`tag` and `note`: what users write on their runs."""

from __future__ import annotations

from typing import Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, RunRef, complete_run
from podwright.cli.terminal import output
from podwright.spec.problems import refuse

WORDS_WITH_A_DASH = True
"""`-b` takes the tag b away and is no option."""

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN... +TAG -TAG",
        help="Runs, then tags: `+a` tags them with a, `-b` takes b away; without any they are printed.",
        autocompletion=complete_run,
    ),
]


def tag_command(words: Words, as_json: AsJson = False) -> None:
    """Tag runs, also those that are over; print the tags that they have then."""
    refs = [word for word in words if word[:1] not in ("+", "-")]
    added = [word[1:] for word in words if word.startswith("+")]
    removed = [word[1:] for word in words if word.startswith("-")]
    if not refs:
        raise refuse("is missing", "name a run before its tags: `podwright tag last +paper`", field="RUN")
    with launch.Session.open() as session:
        change = launch.TagChange(launch.tags_of(added), launch.tags_of(removed))
        tagged = launch.tag_runs(session, launch.find_all(session, refs), change)
    if as_json:
        output.print_json(tagged.as_json())
    elif tagged.tags:
        print("\n".join(tagged.tags))
    else:
        output.say("no tags", " ".join(tagged.runs))


def note_command(
    run: RunRef,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; an empty text takes the note away.")],
    as_json: AsJson = False,
) -> None:
    """Write a note on a run, in place of the one it had."""
    with launch.Session.open() as session:
        noted = launch.note_run(session, launch.find(session, run), text)
    if as_json:
        output.print_json(noted.as_json())
    else:
        output.say("noted", f"{noted.run}: {noted.note}" if noted.note else f"{noted.run} has no note")
