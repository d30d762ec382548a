"""The commands there are: one table, from which the overview, each command's help and completion are made.

It is apart from the commands' code so that `podwright --help` reads this file and nothing else: importing the command
line library alone takes five times as long as starting Python. For the same reason nothing but texts is imported here.
"""

from __future__ import annotations

from podwright.cli.details import MORE


class Command:
    """One command: where it is listed, which file of this folder holds its function, and what its help says.

    A command that has commands of its own (`with_commands`) is only the word before them and has no function.
    """

    group = ""

    def __init__(self, name: str, module: str, summary: str, example: str) -> None:
        self.name, self.module, self.summary, self.details = name, module, summary, MORE.get(name, "")
        self.example = f"podwright {name} {example}".rstrip()
        self.commands: dict[str, Command] = {}

    def with_commands(self, *rows: tuple[str, str, str], module: str = "") -> Command:
        """Add the commands that follow this word, each by name, summary, and arguments of its example.

        Their functions are in this command's file, or in another one.
        """
        for name, summary, arguments in rows:
            self.commands[name] = Command(f"{self.name} {name}", module or self.module, summary, arguments)
        return self

    @property
    def function(self) -> str:
        """Return the function's name; apart from the command's where that would hide a Python or a module name."""
        return f"{self.name.replace(' ', '_').replace('-', '_')}_command"

    @property
    def help(self) -> str:
        """Return the text above the options in the command's own help."""
        return "\n\n".join(part for part in (f"{self.summary}.", self.details) if part)


_ROWS = {
    "Run": (
        Command("run", "run.run", "Start a workload and follow it to its end", "workload.yaml --set nodes=4"),
        Command("attach", "run.run", "Follow a run that was started before", "last"),
        Command("wait", "run.wait", "Wait until runs have ended", "segmentation-7f3k last --timeout 2h"),
        Command("cancel", "run.cancel", "Cancel runs", "segmentation-7f3k"),
    ),
    "Look": (
        Command("ps", "look.ps", "List the runs that are active and the latest others", "--all --json"),
        Command("best", "look.ps", "Show the best run of a workload or a sweep", "segmentation --metric mean_iou"),
        Command("show", "look.show", "Show what is known of a run", "last"),
        Command("logs", "look.logs", "Print what the ranks wrote", "last --rank 3 --grep loss -f"),
        Command("top", "look.top", "Watch the nodes of all active runs, or a whole pod", "adas"),
        Command("shell", "run.shell", "Open a shell beside the ranks of a run", "last --node 1"),
        Command("forward", "run.forward", "Reach a port of a run from this machine", "last 6006"),
        Command("diff", "look.diff", "Say what differs between two runs", "segmentation-7f3k segmentation-9k2p"),
        Command("report", "look.report", "Write the report of a run, or of several side by side", "last"),
        Command("console", "look.console", "Show and steer all of it in a browser", "--listen 127.0.0.1:8080"),
    ),
    "Prove": (
        Command(
            "compare",
            "prove.compare",
            "Say whether runs take equally long, how sure it is, and what differs",
            "resnet-7f3k resnet-9k2p --margin 3%",
        ),
        Command(
            "bench",
            "prove.bench",
            "Run suites of workloads, score logs, show published results",
            "published --benchmark resnet --system dgx1",
        ).with_commands(
            ("run", "Run a suite, or what of it is still to be done", "examples/suite.yaml"),
            ("scale", "Measure how a workload scales with its nodes", "workload.yaml --sizes 1,2,4 --on adas"),
            ("gate", "Say whether nothing became slower, or what did and since when", "examples/suite.yaml"),
            ("accept", "Accept a change that the gate found as the new level", "night digits --reason 'larger model'"),
            ("system", "Print the description of a pod that MLPerf asks for", "pod.yaml --submitter ours"),
            ("score", "Score logs of MLPerf Training: the olympic mean", "logs/result_0.txt logs/result_1.txt"),
            ("published", "List published results of MLPerf Training", "--benchmark resnet --system dgx1"),
        ),
        Command(
            "cost", "prove.cost", "Compute what a pod and a result cost, and whether to rent instead", "pod pod.yaml"
        ).with_commands(
            ("pod", "What owning a pod costs, and a GPU hour of it", "pod.yaml"),
            ("run", "What a result of a run or of SUITE/CELL cost, failed tries included", "last --pod pod.yaml"),
            ("compare", "Owning against renting, and where both cost the same", "pod.yaml --rate 0.92"),
        ),
    ),
    "Keep": (
        Command(
            "pull",
            "run.pull",
            "Copy results and checkpoints of a run to this machine",
            "last checkpoints --to best-model",
        ),
        Command("export", "run.exchange", "Write runs into one file that may be given away", "last --to run.zip"),
        Command("import", "run.exchange", "Take runs up from a file, or from a pod", "run.zip"),
        Command(
            "sync", "run.exchange", "Write what runs told for MLflow, W&B or TensorBoard", "last --to tensorboard=tb"
        ),
        Command("rm", "run.cancel", "Remove runs that have ended, with their folders", "last --yes"),
        Command(
            "prune",
            "run.prune",
            "Remove runs that ended long ago, with their folders",
            "--older 30d --keep-last 20 --dry-run",
        ),
        Command("tag", "look.tag", "Tag runs, or take tags away", "segmentation-7f3k +paper -draft"),
        Command("note", "look.tag", "Write a note on a run", "last 'the one with the new augmentation'"),
        Command("rebuild", "run.rebuild", "Make the index of runs again from their folders", ""),
    ),
    "Pods": (
        Command("design", "design.design", "Size, wire and place the fabrics of a pod", "pod.yaml --out plan"),
        Command(
            "predict",
            "design.predict",
            "Predict collectives and training on some nodes of a pod",
            "pod.yaml --nodes 16",
        ),
        Command(
            "capacity",
            "design.capacity",
            "Compute storage, bandwidth and nodes for a fleet of cars",
            "examples/capacity-fleet.yaml",
        ),
        Command("pod", "pod.pods", "Make hosts a pod, keep it so, and make pods known to runs", "up pod.yaml")
        .with_commands(
            ("add", "Make a pod known under its name", "pod.yaml"),
            ("ls", "List the pods that are known", "--json"),
            ("forget", "Forget a pod", "adas"),
            ("grant", "Give a namespace what runs need there", "adas --namespace vision --group researchers"),
        )
        .with_commands(
            ("runs", "List your runs on a pod, whichever home started them", "adas"),
            module="pod.found",
        )
        .with_commands(
            ("plan", "Show what each host would get, and how it differs", "pod.yaml --offline"),
            ("up", "Give each host what the plan says", "pod.yaml --limit dgx[001-004]"),
            ("upgrade", "Bring a pod to the releases that its file names", "pod.yaml --rolling 2"),
            ("status", "Compare each host with the plan", "pod.yaml --json"),
            ("watch", "Write rules, alerts and dashboards of a pod", "pod.yaml --out watch"),
            module="pod.hosts",
        )
        .with_commands(
            ("replace", "Bring up a host that came in place of another", "pod.yaml dgx007"),
            ("remove", "Take a host out of a pod", "pod.yaml dgx007 --yes"),
            ("backup", "Write what cannot be made again into a file", "pod.yaml --out adas.backup"),
            ("restore", "Put a backup back on fresh hosts", "pod.yaml adas.backup --yes"),
            ("secrets", "Make secrets of a pod again", "rotate pod.yaml --only munge_key"),
            ("down", "Take a pod's services off its hosts", "pod.yaml --yes"),
            module="pod.day_two",
        )
        .with_commands(
            ("power", "Say whether hosts are on, or switch them", "pod.yaml cycle --limit dgx007"),
            ("firmware", "List firmware, or have one written", "pod.yaml --json"),
            ("validate", "Measure what a pod does, and compare it", "pod.yaml --json"),
            ("nodes", "Show how far hosts are on their way to a system", "pod.yaml"),
            module="pod.machines",
        ),
        Command(
            "mirror", "pod.mirror", "Carry what a pod needs to a site without a network", "make pod.yaml --out adas.tar"
        ).with_commands(
            ("make", "Write packages and images of a pod into one archive", "pod.yaml --out adas.tar"),
            ("verify", "Look through an archive, file by file", "adas.tar --json"),
            ("serve", "Serve an archive to hosts", "adas.tar --address 10.0.0.1"),
        ),
        Command("alerts", "look.alerts", "Say what fires on a pod, since when, and what to do", "adas"),
        Command("queue", "look.queue", "Show what runs on a target, what waits and why, and what is free", "adas"),
        Command(
            "waste", "look.waste", "Add up GPU hours that were held and idle, and what they cost", "adas --since 30d"
        ),
        Command(
            "exporter", "look.exporter", "Tell Prometheus of this host's GPUs and ports, and whose they are", "--once"
        ),
        Command("lab", "lab.lab", "Try a pod: a real cluster on this machine", "up slurm --nodes 4").with_commands(
            ("up", "Start a lab, or whatever of it has died", "slurm --nodes 4"),
            ("status", "List the machines of a lab", "--json"),
            ("kill-node", "Power a node off", "n2"),
            ("cut-node", "Take a node off the network", "n2"),
            ("heal", "Start what has died and join what was cut off", "n2"),
            ("restart-controller", "Kill the controller and start it again", ""),
            ("down", "End a lab and remove all of it", "--yes"),
        ),
    ),
    "Data": (
        Command(
            "data",
            "data.scan",
            "Scan datasets, find files by what is in them, choose samples",
            "scan /data/a2d2 --name a2d2",
        )
        .with_commands(
            ("scan", "Scan a folder, or what changed in it", "/data/a2d2 --name a2d2"),
            ("move", "Say that a dataset lies elsewhere now", "a2d2 /data/a2d2 /fast/a2d2"),
        )
        .with_commands(
            ("history", "List the generations that can be gone back to", "a2d2"),
            ("revert", "Go back to a generation", "a2d2 7"),
            module="data.history",
        )
        .with_commands(
            ("watch", "Scan what changes, as it changes", "a2d2 --settle 5s"),
            module="data.policy",
        )
        .with_commands(
            ("find", "Find files by a filter", "a2d2 'camera=front_center and size>=1MB'"),
            ("stats", "Count what the labels hold", "a2d2 --per-image classes.csv"),
            ("tag", "Give files a tag, which filters know", "a2d2 'path~night' weather=rain"),
        )
        .with_commands(
            ("show", "Show all that is known of one file", "a2d2 20180801_145028/label/cam_front_center/1.png"),
            ("page", "Write a page with files of a dataset to look at", "a2d2 'Pedestrian>0' --out page.html"),
            module="data.show",
        )
        .with_commands(
            ("policy", "Tag, copy, move or look at files by rule", "run night --dry-run"),
            module="data.policy",
        )
        .with_commands(
            ("sql", "Ask in SQL", "a2d2 'select scene, sum(Car) from files group by all'"),
        )
        .with_commands(
            (
                "select",
                "Choose samples and freeze them under a name",
                "a2d2 --name s --split train=0.8,test=0.2 --by scene",
            ),
            ("ls", "List datasets and selections, or what is in one", "street --split train"),
            ("diff", "Compare two selections", "street street-2"),
            module="data.select",
        )
        .with_commands(
            ("stage", "Copy the files of a selection to a folder", "street/train --to /scratch/street"),
            module="data.stage",
        )
        .with_commands(
            ("similar", "List near-duplicates, and groups that cross a split", "street --distance 4"),
            ("vectors", "Take vectors that say which images are alike", "street embeddings.parquet"),
            module="data.similar",
        )
        .with_commands(
            ("export", "Write a selection in a format of the field", "street --format coco --to /scratch/street"),
            ("import", "Scan a dataset of another format", "/data/kitti --format kitti --name kitti"),
            module="data.exchange",
        )
        .with_commands(
            ("forget", "Forget a dataset or a selection", "street"),
            module="data.select",
        ),
    ),
    "Files": (
        Command("check", "run.check", "Check pod and workload files", "pod.yaml workload.yaml"),
        Command("render", "run.render", "Print what `run` would start, and start nothing", "workload.yaml --out job"),
        Command("init", "run.init", "Write the workload of a script that is there already", "train.py -- --epochs 3"),
        Command("image", "run.image", "Build the image that a workload describes", "build workload.yaml").with_commands(
            ("render", "Print the Containerfile, and build nothing", "workload.yaml"),
            ("build", "Build the image", "workload.yaml --squashfs toy.sqsh"),
            ("push", "Put the built image into a registry", "workload.yaml --to registry.example/team/toy"),
            ("inspect", "Show what this machine has of the image", "workload.yaml --json"),
        ),
        Command("schema", "run.check", "Print the JSON schema of a file, for editors", "workload"),
    ),
}

COMMANDS: dict[str, Command] = {}
"""The commands by their first word."""
EVERY: dict[str, Command] = {}
"""All of them by all their words, such as `lab up`."""
for _group, _rows in _ROWS.items():
    for _row in _rows:
        _row.group = _group
        COMMANDS[_row.name] = EVERY[_row.name] = _row
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
