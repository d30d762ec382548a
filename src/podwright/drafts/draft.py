"""What `podwright init` writes for a script: a workload that runs as it is, and beside each line why it is so.

All of it is a guess from the script's text; nothing of it is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from podwright.drafts.script import Option, ScriptContents

PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "lightning_fabric": "lightning",
    "pytorch_lightning": "pytorch-lightning",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
    "yaml": "PyYAML",
}
"""Where the package that brings a module has another name."""
UNPACKAGED = {"apex", "detectron2", "google", "mmcv", "transformer_engine"}
"""Modules that come with an image or from source: pip finds nothing, or something else, under these names."""
GENERIC = {"main", "run", "train", "training", "script"}
DATA = re.compile(r"(data|dataset|frames|images|imgs|input|train)(-?(dir|root|path|folder))?|root|root-dir")
KEPT = re.compile(r"(checkpoint|ckpt|save|weights|model)s?-?(dir|root|path|folder)")
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW")
CONTRACT = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"}
QUIET = {"code", "runtime"}
"""Fields that are the same for every script: nothing was guessed."""
COLUMN = 44


@dataclass(frozen=True)
class ScriptFacts:
    """What had to be looked up beside the script's own text."""

    script: str
    """Its path from the folder that travels."""
    folder: str
    """That folder's name."""
    base: str
    """The image to start from."""
    requirements: str | None = None
    there: frozenset[str] = frozenset()
    """Paths among the options' defaults that exist."""
    gpus: int = 0
    arguments: tuple[str, ...] = ()
    """What the user wants after the script's name, instead of a guess."""


@dataclass(frozen=True)
class DraftLine:
    """A line of the file: a field, its value as YAML, and why."""

    field: str
    value: str
    why: str = ""

    def line(self) -> str:
        text = f"{self.field}: {self.value}".rstrip()
        if not self.why:
            return text
        return f"{text:<{COLUMN}}# {self.why}" if len(text) < COLUMN else f"# {self.why}\n{text}"


@dataclass
class DraftCommand:
    """The command line that was guessed, and what it takes from elsewhere."""

    words: list[str]
    data: dict[str, str] = field(default_factory=dict)
    keeps: str = ""
    missing: list[Option] = field(default_factory=list)


@dataclass(frozen=True)
class Guess:
    """The file, and what a person should know of it."""

    text: str
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    """What the script wants and nobody knows: the workload fails until it is added."""


def guess(seen: ScriptContents, facts: ScriptFacts) -> Guess:
    """Gives the workload file of a script."""
    command = _command(seen, facts)
    rows = [*_rows(seen, facts, command)]
    lines = [f"# Guessed by `podwright init` from {facts.script}: change what is wrong.", *(row.line() for row in rows)]
    lines += [*_hints(seen, facts, command), *_build(seen, facts)]
    notes = tuple(f"{row.field}: {row.value}   ({row.why})" for row in rows if row.why and row.field not in QUIET)
    return Guess("\n".join(lines) + "\n", notes, tuple(option.flag for option in command.missing))


def _rows(seen: ScriptContents, facts: ScriptFacts, command: DraftCommand) -> Iterator[DraftLine]:
    yield DraftLine("name", name_of(facts))
    yield DraftLine("code", ".", "the script's folder travels with the run")
    yield DraftLine("command", _scalar(" ".join(_quoted(word) for word in command.words)), command.keeps)
    yield DraftLine("nodes", "1")
    launcher, why = _launcher(seen)
    yield DraftLine("launcher", launcher, why)
    yield from _resources(seen, facts, launcher)
    if command.data:
        yield DraftLine("data", _mapping(command.data), "what the script reads by default")
    yield DraftLine("runtime", "bare", "or container, once `podwright image build` has made the image")


def name_of(facts: ScriptFacts) -> str:
    """The script's name, or its folder's where the script's says nothing."""
    stem = facts.script.rpartition("/")[2].removesuffix(".py")
    chosen = facts.folder if stem.lower() in GENERIC and re.search("[A-Za-z]", facts.folder) else stem
    return re.sub(r"[^a-z0-9]+", "-", chosen.lower()).strip("-0123456789")[:40].strip("-") or "workload"


def _launcher(seen: ScriptContents) -> tuple[str, str]:
    if seen.uses_mpi:
        return "mpi", f"it imports {', '.join(sorted(seen.packages & {'mpi4py', 'horovod'}))}"
    if seen.is_distributed:
        return "torchrun", "it uses torch.distributed, which takes ranks from torchrun"
    return "ranks", "one plain process; it does not talk to others"


def _resources(seen: ScriptContents, facts: ScriptFacts, launcher: str) -> Iterator[DraftLine]:
    gpus = max(facts.gpus, 1) if seen.needs_cuda else facts.gpus if seen.uses_cuda else 0
    if launcher == "ranks" and gpus > 1:
        gpus = gpus if "DataParallel" in seen.names else 1
        yield DraftLine("ranks_per_node", "1", "one process drives all GPUs it gets")
    elif launcher != "ranks" and not gpus:
        yield DraftLine("ranks_per_node", "2", "no GPU to count by; one rank alone would show nothing")
    words = {True: "it uses CUDA without asking whether it is there", False: "it uses CUDA where it is there"}
    yield DraftLine(
        "resources", f"{{gpus: {gpus}}}", words[seen.needs_cuda] if seen.uses_cuda else "it does not use CUDA"
    )


def _command(seen: ScriptContents, facts: ScriptFacts) -> DraftCommand:
    """Only what the script cannot do without, and the paths that Podwright has a place for."""
    made = DraftCommand(["python3", facts.script])
    if facts.arguments:
        made.words += facts.arguments
        return made
    for option in seen.options:
        value = _argument(option, facts, made)
        if value is not None:
            made.words += [value] if not option.flag.startswith("-") else [option.flag, value]
        elif option.required:
            made.missing.append(option)
    return made


def _argument(option: Option, facts: ScriptFacts, made: DraftCommand) -> str | None:
    if KEPT.fullmatch(option.word):
        made.keeps = "checkpoints go where the run keeps them"
        return "{checkpoint}"
    if DATA.fullmatch(option.word) and isinstance(option.default, str) and option.default in facts.there:
        name = re.sub(r"[^A-Za-z0-9_]", "_", option.word)
        made.data[name] = option.default
        return f"{{data.{name}}}"
    if option.required and option.choices:
        return str(option.choices[0])
    return None


def _hints(seen: ScriptContents, facts: ScriptFacts, command: DraftCommand) -> Iterator[str]:
    """Lines that a person may want to add."""
    if command.missing:
        yield f"# the script also wants {', '.join(option.flag for option in command.missing)}: add it to the command"
    told = {*command.words, *(option.flag for option in command.missing)}
    others = [option for option in seen.options if option.flag.startswith("-") and option.flag not in told]
    if others and not facts.arguments:
        yield f"# its other options: {', '.join(_described(option) for option in others[:12])}"
    secrets = sorted(name for name in seen.variables if SECRET.search(name))
    if "wandb" in seen.packages:
        secrets = sorted({*secrets, "WANDB_API_KEY"})
    if secrets:
        yield f"# secrets: [{', '.join(secrets)}]   taken from your own environment, never written down"
    plain = sorted(seen.variables - set(secrets) - CONTRACT)
    if plain:
        yield f"# it reads {', '.join(plain)} from the environment: set them under `env:`"


def _described(option: Option) -> str:
    return option.flag if option.default is None else f"{option.flag} ({option.default})"


def _build(seen: ScriptContents, facts: ScriptFacts) -> Iterator[str]:
    """Brings what the script imports; a list that somebody wrote beside it knows better."""
    yield DraftLine("build", "", "what an image of it needs").line()
    yield f"  base: {_scalar(facts.base)}"
    if seen.uses_mpi:
        yield "  apt: [openmpi-bin]"
    if facts.requirements:
        yield f"  pip: {json.dumps([f'-r {facts.requirements}'])}"
    elif names := packages(seen):
        yield DraftLine("  pip", f"[{', '.join(names)}]", "what it imports; versions are not pinned").line()
    if left := sorted(seen.packages & UNPACKAGED):
        yield f"  # it imports {', '.join(left)}, which pip does not bring: take a base that has it"
    if seen.uses_mpi:
        yield DraftLine("  sshd", "true", "MPI on Kubernetes starts ranks over ssh").line()


def packages(seen: ScriptContents) -> list[str]:
    """The packages that bring what is imported."""
    return sorted({PACKAGES.get(name, name) for name in seen.packages - UNPACKAGED}, key=str.lower)


def _quoted(word: str) -> str:
    """As the command is split again; a placeholder stays readable."""
    if re.fullmatch(r"[\w@%+=:,./{}-]+", word, re.ASCII):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _scalar(text: str) -> str:
    """YAML's plain form where that is safe, else its quoted one."""
    plain = re.fullmatch(r"[A-Za-z./][^\n\"'#\[\]&*!|>%`\\]*", text) and ": " not in text and not text.endswith(":")
    return text if plain else json.dumps(text, ensure_ascii=False)


def _mapping(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in values.items()) + "}"
