"""`image`: the image that a workload's `build:` describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.commands.pod.pods import print_objects
from podwright.cli.options import AsJson, WorkloadFile
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.files import in_words

if TYPE_CHECKING:
    from podwright.images.storage import StoredImage

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
    from podwright import spec
    from podwright.cli.commands.run import image_openshift
    from podwright.images.builder import read_recipe

    image_openshift.check_options(on, {"--git": git}, {"--out": out})
    if on is not None:
        return print_objects(image_openshift.objects_of(spec.load_workload(workload), on, git), as_json)
    recipe = read_recipe(spec.load_workload(workload))
    if out is not None:
        _write(out, recipe.text)
    if as_json:
        document = {"name": recipe.name, "digest": f"sha256:{recipe.digest}", "containerfile": recipe.text}
        return output.print_json({**document, "files": sorted(recipe.files)})
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
    from podwright import spec
    from podwright.cli.commands.run import image_openshift
    from podwright.images.builder import build
    from podwright.images.squashfs import export

    image_openshift.check_options(on, {"--git": git}, {"--squashfs": squashfs, "--again": again})
    if on is not None:
        return image_openshift.build(spec.load_workload(workload), on, git, as_json)
    image = build(spec.load_workload(workload), again)
    written = None
    if squashfs is not None:
        written = f"{squashfs}, {figures.size(export(image.id, squashfs))}"
    if as_json:
        return output.print_json({**document(image), "squashfs": str(squashfs) if squashfs else None})
    output.say("image", f"{image.name}, {_size(image)}")
    if written is not None:
        output.say("wrote", written)
    return print(image.name, flush=True)


def image_push_command(
    workload: WorkloadFile,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="Its name there, such as registry.example/team/toy.")],
    plain_http: Annotated[bool, typer.Option("--plain-http", help="The registry shows no certificate.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put the built image into a registry; its name with the digest goes to stdout."""
    from podwright import spec
    from podwright.images.builder import push

    pushed = push(spec.load_workload(workload), to, plain_http)
    if as_json:
        return output.print_json({"name": pushed.name, "digest": pushed.digest, "pinned": pushed.pinned})
    output.say("pushed", pushed.name)
    output.say("next", f"write `image: {pushed.pinned}` instead of `build:` to run it on any pod")
    return print(pushed.pinned, flush=True)


def image_inspect_command(workload: WorkloadFile, as_json: AsJson = False) -> None:
    """Show what this machine has of the workload's image."""
    from podwright import spec
    from podwright.images.builder import inspect

    image = inspect(spec.load_workload(workload))
    if as_json:
        return output.print_json(document(image))
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


def _write(out: Path, text: str) -> None:
    with in_words(out):
        out.write_text(text, encoding="utf-8")
    output.say("wrote", str(out))


def document(image: StoredImage) -> dict[str, Any]:
    """Return what is known of an image, as `--json` has it."""
    return {
        "name": image.name,
        "digest": image.digest,
        "id": image.id,
        "created_at": image.created_at,
        "size_bytes": image.size_bytes,
        "user": image.user,
        "recipe": image.labels.get("podwright.recipe"),
    }


def _size(image: StoredImage) -> str:
    if image.size_bytes is None:
        return "size not known"
    return figures.size(image.size_bytes)
