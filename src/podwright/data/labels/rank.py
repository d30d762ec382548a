"""What a rank of `data stats --on` runs: it counts its share of the label images, and leaves what it counted.

    python3 -m podwright.data.labels.rank JOB

Of Podwright only this file and the three that it imports travel with the run; Pillow and NumPy must be there. The first
line of JOB has the roots and the classes, every other one the numbers of a label and its root, and its path below that.
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
    for root in head["roots"]:
        if not Path(root).is_dir():
            sys.exit(f"podwright: {root}, the root of the dataset, is no folder on this node")
    roots = list(map(os.fsencode, head["roots"]))
    classes = [LabelClass(name, tuple(colours)) for name, colours in head["classes"]]
    files = [LabelFile(number, roots[of] + b"/" + os.fsencode(path), path) for number, of, path in share]
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
