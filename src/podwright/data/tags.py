"""Tags: names and values that people and programs give to files; filters know them as columns."""

from __future__ import annotations

import re
import shutil

from podwright.data import bitmaps
from podwright.data.dataset import open_dataset, source_of
from podwright.data.files import FILE
from podwright.data.store import Store
from podwright.spec.problems import refuse, short

_NAME = re.compile(r"[A-Za-z][\w.-]{0,62}", re.ASCII)
_LONGEST = 1000


def parse_tag(text: str) -> tuple[str, str]:
    """Return name and value of `NAME=VALUE`; an empty value takes the tag away."""
    name, sign, value = text.partition("=")
    if not sign or not _NAME.fullmatch(name):
        hint = "write it like `weather=rain`; a name has letters, digits, dots, dashes and underscores"
        raise refuse(f'"{short(text)}" is no tag', hint=hint)
    if len(value) > _LONGEST:
        raise refuse(f"the value of {name} is longer than {_LONGEST} characters")
    return name, value


def tag(store: Store, dataset: str, filter_text: str, name: str, value: str) -> int:
    """Give a tag to all files that a filter chooses, or take it away; return how many they are."""
    with store.writing(dataset) as part:
        # Within the lock: what is chosen must be what is copied.
        with open_dataset(store, dataset) as opened:
            field = opened.vocabulary.fields.get(name)
            if name == "class" or name in opened.vocabulary.pending_classes or (field and field.kind != "tag"):
                raise refuse(f"{name} is a column of {dataset} already", hint="give the tag another name")
            condition = opened.condition(filter_text)
            query = f"SELECT f.id FROM {source_of(condition)}"
            rows = opened.connection.execute(query, list(condition.values)).fetchall()
        if not rows:
            return 0
        shutil.copyfile(store.file(dataset, store.generation(dataset)), part / FILE)
        with store.building(part) as connection:
            connection.execute("CREATE TEMP TABLE chosen (file BIGINT)")
            connection.execute("INSERT INTO chosen SELECT unnest(?)", [[row[0] for row in rows]])
            connection.execute("DELETE FROM tag WHERE name = ? AND file IN (SELECT file FROM chosen)", [name])
            if value:
                connection.execute("INSERT INTO tag SELECT file, ?, ? FROM chosen", [name, value])
            bitmaps.build_tags(connection)
        store.publish(dataset, part)
    return len(rows)
