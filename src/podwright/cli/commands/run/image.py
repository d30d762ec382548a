"""`image`: the image that a workload's `build:` describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import images, launch, spec
from podwright.cli.commands.pod.pods import print_objects
from podwright.cli.options import AsJson, WorkloadFile
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.files import in_words
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.images import StoredImage
    from podwright.launch import ClusterImage

OnPod = Annotated[
    str | None, typer.Option("--on", metavar="POD", help="An OpenShift pod that builds the image itself.")
]
FromGit = Annotated[
    str | None,
    typer.Option("--git", metavar="URL#REF:FOLDER", help="With --on: where the files beside the workload come from."),
]


def image_render_command(
    workload: WorkloadFile,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it into this file.")] = None,
    on: OnPod = None,
    git: FromGit = None,
    as_json: AsJson = False,
) -> None:
    """Print the Containerfile, by the same function that builds from it."""
    _check_options(on, {"--git": git}, {"--out": out})
    if on is not None:
        return print_objects(launch.ClusterImage(spec.load_workload(workload), on, git).objects, as_json)
    recipe = images.read_recipe(spec.load_workload(workload))
    if out is not None:
        with in_words(out):
            out.write_text(recipe.text, encoding="utf-8")
        output.say("wrote", str(out))
    if as_json:
        return output.print_json(recipe.as_json())
    if out is None:
        print(recipe.text, end="", flush=True)
    return None


def image_build_command(
    workload: WorkloadFile,
    squashfs: Annotated[
        Path | None, typer.Option("--squashfs", metavar="FILE", help="Also write it as one file, for Enroot.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Build it even if it is there.")] = False,
    on: OnPod = None,
    git: FromGit = None,
    as_json: AsJson = False,
) -> None:
    """Build the image, or find it built; its name goes to stdout."""
    _check_options(on, {"--git": git}, {"--squashfs": squashfs, "--again": again})
    loaded = spec.load_workload(workload)
    if on is not None:
        return _build_there(launch.ClusterImage(loaded, on, git), str(loaded.folder), as_json)
    image = images.build(loaded, again)
    written = None
    if squashfs is not None:
        written = f"{squashfs}, {figures.size(images.export(image.id, squashfs))}"
    if as_json:
        return output.print_json({**image.as_json(), "squashfs": str(squashfs) if squashfs else None})
    output.say("image", f"{image.name}, {_size(image)}")
    if written is not None:
        output.say("wrote", written)
    return print(image.name, flush=True)


def _check_options(on: str | None, only_there: Mapping[str, object], only_here: Mapping[str, object]) -> None:
    """Refuse what says nothing about an image that is built there, or here."""
    options, reason, hint = only_there, "is for images that a pod builds", "name the pod with `--on`"
    if on:
        options, reason, hint = only_here, "is for images that are built here", "leave `--on` out"
    for name, value in options.items():
        if value:
            raise refuse(reason, hint=hint, field=name)


def _build_there(image: ClusterImage, folder: str, as_json: bool) -> None:
    """Have a pod build the image; where files must be sent, say the command that sends them."""
    built = image.build()
    if as_json:
        return output.print_json(built.as_json())
    for item in built.objects:
        output.say(item.result, f"{item.kind} {item.namespace}/{item.name}")
    output.say(*built.what_now(folder))
    return print(built.name, flush=True)


def image_push_command(
    workload: WorkloadFile,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="Its name there, such as registry.example/team/toy.")],
    plain_http: Annotated[bool, typer.Option("--plain-http", help="The registry shows no certificate.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put the built image into a registry; its name with the digest goes to stdout."""
    pushed = images.push(spec.load_workload(workload), to, plain_http)
    if as_json:
        return output.print_json(pushed.as_json())
    output.say("pushed", pushed.name)
    output.say("next", f"write `image: {pushed.pinned}` instead of `build:` to run it on any pod")
    return print(pushed.pinned, flush=True)


def image_inspect_command(workload: WorkloadFile, as_json: AsJson = False) -> None:
    """Show what this machine has of the workload's image."""
    image = images.inspect(spec.load_workload(workload))
    if as_json:
        return output.print_json(image.as_json())
    facts = {
        "image": image.name,
        "digest": image.digest,
        "id": image.id,
        "size": _size(image),
        "user": image.user or "root",
        "recipe": image.labels.get("podwright.recipe", "not built by Podwright"),
    }
    lines = [f"{word:<{output.WORD_WIDTH}}{output.plain(text)}" for word, text in facts.items()]
    return print("\n".join(lines), flush=True)


def _size(image: StoredImage) -> str:
    if image.size_bytes is None:
        return "size not known"
    return figures.size(image.size_bytes)
