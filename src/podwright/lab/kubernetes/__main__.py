"""Makes what a Kubernetes lab needs once, before anybody waits for a lab: `python -m podwright.lab.kubernetes`."""

from __future__ import annotations

import sys

from podwright.lab.kubernetes import binaries, image


def say(word: str, text: str) -> None:
    """Print one fact, flushed, so that a log shows what is going on while it goes on."""
    print(f"{word:<9} {text}", flush=True)


def main() -> int:
    """Fill the cache; end at once when it is full."""
    programs = binaries.get(say, binaries.BuildOutput(say))
    image.base_layer(say)
    say("ready", f"Kubernetes {binaries.version()} in {programs['etcd'].parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
