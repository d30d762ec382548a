"""The form of a refusal."""

from __future__ import annotations

import pickle
import subprocess
import sys

from podwright.spec.problems import Problem, Refusal, refuse, short


def test_text_is_that_of_the_manual() -> None:
    refusal = Refusal(
        [
            Problem("workload.yaml", 5, 3, "resources.memroy", "unknown field", "did you mean `memory`?"),
            Problem(
                "workload.yaml", 9, 13, "launcher", '"torchruns" is not a launcher', "launcher is one of mpi, ranks"
            ),
            Problem("workload.yaml", 10, 1, "slurm", "is empty", "launcher is one of mpi, ranks"),
        ]
    )
    assert str(refusal) == (
        "workload.yaml:5:3: resources.memroy: unknown field\n"
        'workload.yaml:9:13: launcher: "torchruns" is not a launcher\n'
        "workload.yaml:10:1: slurm: is empty\n"
        "\n"
        "hint: memroy: did you mean `memory`?\n"
        "hint: launcher is one of mpi, ranks"
    )


def test_one_problem_needs_no_name_in_its_hint() -> None:
    problem = Problem("workload.yaml", 5, 3, "resources.memroy", "unknown field", "did you mean `memory`?")
    assert str(Refusal([problem])).endswith("\n\nhint: did you mean `memory`?")


def test_parts_that_are_not_there_leave_no_trace() -> None:
    assert str(refuse("there is no such run")) == "there is no such run"
    assert str(refuse("is empty", file="a.yaml", hint="fill it")) == "a.yaml: is empty\n\nhint: fill it"
    assert refuse("cannot be reached", exit_code=3).exit_code == 3


def test_json_has_exactly_the_keys_of_the_contract() -> None:
    refusal = refuse("is empty", hint="fill it", field="env", file="a.yaml")
    assert refusal.as_json() == {
        "errors": [
            {"file": "a.yaml", "line": None, "column": None, "field": "env", "message": "is empty", "hint": "fill it"}
        ]
    }


def test_refusal_travels_between_processes() -> None:
    refusal = refuse("is empty", exit_code=3)
    copy = pickle.loads(pickle.dumps(refusal))
    assert (copy.problems, copy.exit_code) == (refusal.problems, 3)


def test_what_users_wrote_is_shown_on_one_short_line() -> None:
    assert short("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert len(short("x" * 1000)) == 60
    assert short("größe") == "größe"


def test_refusing_costs_no_pydantic() -> None:
    code = (
        "import sys; from podwright.spec.problems import Refusal; from podwright import spec; spec.expand_hosts('a');"
        "assert not {'pydantic', 'yaml'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
