"""One process of a walk: takes folders on stdin, gives back what lies in them on stdout, ends when stdin does.

It is started as a program of its own and not by `multiprocessing`, which would import whatever program called us anew.
"""

from __future__ import annotations

import pickle
import sys

from podwright.data.walk import walk_some


def main() -> None:
    """Answer until nobody asks any more."""
    while True:
        try:
            root, folders, entries = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(walk_some(root, folders, entries), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
