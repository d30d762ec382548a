"""A rank that is light and can do everything a rank can do wrong. Counts steps, tells the loss of each, checkpoints it.

python count.py --steps 20 [--pause 0.05] [--fail-at 5] [--fail-always] [--hang-at 5] [--ignore-term] [--daemon]
                [--hold-at 5] [--ledger] [--slow 1]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--rank", type=int, default=-1, help="only this rank misbehaves")
    parser.add_argument("--fail-at", type=int)
    parser.add_argument("--fail-always", action="store_true")
    parser.add_argument("--hang-at", type=int)
    parser.add_argument("--hold-at", type=int, help="the first attempt waits after this step until it is ended")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--daemon", action="store_true")
    parser.add_argument("--ledger", action="store_true", help="note in the run's folder when a rank begins and ends")
    parser.add_argument("--slow", type=int, help="the first attempt tells that this rank is slower by half")
    options = parser.parse_args()
    rank, attempt = int(os.environ["RANK"]), int(os.environ["PODWRIGHT_ATTEMPT"])
    bad = options.rank in (-1, rank)
    if options.ignore_term:
        signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"not listening\n"))
    if options.daemon:
        subprocess.Popen(["/bin/sh", "-c", "sleep 300 & exec sleep 300"], start_new_session=True)
    if options.ledger:
        book("begin", rank, attempt)
    file = Path(os.environ["PODWRIGHT_CHECKPOINT"], f"rank{rank}")
    step = int(file.read_text()) if file.exists() else 0
    print(f"rank {rank} of {os.environ['WORLD_SIZE']} starts at step {step}, attempt {attempt}", flush=True)
    while step < options.steps:
        while step == options.hold_at and attempt == 1:
            signal.pause()
        time.sleep(options.pause)
        step += 1
        if bad and step == options.fail_at and (attempt == 1 or options.fail_always):
            print("it went wrong here", file=sys.stderr, flush=True)
            return 7
        if bad and step == options.hang_at and attempt == 1:
            signal.pause() if not options.ignore_term else os.kill(os.getpid(), signal.SIGSTOP)
        works = {"work_s": 1.0, "work_slowest_s": 1.5, "work_slowest_rank": options.slow}
        slow = works if options.slow is not None and attempt == 1 and rank == 0 else {}
        told = json.dumps({"podwright": {"step": step, "loss": round(1 / (step + 1), 6), **slow}})
        os.write(1, f"{told}\n".encode())  # in one piece: `print` lets the signal's word in before the end of its line
        part = file.with_suffix(".part")  # after the word: killed here, a step is told twice, never left out
        part.write_text(str(step))
        part.rename(file)
    if options.ledger:
        book("end", rank, attempt)
    return 0


def book(what: str, rank: int, attempt: int) -> None:
    """One write at the end of the file, which other ranks do not tear."""
    path = Path(os.environ["PODWRIGHT_FOLDER"], "ledger")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{time.time():.3f} {what} {rank} {attempt}\n".encode())
    os.close(file)


if __name__ == "__main__":
    sys.exit(main())
