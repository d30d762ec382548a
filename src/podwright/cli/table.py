"""The commands there are: one table, from which the overview, each command's help and completion are made.

It is apart from the commands' code so that `podwright --help` reads this file and nothing else: importing the command
line library alone takes five times as long as starting Python. For the same reason nothing but texts is imported here.
"""

from __future__ import annotations

from podwright.cli import details


class Command:
    """One command: where it is listed, which file of this folder holds its function, and what its help says.

    A command that has commands of its own (`with_commands`) is only the word before them and has no function.
    """

    def __init__(self, name: str, group: str, module: str, summary: str, example: str, details: str = "") -> None:
        self.name = name
        self.group = group
        self.module = module
        self.summary = summary
        self.example = example
        self.details = details
        self.commands: dict[str, Command] = {}

    def with_commands(self, *rows: tuple[str, str, str, str], module: str = "") -> Command:
        """Add the commands that follow this word, each by name, summary, arguments of its example, and details.

        Their functions are in this command's file, or in another one.
        """
        for name, summary, arguments, more in rows:
            whole = f"{self.name} {name}"
            example = f"podwright {whole} {arguments}".rstrip()
            self.commands[name] = Command(whole, self.group, module or self.module, summary, example, more)
        return self

    @property
    def function(self) -> str:
        """Return the function's name; apart from the command's where that would hide a Python or a module name."""
        return f"{self.name.replace(' ', '_').replace('-', '_')}_command"

    @property
    def help(self) -> str:
        """Return the text above the options in the command's own help."""
        return "\n\n".join(part for part in (f"{self.summary}.", self.details) if part)


_ROWS = (
    Command(
        "run",
        "Run",
        "run.run",
        "Start a workload and follow it to its end",
        "podwright run workload.yaml --set nodes=4",
        details.RUN_TOO,
    ),
    Command(
        "attach", "Run", "run.run", "Follow a run that was started before", "podwright attach last", details.RUN_TOO
    ),
    Command(
        "wait",
        "Run",
        "run.wait",
        "Wait until runs have ended",
        "podwright wait segmentation-7f3k last --timeout 2h",
        "The exit code reports how they ended: 0 succeeded, 1 failed or lost, 4 cancelled;"
        " of several, 1 comes before 4.",
    ),
    Command("cancel", "Run", "run.cancel", "Cancel runs", "podwright cancel segmentation-7f3k"),
    Command(
        "ps", "Look", "look.ps", "List the runs that are active and the latest others", "podwright ps --all --json"
    ),
    Command("show", "Look", "look.show", "Show what is known of a run", "podwright show last"),
    Command("logs", "Look", "look.logs", "Print what the ranks wrote", "podwright logs last --rank 3 --grep loss -f"),
    Command("top", "Look", "look.top", "Watch the nodes of all active runs", "podwright top --once"),
    Command(
        "shell",
        "Look",
        "run.shell",
        "Open a shell beside the ranks of a run",
        "podwright shell last --node 1",
        "On a cluster it is a step of the run's own job, in its container.",
    ),
    Command(
        "forward",
        "Look",
        "run.forward",
        "Reach a port of a run from this machine",
        "podwright forward last 6006",
        details.FORWARD_TOO,
    ),
    Command(
        "report",
        "Look",
        "look.report",
        "Write the report of a run, or of several side by side",
        "podwright report last",
        "Prints the path of an HTML file that needs no network.",
    ),
    Command(
        "compare",
        "Prove",
        "prove.compare",
        "Say whether runs take equally long, how sure it is, and what differs",
        "podwright compare resnet-7f3k resnet-9k2p --margin 3%",
        "The exit code is 0 where they are the same, and 1 where they differ or nothing is\nproven. `report` shows runs"
        " side by side; `compare` judges them.",
    ),
    Command(
        "bench",
        "Prove",
        "prove.bench",
        "Run suites of workloads, score logs, show published results",
        "podwright bench published --benchmark resnet --system dgx1",
    ).with_commands(
        ("run", "Run a suite, or what of it is still to be done", "examples/suite.yaml", details.BENCH_RUN_TOO),
        (
            "scale",
            "Measure how a workload scales with its nodes",
            "workload.yaml --sizes 1,2,4 --on adas",
            details.SCALE_TOO,
        ),
        ("gate", "Say what became slower, and since which image", "examples/suite.yaml", details.GATE_TOO),
        (
            "system",
            "Print the description of a pod that MLPerf asks for",
            "pod.yaml --submitter ours",
            details.SYSTEM_TOO,
        ),
        (
            "score",
            "Score logs of MLPerf Training: the olympic mean",
            "logs/result_0.txt logs/result_1.txt",
            details.SCORE_TOO,
        ),
        (
            "published",
            "List published results of MLPerf Training",
            "--benchmark resnet --system dgx1",
            details.PUBLISHED_TOO,
        ),
    ),
    Command(
        "cost",
        "Prove",
        "prove.cost",
        "Reckon what a pod and a result cost, and whether to rent instead",
        "podwright cost pod pod.yaml",
        "Prices are those of `costs:` in the pod's file. What has no price is named, and\nthe total says `at least`.",
    ).with_commands(
        ("pod", "What owning a pod costs, and a GPU hour of it", "pod.yaml", ""),
        ("run", "What a result cost, failed tries included", "last --pod pod.yaml", ""),
        ("compare", "Owning against renting, and where both cost the same", "pod.yaml --rate 0.92", details.RENT_TOO),
    ),
    Command(
        "pull",
        "Keep",
        "run.pull",
        "Copy results and checkpoints of a run to this machine",
        "podwright pull last checkpoints --to best-model",
        "Prints the paths of the copies.",
    ),
    Command("rm", "Keep", "run.cancel", "Remove runs that have ended, with their folders", "podwright rm last --yes"),
    Command(
        "prune",
        "Keep",
        "run.prune",
        "Remove runs that ended long ago, with their folders",
        "podwright prune --older 30d --keep-last 20 --dry-run",
        "What they left on clusters goes too; a run whose cluster cannot be reached is left and named.",
    ),
    Command(
        "rebuild",
        "Keep",
        "run.rebuild",
        "Make the index of runs again from their folders",
        "podwright rebuild",
        "The folders are the truth and the index is a cache of them: nothing is lost.",
    ),
    Command(
        "design",
        "Pods",
        "design.design",
        "Size, wire and place the fabrics of a pod",
        "podwright design pod.yaml --out plan",
        "Prints switches, cables, networks, racks and the bill of materials.",
    ),
    Command(
        "predict",
        "Pods",
        "design.predict",
        "Predict collectives and training on some nodes of a pod",
        "podwright predict pod.yaml --nodes 16",
        "Prints an acceptance sheet for NCCL tests: what to expect by size, and under what to raise an alarm. "
        "`--series sizes.csv` fits measured trainings instead, with rows of count, batch, minutes and epochs.",
    ),
    Command(
        "capacity",
        "Pods",
        "design.capacity",
        "Reckon storage, bandwidth and nodes for a fleet of cars",
        "podwright capacity examples/capacity-fleet.yaml",
    ),
    Command(
        "pod",
        "Pods",
        "pod.pods",
        "Make hosts a pod, keep it so, and make pods known to runs",
        "podwright pod up pod.yaml",
    )
    .with_commands(
        ("add", "Make a pod known under its name", "pod.yaml", "One of the same name that was known is replaced."),
        ("ls", "List the pods that are known", "--json", ""),
        ("forget", "Forget a pod", "adas", "Its runs are followed as before: each has a copy of the pod of its own."),
        (
            "grant",
            "Give a namespace what runs need there",
            "adas --namespace vision --group researchers",
            details.GRANT_TOO,
        ),
    )
    .with_commands(
        ("plan", "Show what each host would get, and how it differs", "pod.yaml --offline", details.PLAN_TOO),
        ("up", "Give each host what the plan says", "pod.yaml --limit dgx[001-004]", details.POD_UP_TOO),
        ("status", "Compare each host with the plan", "pod.yaml --json", details.STATUS_TOO),
        module="pod.hosts",
    )
    .with_commands(
        ("replace", "Bring up a host that came in place of another", "pod.yaml dgx007", details.REPLACE_TOO),
        ("secrets", "Make secrets of a pod again", "rotate pod.yaml --only munge_key", details.SECRETS_TOO),
        ("down", "Take a pod's services off its hosts", "pod.yaml --yes", details.DOWN_TOO),
        module="pod.day_two",
    )
    .with_commands(
        ("power", "Say whether hosts are on, or switch them", "pod.yaml cycle --limit dgx007", details.POWER_TOO),
        ("firmware", "List firmware, or have one written", "pod.yaml --json", details.FIRMWARE_TOO),
        ("validate", "Measure what a pod does, and compare it", "pod.yaml --json", details.VALIDATE_TOO),
        ("nodes", "Show how far hosts are on their way to a system", "pod.yaml", details.NODES_TOO),
        module="pod.machines",
    ),
    Command(
        "mirror",
        "Pods",
        "pod.mirror",
        "Carry what a pod needs to a site without a network",
        "podwright mirror make pod.yaml --out adas.tar",
    ).with_commands(
        ("make", "Write packages and images of a pod into one archive", "pod.yaml --out adas.tar", details.MIRROR_TOO),
        ("verify", "Look through an archive, file by file", "adas.tar --json", "Exit code 1 when anything is bad."),
        ("serve", "Serve an archive to hosts", "adas.tar --address 10.0.0.1", details.SERVE_TOO),
    ),
    Command(
        "queue",
        "Pods",
        "look.queue",
        "Show what runs on a target, what waits and why, and what is free",
        "podwright queue adas",
    ),
    Command(
        "waste",
        "Pods",
        "look.waste",
        "Add up GPU hours that were held and idle, and what they cost",
        "podwright waste adas --since 30d",
        "All jobs where Slurm keeps account, else own runs. Whether a GPU was busy is known of own runs.",
    ),
    Command(
        "lab",
        "Pods",
        "lab.lab",
        "Try a pod: a real cluster on this machine",
        "podwright lab up slurm --nodes 4",
        "Every node has processes, a network and a name of its own, and may be killed or\ncut off. A lab is a pod: `run"
        " --on lab-slurm` uses it. It needs root.",
    ).with_commands(
        ("up", "Start a lab, or whatever of it has died", "slurm --nodes 4", details.UP_TOO),
        ("status", "List the machines of a lab", "--json", ""),
        ("kill-node", "Power a node off", "n2", "All its processes are gone at once."),
        ("cut-node", "Take a node off the network", "n2", "What runs on it goes on, and nobody hears of it."),
        ("heal", "Start what has died and join what was cut off", "n2", ""),
        ("restart-controller", "Kill the controller and start it again", "", "Jobs go on meanwhile."),
        ("down", "End a lab and remove all of it", "--yes", "The runs on it end, and their folders on the lab go."),
    ),
    Command(
        "data",
        "Data",
        "data.scan",
        "Scan datasets, find files by what is in them, choose samples",
        "podwright data scan /data/a2d2 --name a2d2",
        "A dataset is a folder under a name. It needs the extra `data`:\npip install 'podwright[data]'.",
    )
    .with_commands(
        ("scan", "Scan a folder, or what changed in it", "/data/a2d2 --name a2d2", details.SCAN_TOO),
    )
    .with_commands(
        ("watch", "Scan what changes, as it changes", "a2d2 --settle 5s", details.WATCH_TOO),
        module="data.policy",
    )
    .with_commands(
        ("find", "Find files by a filter", "a2d2 'camera=front_center and size>=1MB'", details.FIND_TOO),
        ("stats", "Count what the labels hold", "a2d2 --per-image classes.csv", details.STATS_TOO),
        ("tag", "Give files a tag, which filters know", "a2d2 'path~night' weather=rain", ""),
    )
    .with_commands(
        ("policy", "Tag, copy, move or look at files by rule", details.POLICY, details.POLICY_TOO),
        module="data.policy",
    )
    .with_commands(
        ("sql", "Ask in SQL", "a2d2 'select scene, sum(Car) from files group by all'", details.SQL_TOO),
    )
    .with_commands(
        ("select", "Choose samples and freeze them under a name", details.SELECT, details.SELECT_TOO),
        ("ls", "List datasets and selections, or what is in one", "street --split train", ""),
        ("diff", "Compare two selections", "street street-2", "In samples, by their images."),
        module="data.select",
    )
    .with_commands(
        ("stage", "Copy the files of a selection to a folder", "street/train --to /scratch/street", ""),
        module="data.stage",
    )
    .with_commands(
        ("forget", "Forget a dataset or a selection", "street", "No file of it is touched."),
        module="data.select",
    ),
    Command("check", "Files", "run.check", "Check pod and workload files", "podwright check pod.yaml workload.yaml"),
    Command(
        "render",
        "Files",
        "run.render",
        "Print what `run` would start, and start nothing",
        "podwright render workload.yaml --out job",
    ),
    Command(
        "init",
        "Files",
        "run.init",
        "Write the workload of a script that is there already",
        "podwright init train.py -- --epochs 3",
        "It reads the script, what lies beside it and requirements.txt; nothing is run. What it guessed is said in"
        " the file. A file that is there is never written over.",
    ),
    Command(
        "image",
        "Files",
        "run.image",
        "Build the image that a workload describes",
        "podwright image build workload.yaml",
        "What `build:` says becomes a Containerfile, which podman or buildah builds. An\nimage is named by its content:"
        " what is built already is not built again.",
    ).with_commands(
        ("render", "Print the Containerfile, and build nothing", "workload.yaml", ""),
        ("build", "Build the image", "workload.yaml --squashfs toy.sqsh", "Prints its name."),
        (
            "push",
            "Put the built image into a registry",
            "workload.yaml --to registry.example/team/toy",
            "Prints its name with the digest, for `image:`.",
        ),
        ("inspect", "Show what this machine has of the image", "workload.yaml --json", ""),
    ),
    Command(
        "schema", "Files", "run.check", "Print the JSON schema of a file, for editors", "podwright schema workload"
    ),
)

COMMANDS = {row.name: row for row in _ROWS}
"""The commands by their first word."""
EVERY: dict[str, Command] = {}
"""All of them by all their words, such as `lab up`."""
for _row in _ROWS:
    EVERY[_row.name] = _row
    EVERY.update({_inner.name: _inner for _inner in _row.commands.values()})

_TOP = """\
Usage: podwright COMMAND [OPTIONS] [ARGUMENTS]

Takes a GPU pod from drawing board to trained model.
"""

_GROUPS = {
    "Run": "Run a workload",
    "Look": "Look at runs",
    "Keep": "Keep and clear away",
    "Prove": "Measure, compare, cost",
    "Pods": "Design and try pods",
    "Data": "Know and choose data",
    "Files": "The two files",
}

_REST = """\
Options:
  -h, --help            Print this, or a command's own help with an example
  --version             Print the version
  --install-completion  Complete commands and run ids in this shell
  --show-completion     Print the script that does so

RUN is an id, an unambiguous start of one, or `last`. TARGET is `local`, or
POD[:SCHEDULER]. State is kept in PODWRIGHT_HOME.

Exit codes: 0 done; 1 the run failed or is lost, or the answer is no; 2 the
command line or a file is wrong; 3 the target cannot be reached; 4 cancelled;
70 a fault of Podwright's; 130 interrupted, the run goes on.
"""


def overview() -> str:
    """Return the text of `podwright --help`, 80 columns wide."""
    sections = [f"{title}:\n{_listing(group)}" for group, title in _GROUPS.items()]
    return "\n".join([_TOP, *sections, _REST])


def overview_of(row: Command) -> str:
    """Return the help of a command that has commands of its own, in the same form."""
    width = max(map(len, row.commands)) + 2
    listed = "".join(f"  {name:<{width}}{inner.summary}\n" for name, inner in row.commands.items())
    usage = f"Usage: podwright {row.name} COMMAND [OPTIONS] [ARGUMENTS]\n"
    return "\n".join([usage, f"{row.help}\n", f"Commands:\n{listed}", f"Example:\n  {row.example}\n"])


def _listing(group: str) -> str:
    return "".join(f"  {row.name:<10}{row.summary}\n" for row in COMMANDS.values() if row.group == group)
