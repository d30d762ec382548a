"""The curves of a run in an event file, as TensorBoard reads them. It needs nothing but this."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podwright.analysis.event_files import Scalar, file_head, four_bytes, records, scalar_record, scalars_of
from podwright.files.locks import wait_for
from podwright.launch.exchange.tracked import Tracked
from podwright.spec.problems import refuse

MAX_BYTES = 8 << 30
Known = tuple[str, int, float, bytes]


class TensorBoardFolder:
    """A folder with a folder for each run. What is there already is read, and what is missing added behind it."""

    def __init__(self, place: str) -> None:
        self.folder = Path(place).expanduser()

    def write(self, run: Tracked) -> int:
        """Add what is not there yet; return how many values that were."""
        folder = self.folder / run.id
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"events.out.tfevents.{int(run.record.created_at)}.podwright"
        with wait_for(folder / ".lock"):
            end, known = self._known(path)
            fresh = [scalar for scalar in _scalars(run) if _key(scalar) not in known]
            head = b"" if end else file_head(run.record.created_at)
            if fresh or head:
                with path.open("r+b" if path.exists() else "wb") as file:
                    file.truncate(end)  # a record that was torn as its writer died
                    file.seek(end)
                    file.write(head + b"".join(map(scalar_record, fresh)))
        return len(fresh)

    def _known(self, path: Path) -> tuple[int, set[Known]]:
        """Return where the last whole record ends, and what the file holds."""
        end, known = 0, set[Known]()
        try:
            with path.open("rb") as file:
                for record in records(file, MAX_BYTES):
                    end = file.tell()
                    known.update(map(_key, scalars_of(record)))
        except FileNotFoundError:
            pass
        except ValueError as error:
            raise refuse(f"{path}: {error}", hint="remove the file: it is written again") from None
        return end, known


def _scalars(run: Tracked) -> Sequence[Scalar]:
    return [Scalar(point.t, point.step, point.name, point.value) for point in run.points]


def _key(scalar: Scalar) -> Known:
    return scalar.tag, scalar.step, scalar.t, four_bytes(scalar.value)
