"""Makes what a Kubernetes lab needs once, before anybody waits for a lab: `python -m podwright.lab.kubernetes`."""

from __future__ import annotations

import sys
import time

from podwright.lab.kubernetes import image, parts

_EVERY_S = 15.0


class Lines:
    """Tells the progress of the build in a line now and then, as a log wants it."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Prints how far it is."""
        if done == total or time.monotonic() - self.last > _EVERY_S:
            self.last = time.monotonic()
            say("build", f"{done} of {total} packages")


def say(word: str, text: str) -> None:
    """Prints one fact, flushed, so that a log shows what is going on while it goes on."""
    print(f"{word:<9} {text}", flush=True)


def main() -> int:
    """Fills the cache; ends at once when it is full."""
    found = parts.get(say, Lines())
    image.base_layer(say)
    say("ready", f"Kubernetes {parts.version()} in {found['etcd'].parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
