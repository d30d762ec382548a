"""A program of somebody else's: it takes RANK for the word that it is one of several, and leaves what it learned beside
its code, as nanoGPT does."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

OUT = Path("out-babble")


def main() -> None:
    if int(os.environ.get("RANK", -1)) != -1:
        sys.exit("no process group: this process is one of several, and none of the others is here")
    text = Path("data", "babble", "train.bin").read_bytes()
    follows: dict[str, str] = {}
    for step, (letter, after) in enumerate(pairwise(text), 1):
        follows[chr(letter)] = chr(after)
        print(json.dumps({"podwright": {"step": step, "loss": round(1 / step, 4)}}), flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "ckpt.json").write_text(json.dumps(follows))
    (OUT / "latest").unlink(missing_ok=True)
    (OUT / "latest").symlink_to("ckpt.json")
    with Path("README").open("a") as readme:
        readme.write("trained\n")


if __name__ == "__main__":
    main()
