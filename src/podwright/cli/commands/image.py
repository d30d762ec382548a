"""`image`: the image that a workload's `build:` describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    """Prints the Containerfile, by the same function that builds from it."""
    from podwright import spec
    from podwright.cli.commands import image_openshift
    from podwright.images.builder import read_recipe

    image_openshift.check_options(on, {"--git": git}, {"--out": out})
    if on is not None:
        objects = image_openshift.objects_of(spec.load_workload(workload), on, git)
        return output.print_json(objects) if as_json else image_openshift.print_yaml(objects)
    recipe = read_recipe(spec.load_workload(workload))
    if out is not None:
        _write(out, recipe.text)
    if as_json:
        document = {"name": recipe.name, "digest": f"sha256:{recipe.digest}", "containerfile": recipe.text}
        return output.print_json({**document, "files": sorted(recipe.files)})
    return print(recipe.text, end="", flush=True) if out is None else None


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
    """Builds the image, or finds it built; its name goes to stdout."""
    from podwright import spec
    from podwright.cli.commands import image_openshift
    from podwright.images.builder import build
    from podwright.images.squashfs import export

    image_openshift.check_options(on, {"--git": git}, {"--squashfs": squashfs, "--again": again})
    if on is not None:
        return image_openshift.build(spec.load_workload(workload), on, git, as_json)
    found = build(spec.load_workload(workload), again)
    size = export(found.id, squashfs) if squashfs is not None else None
    if as_json:
        return output.print_json({**document(found), "squashfs": str(squashfs) if squashfs else None})
    output.say("image", f"{found.name}, {_size(found)}")
    if size is not None:
        output.say("wrote", f"{squashfs}, {figures.size(size)}")
    return print(found.name, flush=True)


def image_push_command(
    workload: WorkloadFile,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="Its name there, such as registry.example/team/toy.")],
    plain_http: Annotated[bool, typer.Option("--plain-http", help="The registry shows no certificate.")] = False,
    as_json: AsJson = False,
) -> None:
    """Puts the built image into a registry; its name with the digest goes to stdout."""
    from podwright import spec
    from podwright.images.builder import push

    pushed = push(spec.load_workload(workload), to, plain_http)
    if as_json:
        return output.print_json({"name": pushed.name, "digest": pushed.digest, "pinned": pushed.pinned})
    output.say("pushed", pushed.name)
    output.say("next", f"write `image: {pushed.pinned}` instead of `build:` to run it on any pod")
    return print(pushed.pinned, flush=True)


def image_inspect_command(workload: WorkloadFile, as_json: AsJson = False) -> None:
    """Shows what this machine has of the workload's image."""
    from podwright import spec
    from podwright.images.builder import inspect

    found = inspect(spec.load_workload(workload))
    if as_json:
        return output.print_json(document(found))
    shown = {"image": found.name, "digest": found.digest, "id": found.id, "size": _size(found)}
    shown |= {"user": found.user or "root", "recipe": found.labels.get("podwright.recipe", "not built by Podwright")}
    return print(
        "\n".join(f"{word:<{output.WORD_WIDTH}}{output.plain(text)}" for word, text in shown.items()), flush=True
    )


def _write(out: Path, text: str) -> None:
    with in_words(out):
        out.write_text(text, encoding="utf-8")
    output.say("wrote", str(out))


def document(found: StoredImage) -> dict[str, Any]:
    """Gives what is known of an image, as `--json` has it."""
    return {
        "name": found.name,
        "digest": found.digest,
        "id": found.id,
        "created_at": found.created_at,
        "size_bytes": found.size_bytes,
        "user": found.user,
        "recipe": found.labels.get("podwright.recipe"),
    }


def _size(found: StoredImage) -> str:
    return "size not known" if found.size_bytes is None else figures.size(found.size_bytes)
