"""The class table: 55 colours, 38 classes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from classes import Classes, a2d2_classes, class_of, read_classes, slug_of


def test_the_table_has_all_colours_and_classes() -> None:
    classes = a2d2_classes()
    assert len(classes.labels) == len(classes.ids) == 55
    assert len(classes.names) == len(set(classes.names)) == len(classes.colours) == 38


def test_numbered_colours_are_one_class() -> None:
    classes = a2d2_classes()
    car = classes.names.index("Car")
    assert [classes.ids[colour] for colour in (0xFF0000, 0xC80000, 0x960000, 0x800000)] == [car] * 4
    assert classes.colours[car] == "#ff0000"


@pytest.mark.parametrize(
    ("label", "name"),
    [("Car 3", "Car"), ("Sky", "Sky"), ("Utility vehicle 2", "Utility vehicle"), (" Poles ", "Poles")],
)
def test_class_of_a_label(label: str, name: str) -> None:
    assert class_of(label) == name


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Obstacles / trash", "obstacles-trash"), ("Painted driv. instr.", "painted-driv-instr"), ("Sky", "sky")],
)
def test_slug_of_a_class(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_the_list_beside_the_frames_counts(tmp_path: Path) -> None:
    (tmp_path / "class_list.json").write_text('{"#010203": "Tram 1", "#040506": "Tram 2", "#070809": "Rail"}')
    assert read_classes(tmp_path).names == ["Tram", "Rail"]
    assert read_classes(tmp_path).ids == {0x010203: 0, 0x040506: 0, 0x070809: 1}


def test_without_a_list_the_published_one_counts(tmp_path: Path) -> None:
    assert read_classes(tmp_path) == a2d2_classes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"red": "Car"}', '"red" is not a colour like "#rrggbb"'),
        ("[1]", "no attribute"),
        ("{", "Expecting property name"),
    ],
)
def test_a_wrong_list_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "class_list.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        read_classes(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/class_list.json: ")


def test_no_labels_no_classes() -> None:
    assert Classes({}).names == []
