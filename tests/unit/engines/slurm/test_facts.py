"""What is learnt of a cluster from what it answered: whole, for several generations of Slurm."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright import spec
from podwright.engines.slurm.facts import PROBE, VERSIONS, SlurmFacts, parse_probe, time_s, time_text
from tests.paths import CASES

PROBES = CASES / "slurm" / "probes"
NAMES = sorted(path.stem for path in PROBES.glob("*.txt"))


def facts_of(name: str) -> SlurmFacts:
    return parse_probe((PROBES / f"{name}.txt").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_probe(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(PROBES / f"{name}.json", json.dumps(facts_of(name).as_json(), indent=2) + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_facts_survive_being_stored(name: str) -> None:
    facts = facts_of(name)
    assert SlurmFacts.from_json(json.loads(json.dumps(facts.as_json()))) == facts


def test_every_generation_is_in_the_table() -> None:
    assert {facts_of(name).version for name in NAMES} <= set(VERSIONS)
    assert not facts_of("22.05-lab").generation.scontrol_json
    assert facts_of("26.05-cloud").generation.only_job_state


@pytest.mark.parametrize(("said", "known"), [("27.11.0", (26, 5)), ("25.08.1", (25, 5)), ("23.05.0", (23, 2))])
def test_an_unknown_generation_is_taken_for_the_one_before(said: str, known: tuple[int, int]) -> None:
    text = (PROBES / "25.05-mixed.txt").read_text().replace("slurm 25.05.3", f"slurm {said}")
    assert parse_probe(text).generation is VERSIONS[known]


MPI = {"22.05-lab": "pmix", "23.11-dgx": "pmix", "24.05-linear": None}


@pytest.mark.parametrize(("name", "plugin"), MPI.items())
def test_mpi_plugin(name: str, plugin: str | None) -> None:
    assert facts_of(name).mpi_plugin == plugin


def test_mpi_plugin_of_a_list_that_has_only_versions() -> None:
    text = (PROBES / "23.11-dgx.txt").read_text().replace("\tpmix\n", "").replace("MPI plugin", "srun: MPI plugin")
    assert parse_probe(text).mpi_plugin == "pmix_v4"


SAID = {
    "no Slurm": (
        "== version\nsh: 1: sinfo: not found\n== end\n",
        "Slurm is not on this host: sh: 1: sinfo: not found\n\n"
        "hint: Slurm's commands must be on the PATH of a shell that is not interactive; `login:` names the host",
        3,
    ),
    "no controller": (
        "== version\nslurm 24.05.1\n== config\n"
        "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)\n== end\n",
        "Slurm's controller does not answer: slurm_load_ctl_conf error: Unable to contact slurm contro...\n\n"
        "hint: try again later",
        3,
    ),
    "too old": (
        "== version\nslurm 20.11.9\n== end\n",
        "the cluster has Slurm 20.11; 22.05 is the oldest that is supported",
        2,
    ),
    "cut off": (
        "== version\nslurm 24.05.1\n== config\nClusterName = a\n",
        "the login node gave only a part of its answer\n\nhint: try again",
        3,
    ),
}


@pytest.mark.parametrize(("text", "words", "code"), SAID.values(), ids=SAID)
def test_no_facts(text: str, words: str, code: int) -> None:
    with pytest.raises(spec.Refusal) as caught:
        parse_probe(text)
    assert str(caught.value) == words
    assert caught.value.exit_code == code


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_probe_is_a_script(shell: str) -> None:
    assert shutil.which(shell)
    subprocess.run([shell, "-n"], input=PROBE, text=True, check=True)


TIMES = {
    "infinite": None,
    "UNLIMITED": None,
    "30": 1800,
    "10:30": 630,
    "4:00:00": 14400,
    "2-04": 187200,
    "1-00:00:30": 86430,
}


@pytest.mark.parametrize(("text", "seconds"), TIMES.items())
def test_times_as_slurm_writes_them(text: str, seconds: int | None) -> None:
    assert time_s(text) == seconds


@given(st.integers(1, 10**8))
def test_a_time_is_never_shortened_and_grows_by_less_than_a_minute(seconds: int) -> None:
    back = time_s(time_text(seconds))
    assert back is not None
    assert seconds <= back < seconds + 60
