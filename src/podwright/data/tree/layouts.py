"""How datasets lay their files out: which columns lie in a path, and which files make a sample.

A layout is data: regular expressions that DuckDB applies to whole columns (RE2: no look-around). Packages add their own
through the entry point group `podwright.layouts`, each entry a `Layout`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Literal

GROUP = "podwright.layouts"
_PICTURE = r"\.(?i:png|jpe?g|bmp|webp|tiff?)$"

LabelSource = Literal["colours", "coco", "folders", "yolo", "kitti"]


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column whose values are the first group of a pattern in a file's folder (ending in /), name or whole path."""

    name: str
    kind: Literal["text", "whole"]
    part: Literal["folder", "name", "path"]
    pattern: str
    others: tuple[str, ...] = ()
    """Patterns for what the first does not fit."""
    values: tuple[str, ...] = ()
    """Where there are some: the value that each pattern stands for."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return all patterns, in the order in which they are tried."""
        return self.pattern, *self.others


@dataclass(frozen=True, slots=True)
class FileRole:
    """What a file is to its sample: the one whose columns have these values."""

    name: str
    where: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay a dataset out."""

    name: str
    mark: str
    """A pattern of paths below the root."""
    least_share: float
    """The share of all files that fit the mark from which on a tree is taken for this layout."""
    columns: tuple[TypedColumn, ...] = ()
    key: tuple[str, ...] = ()
    """The columns that all files of one sample have in common; none: each file is a sample."""
    roles: tuple[FileRole, ...] = ()
    """Of a sample; the first is what a model sees. A file that fits none belongs to no sample."""
    needs: tuple[str, ...] = ()
    """Roles without which there is no sample."""
    group: str | None = None
    """The column of what belongs together and may not be torn apart by a split."""
    labels: LabelSource | None = None
    label_role: str = ""
    """The role of the file that class counts belong to."""
    classes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Of label images: names and the colours that mean them, as 0xrrggbb; none: the dataset's own list tells."""
    beside: tuple[str, ...] = ()
    """Files and folders below the root that programs want beside the samples, where they are there."""
    written: str = ""
    """The text of a layout that a user wrote: a catalog and a selection keep it."""

    @property
    def kept(self) -> str:
        """Return what a catalog keeps of it: its name, or where nobody else knows it the text."""
        return self.written or self.name


A2D2 = Layout(
    name="a2d2",
    mark=r"(?:^|/)\d{8}_\d{6}/(?:camera|label|lidar)/cam_\w+/[^/]+$",
    least_share=0.2,
    columns=(
        TypedColumn("scene", "text", "folder", r"(?:^|/)(\d{8}_\d{6})/(?:camera|label|lidar)/cam_\w+/$"),
        TypedColumn("camera", "text", "folder", r"(?:^|/)\d{8}_\d{6}/(?:camera|label|lidar)/cam_(\w+)/$"),
        TypedColumn("kind", "text", "folder", r"(?:^|/)\d{8}_\d{6}/(camera|label|lidar)/cam_\w+/$"),
        TypedColumn("frame", "whole", "name", r"^\d{14}_(?:camera|label|lidar)_[a-z]+_(\d{1,18})\.[a-z]+$"),
    ),
    key=("scene", "camera", "frame"),
    roles=(
        FileRole("image", {"kind": "camera", "ext": "png"}),
        FileRole("label", {"kind": "label", "ext": "png"}),
        FileRole("json", {"kind": "camera", "ext": "json"}),
    ),
    needs=("image", "label"),
    group="scene",
    labels="colours",
    label_role="label",
    beside=("class_list.json", "camera_lidar_semantic/class_list.json", "cams_lidars.json"),
)

COCO = Layout(
    name="coco",
    mark=r"(?:^|/)annotations/instances_[^/]+\.json$",
    least_share=0.0,
    columns=(
        TypedColumn("split", "text", "folder", r"(?:^|/)([^/]+)/$"),
        TypedColumn("image_id", "whole", "name", r"^(?:.*_)?0*(\d{1,18})" + _PICTURE),
        TypedColumn("kind", "text", "name", r"\.(?i:(png|jpe?g|json))$"),
    ),
    roles=(FileRole("image", {"kind": "jpg"}), FileRole("image", {"kind": "jpeg"}), FileRole("image", {"kind": "png"})),
    needs=("image",),
    group=None,
    labels="coco",
    label_role="image",
    beside=("annotations",),
)

WEBDATASET = Layout(
    name="webdataset",
    mark=r"[^/]*\d{3,}\.tar$",
    least_share=0.5,
    columns=(
        TypedColumn("set", "text", "name", r"^(.*?)[-_]?\d{3,}\.tar$"),
        TypedColumn("shard", "whole", "name", r"(\d{3,18})\.tar$"),
    ),
    roles=(FileRole("image", {"ext": "tar"}),),
    needs=("image",),
)

_CITY = r"(?:^|/)(?:leftImg8bit|gtFine|gtCoarse)/[^/]+/"
_CITYSCAPES_IDS = """unlabeled, ego vehicle, rectification border, out of roi, static, dynamic, ground, road, sidewalk,
    parking, rail track, building, wall, fence, guard rail, bridge, tunnel, pole, polegroup, traffic light,
    traffic sign, vegetation, terrain, sky, person, rider, car, truck, bus, caravan, trailer, train,
    motorcycle, bicycle"""


def grey_of(number: int) -> int:
    """Return the colour of a pixel in a label image whose grey is the number of a class."""
    return number << 16 | number << 8 | number


def _cityscapes_classes() -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the classes by their numbers, as cityscapesScripts (helpers/labels.py) has them."""
    names = [" ".join(name.split()) for name in _CITYSCAPES_IDS.split(",")]
    return tuple((name, (grey_of(number),)) for number, name in enumerate(names))


CITYSCAPES = Layout(
    name="cityscapes",
    mark=r"(?:^|/)(?:leftImg8bit|gtFine)/[^/]+/[^/]+/[^/]+_(?:leftImg8bit|gtFine_labelIds)\.png$",
    least_share=0.2,
    columns=(
        TypedColumn("split", "text", "folder", r"(?:^|/)(?:leftImg8bit|gtFine|gtCoarse)/([^/]+)/[^/]+/$"),
        TypedColumn("city", "text", "folder", _CITY + r"([^/]+)/$"),
        TypedColumn("kind", "text", "name", r"_\d+_\d+_(leftImg8bit|gt(?:Fine|Coarse)_\w+)\.\w+$"),
        TypedColumn("frame", "text", "name", r"^(.+_\d+_\d+)_(?:leftImg8bit|gt(?:Fine|Coarse)_\w+)\.\w+$"),
    ),
    key=("frame",),
    roles=(FileRole("image", {"kind": "leftImg8bit"}), FileRole("label", {"kind": "gtFine_labelIds"})),
    needs=("image", "label"),
    group="city",
    labels="colours",
    label_role="label",
    classes=_cityscapes_classes(),
)

YOLO = Layout(
    name="yolo",
    mark=r"(?:^|/)labels/(?:[^/]+/)?[^/]+\.txt$",
    least_share=0.2,
    columns=(
        TypedColumn("split", "text", "folder", r"(?:^|/)(?:images/|labels/)?([^/]+)/(?:images/|labels/)?$"),
        TypedColumn("kind", "text", "folder", r"(?:^|/)(images|labels)/(?:[^/]+/)?$"),
        TypedColumn("stem", "text", "name", r"^(.*)\.[^.]+$"),
    ),
    key=("split", "stem"),
    roles=(FileRole("image", {"kind": "images"}), FileRole("label", {"kind": "labels"})),
    needs=("image",),
    labels="yolo",
    label_role="image",
    beside=("data.yaml",),
)

KITTI = Layout(
    name="kitti",
    mark=r"(?:^|/)(?:training|testing)/(?:image_2|label_2)/\d+\.(?:png|txt)$",
    least_share=0.2,
    columns=(
        TypedColumn("split", "text", "folder", r"(?:^|/)(training|testing)/[^/]+/$"),
        TypedColumn("kind", "text", "folder", r"(?:^|/)(?:training|testing)/([^/]+)/$"),
        TypedColumn("frame", "whole", "name", r"^(\d{1,18})\.[a-z]+$"),
    ),
    key=("split", "frame"),
    roles=(FileRole("image", {"kind": "image_2"}), FileRole("label", {"kind": "label_2"})),
    needs=("image",),
    labels="kitti",
    label_role="image",
)

IMAGES = Layout(
    name="images",
    mark=r"^(?:[^/]+/)?[^/]+/[^/]+" + _PICTURE,
    least_share=0.5,
    columns=(
        TypedColumn("split", "text", "folder", r"^([^/]+)/[^/]+/$"),
        TypedColumn("label", "text", "folder", r"^(?:[^/]+/)?([^/]+)/$"),
        TypedColumn("kind", "text", "name", r"\.(?i:(png|jpe?g|bmp|webp|tiff?))$"),
    ),
    roles=tuple(FileRole("image", {"ext": name}) for name in ("png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff")),
    needs=("image",),
    labels="folders",
    label_role="image",
)

PLAIN = Layout(name="plain", mark="", least_share=0.0, roles=(FileRole("image", {}),), needs=("image",))
"""Any tree: nothing is read from its paths, and each file is a sample."""


@cache
def layouts() -> dict[str, Layout]:
    """Return all layouts in the order in which they are tried: those of other packages first, the plain one last."""
    every = {entry.name: entry.load() for entry in entry_points(group=GROUP)}
    return every | {layout.name: layout for layout in (A2D2, COCO, CITYSCAPES, YOLO, KITTI, WEBDATASET, IMAGES, PLAIN)}


def sort_columns(layout: Layout) -> Sequence[str]:
    """Return the typed columns in the order by which rows are sorted, so that zone maps help what is asked most."""
    return [column.name for column in layout.columns]
