"""How pages are read, so that a page that lies cannot pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import loosen, mismatch, read_page

PAGE = """\
<!-- file: a.txt -->
```yaml
name: a
```

```console
$ cat a.txt \\
    | sort
name: a
$ true
```

<!-- needs: root -->
```console
$ reboot
```

<!-- exit: 2 -->
```console
$ true
$ podwright check gone.yaml
gone.yaml: no such file
```
"""


def test_a_page_is_read_into_steps_files_and_needs(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    page = read_page(path)
    assert [(step.line, step.command, step.output, step.exit_code) for step in page.steps] == [
        (7, "cat a.txt | sort", ("name: a",), 0),
        (10, "true", (), 0),
        (20, "true", (), 0),
        (21, "podwright check gone.yaml", ("gone.yaml: no such file",), 2),
    ]
    assert page.files == {"a.txt": "name: a\n"}
    assert page.needs == ("root",)
    assert not page.in_repository


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("run       segmentation-7f3k  on local", "run   segmentation-q2xz  on local", True),
        ("run       segmentation-7f3k  on local", "run   segmentation-q2xz  on slurm", False),
        ("mean_iou 0.71 in 2m 11s", "mean_iou 0.684 in 58 s", True),
        ("mean_iou 0.71 in 2m 11s", "mean_iou 0.684 in ages", False),
        ("local  2  3m  4 scenes", "local  2  1h 12m  4 scenes", True),
        ("local  2  3m  4 scenes", "local  2  3m  4 s", False),
        ("report file:///.../runs/hello-4k2d/report.html", "report file:///h/x/runs/hello-aaaa/report.html", True),
        ("report file:///.../runs/hello-4k2d/report.html", "report file:///h/x/runs/hello-aaaa/report.txt", False),
        ("ends at 10:41:07", "ends at 23:59:59", True),
        ("a (b) [c] *", "a (b) [c] *", True),
        ("a (b) [c] *", "a b c", False),
    ],
)
def test_only_ids_times_and_numbers_are_loose(shown: str, printed: str, fits: bool) -> None:
    assert bool(loosen(shown).fullmatch(printed)) is fits


@pytest.mark.parametrize(
    ("shown", "printed", "problem"),
    [
        (("a", "b"), ["a", "b"], None),
        (("a", "...", "d"), ["a", "b", "c", "d"], None),
        (("a", "..."), ["a", "b"], None),
        (("a",), ["a", "b"], "printed, but not shown: 'b'"),
        (("a", "b"), ["a"], "shown, but not printed there: 'b'"),
        (("b",), ["a", "b"], "shown, but not printed there: 'b'"),
    ],
)
def test_the_first_difference_is_named(shown: tuple[str, ...], printed: list[str], problem: str | None) -> None:
    assert mismatch(shown, printed) == problem
