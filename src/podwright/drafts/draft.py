"""What `podwright init` writes for a script: a workload that runs as it is, and beside each line why it is so.

All of it is a guess from the script's text; nothing of it is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from podwright.drafts.script import FRAMEWORKS, MPI, Option, ScriptContents
from podwright.pilot.protocol import RANK_NAMES

PACKAGES = {
    "Crypto": "pycryptodome",
    "Levenshtein": "python-Levenshtein",
    "PIL": "pillow",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "git": "GitPython",
    "hydra": "hydra-core",
    "lightning_fabric": "lightning",
    "lightning_utilities": "lightning-utilities",
    "open_clip": "open-clip-torch",
    "pl_bolts": "lightning-bolts",
    "pytorch_lightning": "pytorch-lightning",
    "sentence_transformers": "sentence-transformers",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "torch_geometric": "torch-geometric",
    "umap": "umap-learn",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
"""Where the package that brings a module has another name."""
UNPACKAGED = {"apex", "detectron2", "google", "mmcv", "transformer_engine"}
"""Modules that come with an image or from source: pip finds nothing, or something else, under these names."""
GENERIC = {"main", "run", "train", "training", "script", "job", "task", "sky"}
DATA = re.compile(r"(data|dataset|frames|images|imgs|input|train)(-?(dir|root|path|folder))?|root|root-dir")
KEPT = re.compile(r"(checkpoint|ckpt|save|weights|model|out|output)s?-?(dir|root|path|folder)")
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW")
ON_CPU = re.compile(
    r"(^|\s)--?(device|accelerator)[= ]cpu\b|(^|\s)--?(cpu|no[-_]cuda|no[-_]gpu)(\s|$|=true)", re.IGNORECASE
)
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

    @property
    def on_cpu(self) -> bool:
        """Tell whether those words ask for the CPU."""
        return ON_CPU.search(" ".join(self.arguments)) is not None


@dataclass(frozen=True)
class DraftLine:
    """A line of the file: a field, its value as YAML, and why."""

    field: str
    value: str
    why: str = ""

    def text(self) -> str:
        """Return the line as the file has it; the reason stands above a field that is too long to have it beside."""
        text = f"{self.field}: {self.value}".rstrip().replace(": \n", ":\n", 1)
        if not self.why:
            return text
        if len(text) >= COLUMN:
            return f"# {self.why}\n{text}"
        return f"{text:<{COLUMN}}# {self.why}"


@dataclass
class DraftCommand:
    """The command line that was guessed, and what it takes from elsewhere."""

    argv: list[str]
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
    advice: str = "the script wants it; add it to the command"
    """What to do about that."""


def guess(script: ScriptContents, facts: ScriptFacts) -> Guess:
    """Return the workload file of a script."""
    command = _command(script, facts)
    fields = list(_fields(script, facts, command))
    lines = [f"# Guessed by `podwright init` from {facts.script}: change what is wrong."]
    lines += [line.text() for line in fields]
    lines += _hints(script, facts, command)
    lines += _build(script, facts)
    guessed = [line for line in fields if line.why and line.field not in QUIET]
    notes = tuple(f"{line.field}: {line.value}   ({line.why})" for line in guessed)
    return Guess("\n".join(lines) + "\n", notes, tuple(option.flag for option in command.missing))


def _fields(script: ScriptContents, facts: ScriptFacts, command: DraftCommand) -> Iterator[DraftLine]:
    yield DraftLine("name", name_of(facts.script, facts.folder))
    yield DraftLine("code", ".", "the script's folder travels with the run")
    yield DraftLine("command", scalar(" ".join(quoted(word) for word in command.argv)), command.keeps)
    nodes = script.trainer.get("num_nodes", 1)
    yield DraftLine("nodes", str(nodes), "as many as it gives its Trainer" * (nodes > 1))
    launcher, why = _launcher(script, facts)
    if launcher:
        yield DraftLine("launcher", launcher, why)
    yield from _resources(script, facts, launcher)
    if command.data:
        yield DraftLine("data", mapping(command.data), "what the script reads by default")
    yield DraftLine("runtime", "bare", "or container, once `podwright image build` has made the image")


def name_of(script: str, folder: str) -> str:
    """Return the script's name, or its folder's where the script's says nothing."""
    name = re.sub(r"\.(py|sh|bash|sbatch|slurm|job|ya?ml)$", "", script.rpartition("/")[2])
    if name.lower() in GENERIC and re.search("[A-Za-z]", folder):
        name = folder
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:40].strip("-") or "workload"


def _launcher(script: ScriptContents, facts: ScriptFacts) -> tuple[str, str]:
    """Return what starts its ranks; nothing for one plain process, which would take RANK for the word of others."""
    if script.uses_mpi:
        return "mpi", f"it imports {', '.join(sorted(script.packages & MPI))}"
    if framework := sorted(script.packages & FRAMEWORKS):
        return "torchrun", f"{framework[0]} takes its ranks from torchrun"
    if script.is_distributed and not facts.on_cpu:
        return "torchrun", "it uses torch.distributed, which takes ranks from torchrun"
    return "", ""


def _resources(script: ScriptContents, facts: ScriptFacts, launcher: str) -> Iterator[DraftLine]:
    gpus, why = _gpus(script, facts)
    devices = script.trainer.get("devices")
    if launcher and devices:
        yield DraftLine("ranks_per_node", str(devices), "as many devices as it gives its Trainer")
        if gpus:
            gpus, why = devices, "one for each of those"
    elif not launcher and gpus > 1:
        # Without a launcher only DataParallel spreads one process over several GPUs.
        if "DataParallel" not in script.names:
            gpus = 1
        yield DraftLine("ranks_per_node", "1", "one process drives all GPUs it gets")
    elif launcher and not gpus:
        yield DraftLine("ranks_per_node", "2", "no GPU to count by; one rank alone would show nothing")
    yield DraftLine("resources", f"{{gpus: {gpus}}}", why)


def _gpus(script: ScriptContents, facts: ScriptFacts) -> tuple[int, str]:
    if facts.on_cpu:
        return 0, "its words ask for the CPU"
    if not script.uses_cuda:
        return 0, "it does not use CUDA"
    if script.needs_cuda:
        return max(facts.gpus, 1), "it uses CUDA without asking whether it is there"
    return facts.gpus, "it uses CUDA where it is there"


def _command(script: ScriptContents, facts: ScriptFacts) -> DraftCommand:
    """Guess only what the script cannot do without, and the paths that Podwright has a place for."""
    command = DraftCommand(["python3", facts.script])
    if facts.arguments:
        command.argv += facts.arguments
        return command
    for option in script.options:
        value = _argument(option, facts, command)
        if value is not None:
            if option.flag.startswith("-"):
                command.argv.append(option.flag)
            command.argv.append(value)
        elif option.required:
            command.missing.append(option)
    return command


def _argument(option: Option, facts: ScriptFacts, command: DraftCommand) -> str | None:
    """Return the value of an option, None where nothing can be guessed; note in the command where it comes from."""
    if KEPT.fullmatch(option.word):
        command.keeps = "checkpoints go where the run keeps them"
        return "{checkpoint}"
    if DATA.fullmatch(option.word) and isinstance(option.default, str) and option.default in facts.there:
        name = re.sub(r"[^A-Za-z0-9_]", "_", option.word)
        command.data[name] = option.default
        return f"{{data.{name}}}"
    if option.required and option.choices:
        return str(option.choices[0])
    return None


def _hints(script: ScriptContents, facts: ScriptFacts, command: DraftCommand) -> Iterator[str]:
    """Yield lines that a person may want to add."""
    missing = [option.flag for option in command.missing]
    if missing:
        yield f"# the script also wants {', '.join(missing)}: add it to the command"
    mentioned = {*command.argv, *missing}
    others = [option for option in script.options if option.flag.startswith("-") and option.flag not in mentioned]
    if others and not facts.arguments:
        yield f"# its other options: {', '.join(_described(option) for option in others[:12])}"
    if script.uses_cuda and not script.needs_cuda and not facts.gpus and not facts.on_cpu:
        yield "# it would use a GPU where there is one: `resources: {gpus: 1}` asks for it"
    secrets = {name for name in script.variables if SECRET.search(name)}
    if "wandb" in script.packages:
        secrets.add("WANDB_API_KEY")
    if secrets:
        yield f"# secrets: [{', '.join(sorted(secrets))}]   taken from your own environment, never written down"
    variables = sorted(script.variables - secrets - set(RANK_NAMES))
    if variables:
        yield f"# it reads {', '.join(variables)} from the environment: set them under `env:`"


def _described(option: Option) -> str:
    if option.default is None:
        return option.flag
    return f"{option.flag} ({option.default})"


def _build(script: ScriptContents, facts: ScriptFacts) -> Iterator[str]:
    """Bring what the script imports; a list that somebody wrote beside it knows better."""
    yield DraftLine("build", "", "what an image of it needs").text()
    yield f"  base: {scalar(facts.base)}"
    if script.uses_mpi:
        yield "  apt: [openmpi-bin]"
    if facts.requirements:
        yield f"  pip: {json.dumps([f'-r {facts.requirements}'])}"
    elif names := packages(script):
        yield DraftLine("  pip", f"[{', '.join(names)}]", "what it imports; versions are not pinned").text()
    if left := sorted(script.packages & UNPACKAGED):
        yield f"  # it imports {', '.join(left)}, which pip does not bring: take a base that has it"
    if script.uses_mpi:
        yield DraftLine("  sshd", "true", "MPI on Kubernetes starts ranks over ssh").text()


def packages(script: ScriptContents) -> list[str]:
    """Return the packages that bring what is imported."""
    return sorted({PACKAGES.get(name, name) for name in script.packages - UNPACKAGED}, key=str.lower)


def quoted(word: str) -> str:
    """Quote a word as the command is split again; a placeholder stays readable."""
    if re.fullmatch(r"[\w@%+=:,./{}-]+", word, re.ASCII):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def scalar(text: str) -> str:
    """Write a text in YAML's plain form where that is safe, else in its quoted one."""
    begins_plainly = re.fullmatch(r"[A-Za-z./][^\n\"'#\[\]&*!|>%`\\]*", text)
    if begins_plainly and ": " not in text and not text.endswith(":"):
        return text
    return json.dumps(text, ensure_ascii=False)


def mapping(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in values.items()) + "}"
