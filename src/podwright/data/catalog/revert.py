"""Publishes a generation of the history again; tags given since then stay with files that both know."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any

from podwright.data.catalog import schema
from podwright.data.catalog.files import FILE, literal
from podwright.data.catalog.store import Store
from podwright.data.query import bitmaps
from podwright.spec.problems import refuse

_TAGS = (
    "DELETE FROM tag USING same s WHERE tag.file = s.id",
    "INSERT INTO tag SELECT s.id, t.name, t.value FROM old.tag t JOIN same s ON s.old_id = t.file",
    "DROP TABLE same",
)


@dataclass(frozen=True, slots=True)
class Reverted:
    """A dataset that is as it was: its generation now, and the one of the history that this is."""

    dataset: str
    generation: int
    reverted_to: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data revert`."""
        return {"dataset": self.dataset, "generation": self.generation, "reverted_to": self.reverted_to}


def revert(store: Store, dataset: str, generation: int) -> Reverted:
    """Publish a generation of the history as a new one; all others stay in the history as they are."""
    with store.writing(dataset) as draft:
        current = store.generation(dataset)
        past = {past.generation: past for past in store.history(dataset)}
        if generation not in past or generation == current:
            numbers = ", ".join(str(number) for number in past if number != current) or "none yet"
            hint = f"podwright data history {dataset}: {numbers}"
            raise refuse(f"{dataset} has no generation {generation} to go back to", hint=hint, field="GENERATION")
        shutil.copyfile(store.file(dataset, generation), draft / FILE)
        with store.building(draft) as connection:
            connection.execute(f"ATTACH '{literal(store.file(dataset, current))}' AS old (READ_ONLY)")
            for statement in (schema.same_files(moved=False), *_TAGS):
                connection.execute(statement)
            bitmaps.build_tags(connection)
            connection.execute("DETACH old")
        facts = past[generation]
        store.publish(dataset, draft, {"files": facts.files, "changed": facts.changed})
        return Reverted(dataset, current + 1, generation)
