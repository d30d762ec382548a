"""What NVIDIA's numbers of errors mean: one table for pilots, who see them of their own GPUs, and for the exporter."""

from __future__ import annotations

XIDS = {
    13: "a kernel raised an exception",
    31: "a kernel touched memory that is not mapped",
    32: "bad data in the command stream",
    38: "fault in the driver's firmware",
    43: "the program's work on the GPU was stopped after a fault",
    45: "the program's work on the GPU was cleared away",
    48: "uncorrectable memory error",
    61: "fault in the GPU's microcontroller",
    62: "the GPU's microcontroller stopped",
    63: "a bad memory row was noted, to be replaced at the next reset",
    64: "a bad memory row could not be noted",
    68: "fault in the video processor",
    69: "bad command of a kernel",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "many corrected memory errors",
    94: "uncorrectable memory error, contained to one program",
    95: "uncorrectable memory error that touches every program on the GPU",
    109: "a change of programs on the GPU took too long",
    119: "the GPU's system processor does not answer",
    120: "fault in the GPU's system processor",
    140: "memory error that could not be recovered",
    143: "the GPU could not be started",
    154: "the GPU asks to be recovered",
}


def meaning_of(number: int) -> str:
    """Return what an XID means, in words."""
    return XIDS.get(number, "an error of the GPU that NVIDIA numbers %d" % number)
