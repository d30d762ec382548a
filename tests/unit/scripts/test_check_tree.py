"""The tree's own rules: each finds what it is for, and lets pass what is right beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

import pytest

from scripts import check_tree
from scripts.tree import density, docstrings, doors, imports, rules, sizes, suite, texts, twins
from scripts.tree.sources import Finding, Source

Find = Callable[[Sequence[Source]], Iterable[Finding]]

A = "src/podwright/a.py"
B = "src/podwright/b.py"
CLI = "src/podwright/cli/a.py"
TEST = "tests/unit/test_a.py"


def sources(files: dict[str, str]) -> list[Source]:
    return [Source(PurePosixPath(path), text, len(text)) for path, text in files.items()]


def places(find: Find, files: dict[str, str]) -> list[str]:
    return [str(finding) for finding in sorted(find(sources(files)))]


WORDS: list[tuple[str, str, list[str]]] = [
    ("a.py", "x = 1\n", []),
    ("a.py", "x = 1  # TO" + "DO\n", ["a.py:1: `TO" + "DO`: finish it or leave it out"]),
    ("a.md", "ok\nfor" + " now\n", ["a.md:2: `for" + " now`: finish it or leave it out"]),
    (
        "lock.txt",
        "pypi." + "org\n",
        ["lock.txt:1: `pypi." + "org`: the machine's own settings say where packages come from"],
    ),
    ("src/utils.py", "\n", ["src/utils.py:1: `utils` says nothing: name the noun"]),
]


@pytest.mark.parametrize(("path", "text", "findings"), WORDS)
def test_unfinished_words_registries_and_empty_names_are_found(path: str, text: str, findings: list[str]) -> None:
    assert places(texts.unfinished_words, {path: text}) == findings


def test_a_large_file_is_found_by_its_bytes() -> None:
    files = [Source(PurePosixPath("a.bin"), "", 1_000_000), Source(PurePosixPath("b.bin"), "", 1_000_001)]
    assert [str(finding) for finding in texts.large_files(files)] == ["b.bin:1: 1000001 bytes, at most 1000000"]


@pytest.mark.parametrize("folder", ["src", "scripts", "programs", "benchmarks"])
def test_a_file_has_at_most_400_lines(folder: str) -> None:
    path = f"{folder}/a.py"
    assert places(sizes.long_files, {path: "x = 1\n" * 400}) == []
    assert places(sizes.long_files, {path: "x = 1\n" * 401}) == [
        f"{path}:1: 401 lines, at most 400: a noun is hiding in it"
    ]


def test_a_function_has_at_most_40_lines() -> None:
    assert places(sizes.long_functions, {A: "def f():\n" + "    x = 1\n" * 39}) == []
    assert places(sizes.long_functions, {A: "def f():\n" + "    x = 1\n" * 40}) == [
        f"{A}:1: f has 41 lines, at most 40"
    ]


def test_files_and_functions_of_tests_may_be_longer() -> None:
    text = "def test_f():\n" + "    x = 1\n" * 500
    assert places(sizes.long_files, {TEST: text}) == []
    assert places(sizes.long_functions, {TEST: text}) == []


def test_a_class_of_250_lines_is_left_alone_and_a_longer_one_found() -> None:
    assert places(sizes.long_classes, {A: "class A:\n" + "    x = 1\n" * 249}) == []
    assert places(sizes.long_classes, {A: "class A:\n" + "    x = 1\n" * 250}) == [
        f"{A}:1: A has 251 lines, at most 250"
    ]


def test_comment_and_docstring_lines_are_told_apart_from_strings() -> None:
    text = (
        '"""One.\n\n# no comment\n"""\n# a comment\nx = """\n# no comment\n"""  # beside code\nx: int\n"""A field."""\n'
    )
    (source,) = sources({A: text})
    assert sizes.comment_lines(source) == 1
    assert sizes.docstring_lines(source) == 5


def test_a_percentile_is_a_value_of_the_list() -> None:
    lengths = list(range(1, 11))
    assert (sizes.percentile(lengths, 0.5), sizes.percentile(lengths, 0.9)) == (5, 9)
    assert (sizes.percentile([7], 0.9), sizes.percentile([], 0.5)) == (7, 0)


LOOP = """\
def f(rows, limit):
    '''Sum.'''
    total = 0
    for row in rows:
        total += row.size
    return min(total, limit)
"""
SAME = """\
class C:
    def g(self, top: int) -> int:
        n = 0
        for x in self:
            n += x.size
        return min(n, top)
"""
FROM_TWINS = [f"{A}:1: f is also written at {B}:2", f"{B}:2: g is also written at {A}:1"]


def test_a_body_written_twice_is_found_under_other_names() -> None:
    assert places(twins.twin_functions, {A: LOOP, B: SAME}) == FROM_TWINS


def test_twins_count_once_however_many_there_are() -> None:
    files = sources({A: LOOP, B: SAME, "src/podwright/pilot/c.py": LOOP})
    findings = list(twins.twin_functions(files))
    assert (len(findings), rules.count_subjects(files, findings)) == (3, 1)


@pytest.mark.parametrize(
    "other",
    [
        SAME.replace("x.size", "x.bytes"),
        SAME.replace("n = 0", "n = 1"),
        SAME.replace("min(n, top)", "min(top, n)"),
        SAME.replace("return min", "return max"),
    ],
)
def test_a_body_that_does_something_else_is_no_twin(other: str) -> None:
    assert places(twins.twin_functions, {A: LOOP, B: other}) == []


def test_equal_names_of_different_modules_make_no_twin() -> None:
    body = "def find(folder):\n    kept = shape.read(folder)\n    return Lab(folder, *kept)\n"
    slurm, kubernetes = f"from podwright.lab import shape\n{body}", f"from podwright.kube import shape\n{body}"
    assert places(twins.twin_functions, {A: slurm, B: kubernetes}) == []
    assert len(places(twins.twin_functions, {A: slurm, B: slurm})) == 2


@pytest.mark.parametrize(
    "text",
    [
        "def f(a, b, c):\n    '''Do it.'''\n    ...\n",
        "def f(self):\n    raise NotImplementedError('what a subclass does')\n",
        "def f(self):\n    return self.rows[0]\n",
    ],
)
def test_stubs_and_very_short_bodies_are_no_twins(text: str) -> None:
    assert places(twins.twin_functions, {A: text, B: text}) == []


def test_a_public_class_name_defined_twice_is_found_unless_it_is_listed() -> None:
    files = sources({A: "class Row: ...\nclass _Own: ...\n", B: "class _Own: ...\n\nclass Row: ...\nclass Once: ...\n"})
    assert [str(finding) for finding in twins.class_names(files, {})] == [
        f"{A}:1: class Row is defined 2 times: say what it is",
        f"{B}:3: class Row is defined 2 times: say what it is",
    ]
    assert list(twins.class_names(files, {"Row": "both are rows of the same table"})) == []


PATCHED = [
    "monkeypatch.setattr(os, 'write', refuse)",
    "patch.setattr(os, 'write', refuse)",
    "setattr(workload, 'nodes', 2)",
    "mock.patch('os.write')",
    "mocker.patch.object(os, 'write')",
    "unittest.mock.patch('os.write')",
]


@pytest.mark.parametrize("call", PATCHED)
def test_a_patch_is_found(call: str) -> None:
    assert places(suite.patches, {TEST: f"{call}\n"}) == [f"{TEST}:1: {call}"]


def test_a_bare_patch_counts_where_it_comes_from_mock() -> None:
    text = "with patch.object(os, 'write'):\n    patch('os.read')\n"
    assert places(suite.patches, {TEST: text}) == []
    assert len(places(suite.patches, {TEST: f"from unittest.mock import patch\n{text}"})) == 2


@pytest.mark.parametrize("call", ["monkeypatch.setenv('A', 'b')", "monkeypatch.chdir(folder)", "api.patch(path, body)"])
def test_what_replaces_no_attribute_is_no_patch(call: str) -> None:
    assert places(suite.patches, {TEST: f"{call}\n"}) == []
    assert places(suite.patches, {A: "setattr(x, 'y', 1)\n"}) == []


def test_patches_are_counted_per_100_test_functions() -> None:
    parametrised = "@pytest.mark.parametrize('x', [1, 2])\ndef test_x(x): ...\n"
    text = f"{parametrised}def test_y():\n    setattr(a, 'b', 1)\ndef f(): ...\n"
    files = sources({TEST: text, "tests/fakes/program.py": "def test_no_test(): ...\n"})
    assert suite.per_100_tests(files, list(suite.patches(files))) == 50


def test_a_test_that_cannot_fail_is_found() -> None:
    assert places(suite.tests_without_asserts, {TEST: "def test_x():\n    print(1)\n"}) == [
        f"{TEST}:1: test_x asserts nothing"
    ]
    assert places(suite.tests_without_asserts, {TEST: "def test_x():\n    assert f() == 1\n"}) == []


def test_ternaries_are_counted_per_100_lines_that_are_not_blank() -> None:
    files = sources({A: "x = 1 if y else 2\n\n# why\nif y:\n    x = 3\n", TEST: "x = 1 if y else 2\n"})
    findings = list(density.ternaries(files))
    assert [str(finding) for finding in findings] == [f"{A}:1: x = 1 if y else 2"]
    assert density.per_100_lines(files, findings) == 25


NESTED = [
    "x = [[c for c in b] for b in a]",
    "x = [b for b in a if any(c for c in b)]",
    "x = {b for b in [c for c in a]}",
    "x = {k: sorted(f(c) for c in v) for k, v in a}",
    "x = [(lambda: [c for c in b]) for b in a]",
]


@pytest.mark.parametrize("line", NESTED)
def test_a_comprehension_within_another_is_found(line: str) -> None:
    assert places(density.dense_comprehensions, {A: f"{line}\n"}) == [
        f"{A}:1: a comprehension in a comprehension: {line}"
    ]


def test_a_comprehension_with_two_clauses_is_found() -> None:
    line = "x = [c for b in a for c in b]"
    assert places(density.dense_comprehensions, {A: f"{line}\n"}) == [f"{A}:1: a comprehension with two `for`: {line}"]


def test_comprehensions_beside_each_other_pass() -> None:
    assert places(density.dense_comprehensions, {A: "x = f([b for b in a], {c for c in a if c})\n"}) == []


RUNS = "src/podwright/runs/a.py"


def test_a_public_name_without_a_docstring_is_found() -> None:
    private = "    def __len__(self): ...\n    def _own(self): ...\n"
    text = f"def f(): ...\nclass C:\n    @property\n    def size(self): ...\n{private}"
    assert places(docstrings.missing_docstrings, {RUNS: text, "src/podwright/design/a.py": text}) == [
        f"{RUNS}:1: f has no docstring",
        f"{RUNS}:2: C has no docstring",
        f"{RUNS}:4: size has no docstring",
    ]


def test_private_nested_and_overloaded_definitions_need_no_docstring() -> None:
    text = (
        "def f():\n    '''Do it.'''\n    def inner(): ...\n"
        "class _Own:\n    def g(self): ...\n"
        "@overload\ndef h(): ...\n"
        "class C:\n    '''A thing.'''\n    @size.setter\n    def size(self, value): ...\n"
    )
    assert places(docstrings.missing_docstrings, {RUNS: text}) == []


PROTOCOL = (
    "class Shelf(Protocol):\n    '''A shelf.'''\n    def put(self):\n        '''Put.'''\n    def take(self): ...\n"
)
SHELF = "class Box:\n    '''A box.'''\n    def put(self): ...\n    def take(self): ...\n"


def test_a_method_that_a_protocol_documents_needs_no_docstring_of_its_own() -> None:
    assert places(docstrings.missing_docstrings, {A: PROTOCOL, RUNS: SHELF}) == [f"{RUNS}:4: take has no docstring"]


def test_a_class_that_lacks_a_method_of_the_protocol_documents_its_own() -> None:
    only_put = SHELF.replace("    def take(self): ...\n", "")
    assert places(docstrings.missing_docstrings, {A: PROTOCOL, RUNS: only_put}) == [f"{RUNS}:3: put has no docstring"]


@pytest.mark.parametrize(
    "text",
    ["Return the rows.", "Start it.", "Pass it on.", "Process rows, in order.", "Bring it", "Re-read it.", "Feed."],
)
def test_an_imperative_docstring_passes(text: str) -> None:
    assert docstrings.is_imperative(text)


NOT_IMPERATIVE = [
    *("Returns rows.", "Refuses, with words.", "Imported by name.", "Deleting it.", "Made of rows."),
    *("The rows.", "A row", "What it is.", "Whether it is.", "Slurm's own.", "GPU hours."),
    *("`rank 3`", "(a, b)", "0.712", "start it", ""),
]


@pytest.mark.parametrize("text", NOT_IMPERATIVE)
def test_a_docstring_that_begins_without_an_imperative_is_known(text: str) -> None:
    assert not docstrings.is_imperative(text)


def test_only_functions_are_held_to_the_form_private_ones_too() -> None:
    text = (
        "'''The module.'''\nclass C:\n    '''A thing.'''\n    def _f(self):\n        '''The size.\n\n        More.'''\n"
    )
    assert places(docstrings.docstring_forms, {A: text, TEST: text}) == [f"{A}:5: _f: The size."]


CYCLES = {
    "at the top": "from podwright import b\n",
    "in a function": "def f():\n    import podwright.b\n",
    "for types": "if TYPE_CHECKING:\n    from podwright.b import Row\n",
    "relative": "from .b import Row\n",
    "by a table": "HOMES = {'Row': 'podwright.b'}\nimport_module(HOMES[name])\n",
}


@pytest.mark.parametrize("text", CYCLES.values(), ids=CYCLES.keys())
def test_a_cycle_is_found_wherever_the_import_stands(text: str) -> None:
    files = sources({A: text, B: "from podwright.c import x\n", "src/podwright/c.py": "import podwright.a\n"})
    findings = list(imports.import_cycles(files))
    assert sorted(finding.path.name for finding in findings) == ["a.py", "b.py", "c.py"]
    assert findings[0].text == "imports podwright.b -> podwright.c -> podwright.a; 3 modules in this cycle"
    assert rules.count_subjects(files, findings) == 1


def test_two_cycles_are_two() -> None:
    names = {"a": "b", "b": "a", "c": "d", "d": "c"}
    files = sources({f"src/podwright/{name}.py": f"import podwright.{other}\n" for name, other in names.items()})
    assert rules.count_subjects(files, list(imports.import_cycles(files))) == 2


def test_a_package_that_imports_its_modules_is_no_cycle() -> None:
    files = {
        "src/podwright/runs/__init__.py": "from podwright.runs.store import Store\n",
        "src/podwright/runs/store.py": "from podwright.runs import states\n",
        "src/podwright/runs/states.py": "import os\n",
    }
    assert places(imports.import_cycles, files) == []
    files["src/podwright/runs/states.py"] = "from podwright.runs import Store\n"
    assert len(places(imports.import_cycles, files)) == 3


ENGINES = {
    "src/podwright/engines/__init__.py": "",
    "src/podwright/engines/base.py": "",
    "src/podwright/engines/images/__init__.py": "",
    "src/podwright/engines/images/layer.py": "",
    "src/podwright/engines/slurm/__init__.py": "",
    "src/podwright/engines/slurm/engine.py": "",
    "src/podwright/engines/local/__init__.py": "",
    "src/podwright/engines/local/engine.py": "",
}


def test_the_cli_imports_no_folder_of_engines() -> None:
    text = "def f():\n    from podwright.engines.slurm.engine import X\n    from podwright.engines import images\n"
    assert places(imports.cli_engine_imports, {**ENGINES, CLI: text}) == [
        f"{CLI}:2: the CLI imports podwright.engines.slurm.engine",
        f"{CLI}:3: the CLI imports podwright.engines.images",
    ]
    assert places(imports.cli_engine_imports, {**ENGINES, CLI: "from podwright.engines import base, name\n"}) == []
    assert places(imports.cli_engine_imports, {**ENGINES, A: text}) == []


def test_an_engine_imports_no_other_engine() -> None:
    path = "src/podwright/engines/slurm/engine.py"
    allowed = "from podwright.engines import base\nfrom podwright.engines.images import layer\n"
    text = f"{allowed}def f():\n    import podwright.engines.local.engine\n"
    assert places(imports.engine_imports, {**ENGINES, path: allowed}) == []
    assert places(imports.engine_imports, {**ENGINES, path: text}) == [
        f"{path}:4: podwright.engines.slurm imports podwright.engines.local.engine"
    ]


def test_the_cli_imports_at_the_top_only_what_loads_quickly() -> None:
    quick = "import os\nimport typer\nfrom podwright import launch, __version__\nfrom podwright.cli import b\n"
    quick += (
        "from podwright.spec.problems import refuse\nfrom podwright.theme import words\ndef f():\n    import rich\n"
    )
    slow = "from podwright import engines\nfrom podwright.launch.run import Run\nimport rich.console\n"
    assert places(doors.cli_top_imports, {CLI: quick, "src/podwright/spec/a.py": "import pydantic\n"}) == []
    assert places(doors.cli_top_imports, {CLI: slow}) == [
        f"{CLI}:{line}: imports {name} at the top: import it in the function that needs it"
        for line, name in enumerate(("podwright.engines", "podwright.launch.run", "rich.console"), 1)
    ]


def test_imports_in_functions_of_the_cli_are_found_once_each() -> None:
    text = "import os\ndef f():\n    import rich\n    def g():\n        from a import b\n"
    text += "class C:\n    def h(self):\n        import c\n"
    assert places(doors.lazy_imports, {CLI: text, A: text}) == [
        f"{CLI}:3: import rich",
        f"{CLI}:5: from a import b",
        f"{CLI}:8: import c",
    ]


def test_a_function_has_at_most_six_parameters_unless_it_is_a_command() -> None:
    many = "a, b, /, c, *d, e, **f"
    assert places(doors.many_parameters, {A: f"class C:\n    def f(self, {many}): ...\n"}) == []
    assert places(doors.many_parameters, {A: f"def pod_up_command(g, h, {many}): ...\n"}) == []
    assert places(doors.many_parameters, {A: f"def g(h, {many}): ...\n"}) == [
        f"{A}:1: g has 7 parameters: a noun holds them"
    ]


COMMAND = "src/podwright/cli/commands/run/a.py"
EFFECTS = (
    "import time\nimport http.server\ndef f():\n    from threading import Thread\nfrom podwright.clients import ssh\n"
)


def test_a_command_starts_nothing_by_itself() -> None:
    assert places(doors.command_effects, {COMMAND: EFFECTS, CLI: EFFECTS}) == [
        f"{COMMAND}:2: imports http.server: what needs it belongs behind a door",
        f"{COMMAND}:4: imports threading.Thread: what needs it belongs behind a door",
        f"{COMMAND}:5: imports podwright.clients.ssh: what needs it belongs behind a door",
    ]
    assert places(doors.command_effects, {COMMAND: "import http\nfrom podwright.clients import sshd\n"}) == []


def test_the_cli_goes_by_the_doors() -> None:
    bands = ("launch", "launch.run", "spec", "spec.loader", "engines", "cli.b")
    files = {f"src/podwright/{band.replace('.', '/')}/__init__.py": "" for band in bands}
    imported = "".join(f"import podwright.{band}\n" for band in bands)
    assert places(doors.cli_doors, {**files, CLI: imported, A: imported}) == [
        f"{CLI}:2: imports podwright.launch.run, past the door of its band",
        f"{CLI}:5: imports podwright.engines, past the door of its band",
    ]


def test_a_name_that_a_door_lacks_is_found() -> None:
    late = "from podwright.spec.late import late_names\nif TYPE_CHECKING:\n    from podwright.data.files import Row\n"
    door = f"{late}__getattr__ = late_names(__name__, __file__)\n"
    files = {"src/podwright/data/__init__.py": door, "src/podwright/data/files.py": "class Row: ...\n"}
    asked = "from podwright.data import Row, Table, files\nfrom podwright import data as d\nd.Row, d.Column\n"
    assert places(doors.door_names, {**files, A: asked}) == [
        f"{A}:1: podwright.data has no Table",
        f"{A}:3: podwright.data has no Column",
    ]


def test_code_lines_are_those_of_programs_and_manifests_without_prose() -> None:
    text = '"""One.\n\ntwo\n"""\n\n# why\nx = """a\n\nb"""\n'
    files = {A: text, "programs/a/run.yaml": "# why\na: 1\n\nb: 2\n", TEST: "x = 1\n", "src/a.md": "prose\n"}
    assert sizes.code_lines(sources(files)) == 2 + 2
    shown = sizes.code_lines_shown(sources(files))
    assert shown == "code lines of src, scripts, programs: 4, -63049 against 775c405f7"


LONG = rules.Rule("file-lines", "files over 400 lines", sizes.long_files)
TERNARIES = rules.Rule("ternaries", "ternaries per 100 lines", density.ternaries, density.per_100_lines, 1.9)
TWO_FOLDERS = {
    "src/podwright/runs/a.py": "x = 1 if y else 2\n" + "x = 1\n" * 400,
    "src/podwright/spec/a.py": "x = 1 if y else 2\n",
}


def checked() -> int:
    files = sources(TWO_FOLDERS)
    return check_tree.print_all([rules.apply(rule, files) for rule in (LONG, TERNARIES)], files)


def test_a_broken_rule_fails_and_prints_its_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked() == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "src/podwright/runs/a.py:1: 401 lines, at most 400: a noun is hiding in it"
    assert printed[2].split()[:4] == ["file-lines", "1", "0", "broken"]
    assert printed[3].split()[:4] == ["ternaries", "0.50", "1.90", "kept"]
    assert printed[-1] == "tree: broken: file-lines"


def test_a_folder_is_measured_by_itself() -> None:
    files = sources(TWO_FOLDERS)
    results = [rules.apply(rule, files) for rule in (LONG, TERNARIES)]
    folders = [PurePosixPath("src/podwright/runs"), PurePosixPath("src/podwright/spec")]
    rows = [line.split() for line in rules.folder_table(results, files, folders)]
    assert rows[:3] == [["runs", "spec"], ["file-lines", "1", "0"], ["ternaries", "0.25", "100"]]


def test_a_list_shows_only_what_lies_below_the_paths(capsys: pytest.CaptureFixture[str]) -> None:
    result = rules.apply(TERNARIES, sources(TWO_FOLDERS))
    check_tree.print_findings(result, [PurePosixPath("src/podwright/spec")])
    assert capsys.readouterr().out == "src/podwright/spec/a.py:1: x = 1 if y else 2\n"


def test_every_rule_has_a_name_of_its_own_and_every_listed_class_a_reason() -> None:
    names = [rule.name for rule in check_tree.RULES]
    assert len(set(names)) == len(names)
    assert [name for name, reason in check_tree.SAME_IDEA.items() if len(reason) < 10] == []
