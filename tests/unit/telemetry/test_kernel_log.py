"""XIDs in the kernel's log: lines, files that are begun anew, the journal, and whose they were."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podwright.pilot.sensors.xids import XIDS
from podwright.telemetry.exporter.heads import XID_ACTIONS
from podwright.telemetry.exporter.jobs import Owner
from podwright.telemetry.exporter.kernel_log import KernelJournal, LogFile, XidCounts, XidLine, action_of, parse

LINE = "1700000000.123456 n1 kernel: NVRM: Xid (PCI:0000:1b:00): %d, pid='<unknown>', name=<unknown>, text"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (LINE % 79, XidLine("0000:1b:00.0", 79, 1700000000.123456)),
        ("[  12.5] NVRM: Xid (PCI:00000009:1B:00): 94, pid=7", XidLine("0009:1b:00.0", 94, 5.0)),
        ("NVRM: Xid (0000:07:00): 13, Graphics Exception", XidLine("0000:07:00.0", 13, 5.0)),
        ("NVRM: GPU at PCI:0000:1b:00: GPU-1234", None),
        ("nvidia-nvswitch0: SXid (PCI:0000:1b:00.0): 12028, Non-fatal", None),
        ("someone wrote Xid 79", None),
    ],
)
def test_a_line_is_read_with_its_gpu_and_its_time(line: str, expected: XidLine | None) -> None:
    assert parse(line, 5.0) == expected


def test_each_xid_has_one_thing_to_do() -> None:
    found = {number: action_of(number) for number in range(1, 200)}
    assert set(found.values()) <= set(XID_ACTIONS)
    picked = {13: "restart_run", 48: "check", 63: "note", 64: "reset", 74: "check", 79: "reboot", 94: "restart_run"}
    assert {number: found[number] for number in picked} == picked
    assert {number for number in XIDS if found[number] == "reboot"} == {79}


def test_a_file_that_is_begun_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_text("one\ntwo\nhal")
    log = LogFile(str(path))
    assert log.lines() == ["one", "two"]
    with path.open("a") as file:
        file.write("f\n")
    assert log.lines() == ["half"]
    path.rename(tmp_path / "kern.log.1")
    path.write_text("three\n")
    assert log.lines() == ["three"]
    path.write_text("4\n")
    assert log.lines() == ["4"]


def test_the_journal_is_followed_and_its_end_is_told(tmp_path: Path) -> None:
    program = tmp_path / "journalctl.py"
    asked = tmp_path / "asked"
    program.write_text(
        f"import sys\nprint('noise')\nprint({LINE % 79!r})\nopen({str(asked)!r}, 'w').write(sys.argv[-1])\n"
    )
    journal = KernelJournal((sys.executable, str(program)))
    lines: list[str] = []
    while not lines:
        lines += journal.lines()
    assert [parse(line, 0.0) for line in lines] == [XidLine("0000:1b:00.0", 79, 1700000000.123456)]

    def go_on() -> None:
        while True:
            journal.lines()

    with pytest.raises(OSError, match="journalctl has ended"):
        go_on()
    assert asked.read_text() == "_TRANSPORT=kernel"
    journal.close()


def test_an_xid_is_of_the_run_that_held_the_gpu_when_it_came() -> None:
    waiting = [LINE % 13]
    owners = [Owner("one", "ann"), Owner("two", "bob")]

    def lines() -> list[str]:
        found, waiting[:] = list(waiting), []
        return found

    counts = XidCounts(lines, {"0000:1b:00.0": "3"}.__getitem__, lambda gpu: owners[0])
    # What was in the log before the exporter was there is of nobody who holds the GPU now.
    first = {dict(sample.labels)["run"] for sample in counts.read(0.0)}
    waiting += [LINE % 94, LINE % 94]
    counts.read(1.0)
    owners.reverse()
    waiting.append(LINE % 94)
    told = {}
    for sample in counts.read(2.0):
        labels = dict(sample.labels)
        if sample.name.endswith("_total"):
            told[labels["xid"], labels["run"], labels["gpu"], labels["action"]] = sample.value
    assert first == {""}
    assert told == {
        ("13", "", "3", "restart_run"): 1,
        ("94", "one", "3", "restart_run"): 2,
        ("94", "two", "3", "restart_run"): 1,
    }
    assert counts.last == {"3": 94}


def test_a_gpu_that_is_found_later_has_its_number_for_what_was_told_before() -> None:
    waiting, known = [LINE % 79], dict[str, str]()

    def lines() -> list[str]:
        found, waiting[:] = list(waiting), []
        return found

    counts = XidCounts(lines, lambda pci: known.get(pci, pci), lambda gpu: Owner())
    before = {dict(sample.labels)["gpu"] for sample in counts.read(0.0)}
    known["0000:1b:00.0"] = "3"
    after = {dict(sample.labels)["gpu"] for sample in counts.read(1.0)}
    assert (before, after, counts.last) == ({"0000:1b:00.0"}, {"3"}, {"3": 79})
