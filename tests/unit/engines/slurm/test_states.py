"""What Slurm's states and reasons mean for a run, to the word."""

from __future__ import annotations

import pytest

from podwright.engines.base import Status
from podwright.engines.slurm.states import REASONS, STATES, seen, waiting_words

SEEN = {
    ("PENDING", ""): Status("waiting", "waits in the queue"),
    ("PENDING", "None"): Status("waiting", "waits in the queue"),
    ("PENDING", "(Resources)"): Status("waiting", "is next: it waits for nodes to become free"),
    ("PENDING", "ReqNodeNotAvail, UnavailableNodes:dgx[003-004]"): Status(
        "waiting", "waits for nodes that are down, drained or reserved"
    ),
    ("RUNNING", "None"): Status("there"),
    ("CONFIGURING", ""): Status("waiting", "has its nodes, which are still starting"),
    ("COMPLETED", ""): Status("gone", "", "succeeded", told=True),
    ("CANCELLED by 1000", ""): Status("gone", "was cancelled", "cancelled"),
    ("CANCELLED+", ""): Status("gone", "was cancelled", "cancelled"),
    ("FAILED", "NonZeroExitCode"): Status("gone", "ended with an error", "failed"),
    ("OUT_OF_MEMORY", ""): Status("gone", "used more memory than it had asked for", "failed"),
    ("CANCELLED,COMPLETING", ""): Status("there", "is ending: its last processes are being cleared away"),
    ("PENDING,REQUEUED", "BeginTime"): Status("waiting", "may not start yet: a job that was put back waits a little"),
    ("SOMETHING_NEW", ""): Status("there", "is something_new"),
    ("", ""): Status("there"),
}


@pytest.mark.parametrize(("said", "meant"), SEEN.items())
def test_seen(said: tuple[str, str], meant: Status) -> None:
    assert seen(*said) == meant


# As `man squeue` of 22.05 to 26.05 lists them, with the flags that JSON alone shows.
ALL_STATES = """
BOOT_FAIL CANCELLED COMPLETED CONFIGURING COMPLETING DEADLINE EXPEDITING FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY
PENDING POWER_UP_NODE PREEMPTED RECONFIG_FAIL REQUEUED REQUEUE_FED REQUEUE_HOLD RESIZING RESV_DEL_HOLD REVOKED RUNNING
SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED SUSPENDED TIMEOUT UPDATE_DB
"""


def test_every_state_is_known() -> None:
    assert sorted(ALL_STATES.split()) == sorted(STATES)


def test_an_end_has_an_outcome_and_nothing_else_has() -> None:
    ended = {name for name, row in STATES.items() if row.outcome}
    assert ended == {name for name, row in STATES.items() if row.seen == "gone"} - {"REVOKED"}


LIMITS = {
    "QOSMaxJobsPerUserLimit": "waits: you use as much as the quality of service allows one user (jobs)",
    "QOSMaxGRESPerUser": "waits: you use as much as the quality of service allows one user (GPUs)",
    "QOSMaxSubmitJobPerUserLimit": "waits: you use as much as the quality of service allows one user (waiting jobs)",
    "QOSGrpNodeLimit": "waits: the quality of service is at its limit (nodes)",
    "QOSGrpMemoryRunMinutes": "waits: the quality of service is at its limit (minutes of memory)",
    "AssocGrpGRES": "waits: the account is at its limit (GPUs)",
    "AssocGrpCPUMinutesLimit": "waits: the account is at its limit (minutes of cores)",
    "AssocGrpBillingMinutes": "waits: the account is at its limit (minutes of budget)",
    "AssocMaxJobsLimit": "waits: the account is at its limit (jobs)",
    "AssocMaxWallDurationPerJobLimit": "asks for more time than the account allows for one job",
    "QOSMaxMemoryPerNode": "asks for more memory than the quality of service allows for one node",
    "QOSMinGRES": "asks for less than the quality of service demands (GPUs)",
    "QOSMinCpuNotSatisfied": "asks for less than the quality of service demands (cores)",
    "MaxGRESPerAccount": "waits: the account is at its limit (GPUs)",
    "Nonsense": "waits: Slurm says Nonsense",
}


@pytest.mark.parametrize(("reason", "words"), LIMITS.items())
def test_limits_have_words(reason: str, words: str) -> None:
    assert waiting_words(reason) == words


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_are_sentences_without_a_subject(reason: str) -> None:
    words = waiting_words(reason)
    assert words == REASONS[reason]
    assert words[0].islower()
    assert words[-1] not in ".!"
    assert waiting_words(reason.replace(" ", "_")) == words, "as newer ones write a sentence"
