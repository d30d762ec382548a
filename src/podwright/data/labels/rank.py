"""What a rank of `data stats --on` runs: it counts its share of the label images, and leaves what it counted.

    python3 -m podwright.data.labels.rank JOB

Of Podwright only this file and the three that it imports travel with the run; Pillow and NumPy must be there. The first
line of JOB has the root and the classes, every other one the number of a label and its path below the root.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path

from podwright.data.labels.counting import count_images
from podwright.data.labels.images import LabelClass, LabelFile

RESULTS = "results/labels"
"""Where the counts of each rank are, in the run's folder."""


def main(job: str) -> int:
    """Count every label of this rank's share; one that cannot be read says why, a root that is not here fails."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    with Path(job).open(encoding="utf-8") as lines:
        head = json.loads(next(lines))
        share = [json.loads(line) for line in islice(lines, rank, None, world)]
    root = os.fsencode(head["root"])
    if not Path(os.fsdecode(root)).is_dir():
        sys.exit(f"podwright: {head['root']}, the root of the dataset, is no folder on this node")
    classes = [LabelClass(name, tuple(colours)) for name, colours in head["classes"]]
    files = [LabelFile(number, root + b"/" + os.fsencode(path), path) for number, path in share]
    folder = Path(os.environ["PODWRIGHT_FOLDER"], RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{rank}.part"
    with part.open("w", encoding="utf-8") as out:
        for row in count_images(files, classes, len(os.sched_getaffinity(0))):
            out.write(json.dumps([row.file, row.counts, row.unknown, row.why, row.is_read]) + "\n")
    part.rename(folder / f"{rank}.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
