"""Makes what a Kubernetes lab needs once, before anybody waits for a lab.

python -m podwright.lab.kubernetes                    beside other work, at the lowest priority
python -m podwright.lab.kubernetes --usual-priority   where a machine does nothing else, such as one for tests
"""

from __future__ import annotations

import sys
import time

from podwright.lab.kubernetes import binaries, image
from podwright.theme import words


def say(word: str, text: str) -> None:
    """Print one fact, flushed, so that a log shows what is going on while it goes on."""
    print(f"{word:<9} {text}", flush=True)


def main(arguments: list[str]) -> int:
    """Fill the cache, and say how long that took; end at once when it is full."""
    began = time.monotonic()
    niceness = 0 if "--usual-priority" in arguments else binaries.LOWEST
    programs = binaries.get(say, binaries.BuildOutput(say), niceness)
    image.base_layer(say)
    took = words.duration(time.monotonic() - began)
    say("ready", f"Kubernetes {binaries.version()} in {programs['etcd'].parent}, after {took}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
