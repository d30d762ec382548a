"""Process trees: all of one is found and ended, whatever it does to escape."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from podwright.pilot.system.processes import descendants, exit_facts, signal_name

KEEPER = """
import json, os, signal, subprocess, sys
from podwright.pilot.system.prctl import adopt_orphans
from podwright.pilot.system.processes import descendants, kill_tree, reap
adopt_orphans()
daemon = "import os, signal, sys, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\n" \\
    "os.setsid()\\nif os.fork(): os._exit(0)\\nprint(os.getpid(), flush=True)\\ntime.sleep(600)"
first = subprocess.Popen([sys.executable, "-S", "-c", daemon], stdout=subprocess.PIPE, text=True)
escaped = int(first.stdout.readline())
spared = subprocess.Popen([sys.executable, "-S", "-c", "print(1, flush=True)\\n__import__('sys').stdin.read()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
spared.stdout.readline()
while first.pid in descendants(os.getpid()):
    pass
seen = escaped in descendants(os.getpid())
left = kill_tree(os.getpid(), spare={spared.pid})
alive = descendants(os.getpid())
spared.stdin.close()
print(json.dumps([seen, sorted(left), sorted(alive) == [spared.pid]]))
"""


def test_a_daemon_that_left_its_session_is_killed_and_who_is_spared_stays() -> None:
    done = subprocess.run([sys.executable, "-c", KEEPER], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [True, [], True]


DYING = """
import os, sys, time
from podwright.pilot.system.prctl import die_with_parent
die_with_parent(int(sys.argv[1]))
print("alive", flush=True)
time.sleep(600)
"""


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", DYING, "1"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


@pytest.mark.parametrize(
    ("status", "facts"),
    [(0, (0, None)), (3 << 8, (3, None)), (9, (137, "SIGKILL")), (15, (143, "SIGTERM"))],
)
def test_exit_facts_are_as_a_shell_says_them(status: int, facts: tuple[int, str | None]) -> None:
    assert exit_facts(status) == facts


def test_a_signal_without_a_name_has_its_number() -> None:
    assert (signal_name(15), signal_name(50)) == ("SIGTERM", "signal 50")


def test_this_process_has_no_strangers_beneath_it() -> None:
    assert os.getpid() not in descendants(os.getpid())


NONE_BENEATH = """
import os
from podwright.pilot.system import processes
processes._parents = None  # nobody may look at all processes of the machine
print(processes.kill_tree(os.getpid()))
"""


def test_a_process_without_children_has_nothing_to_look_for() -> None:
    done = subprocess.run([sys.executable, "-c", NONE_BENEATH], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
