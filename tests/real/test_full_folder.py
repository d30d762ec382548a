"""A run whose folder fills up while it is at work, on a real small file system: its last words find the room kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ON_A_SMALL_DISK = 'mount -t tmpfs -o size=512k,mode=700 none "$1" && exec "$2" -c "$3" "$1"'
PILOT = """
import json, os, sys
from podwright.pilot.life.lease import Leases
from podwright.pilot.life.ended import read_ended
from podwright.pilot.protocol import rows_of
from podwright.pilot.system import journal

journal.CLOSE_S = 0.0
folder = sys.argv[1]
leases, events = Leases(folder + "/lease", "7"), journal.Journal(folder + "/events.jsonl", 0, journal.Clock())
leases.keep_room()
events.say("go")
with open(folder + "/data", "wb", buffering=0) as data:
    try:
        while data.write(bytes(4096)):
            pass
    except OSError:
        pass
for step in range(1000):
    events.say("result", step=step)
state = leases.end("failed")
events.say("end", state=state, reason="rank 1 exited with 7", exit_code=7)
is_whole = events.close(leases.give_room)
leases.give_room()
rows = [(row["k"], row.get("step"), row.get("error")) for row in rows_of(folder + "/events.jsonl")]
print(json.dumps([is_whole, read_ended(folder + "/lease"), rows, os.listdir(folder + "/lease")]))
"""


@pytest.mark.netns
def test_the_end_of_a_run_is_written_where_its_folder_is_full(tmp_path: Path) -> None:
    command = ["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", str(tmp_path), sys.executable, PILOT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    is_whole, ended, rows, left = json.loads(done.stdout)
    assert (is_whole, ended, left) == (True, "failed", ["ended"])
    assert rows[0] == ["go", None, None]
    assert rows[-1][0] == "end"
