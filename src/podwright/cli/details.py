"""What the help of a command says beyond its summary; texts alone, for `table.py`."""

from __future__ import annotations

MORE = {
    "run": "Leaving with Ctrl-C leaves the run going; `podwright attach` takes it up again.",
    "attach": "Leaving with Ctrl-C leaves the run going; `podwright attach` takes it up again.",
    "wait": (
        "The exit code reports how they ended: 0 succeeded, 1 failed or lost, 4 cancelled; of several, 1 comes"
        " before 4."
    ),
    "shell": "On a cluster it is a step of the run's own job, in its container.",
    "forward": (
        "A server in the run, such as TensorBoard, is seen in a browser here, and by nobody else. On Slurm it must"
        " listen on all addresses of its node: the way there leads through the login node."
    ),
    "console": (
        "Prints a link that lets in once, and serves this home on the loopback until it is ended. From elsewhere it is"
        " reached by `ssh -L 8080:localhost:8080`. Every page is also a part of the API, under /api/v1."
    ),
    "report": "Prints the path of an HTML file that needs no network.",
    "ps": (
        "A filter compares id, name, state, target, user, team, tag, created, duration_s, goodput, cost, and what was"
        " varied or told: `loss<0.3 and matrix.lr=0.01 and tag=paper and user=me`; with =, !=, <, <=, >, >=, ~ (a"
        " part), and, or, not. With one the points of sweeps are looked at, too; a run without a value never fits."
    ),
    "best": "Of those that succeeded, by the goal, else by what the metric's name says. 1 when there is none.",
    "diff": (
        "Of what was asked, of code, environment, data and hardware; alike ends with 0, else 1. `compare` says what"
        " it does to the time."
    ),
    "compare": (
        "The exit code is 0 where they are the same, and 1 where they differ or nothing is\nproven. `report` shows"
        " runs side by side; `compare` judges them."
    ),
    "bench run": (
        "Cells are run in turn, so that drift hits all alike. What was run is never run\nagain, even if this client"
        " is killed meanwhile; `--again` begins a new round."
    ),
    "bench scale": (
        "Prints efficiency with its interval, the fitted law, and what was predicted from\nthe smallest size."
    ),
    "bench gate": (
        "Each cell's newest round is held against all rounds since the last change that\nsomebody accepted. clean:"
        " shown to be no worse than them by more than the margin;\nslower: shown to be worse; broken: runs failed, are"
        " missing or missed their goal;\nnot proven: too few runs to tell. Only clean ends with 0."
    ),
    "bench system": "As JSON. What the pod's file does not say is left empty, for you to fill in.",
    "bench score": (
        "Logs of round 0.6 (`:::MLL`) and later (`:::MLLOG`). The best and the worst run are\ndropped, and one that"
        " did not reach its target counts as the worst."
    ),
    "bench published": "Rounds 0.6 and 0.7, worked out from the published logs; not verified by MLCommons.",
    "cost": (
        "Prices are those of `costs:` in the pod's file. What has no price is named, and\nthe total says `at least`."
    ),
    "cost compare": "The tables that ship have few prices, dated and of low trust: name your own with\n`--prices`.",
    "pull": "Prints the paths of the copies.",
    "export": (
        "Record, series, sensors, logs, results and code. Values of the environment, secrets, tokens, settings and"
        " paths of your home stay behind; `--dry-run` lists what goes. What programs wrote as results goes as it is."
    ),
    "import": (
        "The file is taken up whole or not at all, and nothing in it is run. `run --like` of such a run shows its"
        " command and code first. With --from it is a run of yours that another home started, as `podwright pod runs`"
        " lists them: `attach`, `logs`, `cancel` and `rm` work for it here as they do there."
    ),
    "sync": (
        "Doing it again adds only what came since. Of a run that goes on the rest is written by the next command that"
        " looks at it. MLflow's user, password and token come by MLFLOW_TRACKING_USERNAME,"
        " _PASSWORD and _TOKEN. W&B is written offline, once a run is over, for `wandb sync`; it needs"
        " `pip install 'podwright[wandb]'`."
    ),
    "prune": "What they left on clusters goes too; a run whose cluster cannot be reached is left and named.",
    "rebuild": "The folders are the truth and the index is a cache of them: nothing is lost.",
    "design": "Prints switches, cables, networks, racks and the bill of materials.",
    "predict": (
        "Prints an acceptance sheet for NCCL tests: what to expect by size, and under what to raise an alarm."
        " `--series sizes.csv` fits measured trainings instead, with rows of count, batch, minutes and epochs."
    ),
    "pod add": "One of the same name that was known is replaced.",
    "pod forget": "Its runs are followed as before: each has a copy of the pod of its own.",
    "pod runs": "`podwright import --from POD RUN` takes one up in this home.",
    "pod grant": (
        "For administrators of Kubernetes: rights, claims on the pod's storage, and on OpenShift what RDMA takes."
        " Doing it again changes nothing."
    ),
    "pod plan": "Nothing changes. With --out it is a project that plain `ansible-playbook` runs too.",
    "pod up": (
        "Stages: base, mirror, storage, netboot, registry, nvidia, slurm, kubernetes, monitoring, logging. What is as"
        " it should be is not touched; after an end in between it goes on where it was. It needs"
        " `pip install 'podwright[bringup]'`."
    ),
    "pod upgrade": (
        "Goes to the release of `bringup.versions.slurm`: accounting, controller, backup, then nodes, drained first."
        " A release that cannot read the state of the one that is there is refused, with the step between."
    ),
    "pod status": "Works before any `up`, too. Exit code 1 when a host differs or does not answer.",
    "pod replace": "Only this host is touched; its name and address are those of the host that is gone.",
    "pod secrets": (
        "Secrets are munge_key, registry_password, ca_key, registry_key, logs_key, logs_client_key, exporters_key,"
        " scrape_token, kubernetes_discovery; left out: all that the pod has. `show` prints the registry's password,"
        " and no other one. They lie encrypted in the home; PODWRIGHT_VAULT_KEY_FILE names the file of the key. `up`"
        " brings them to the hosts."
    ),
    "pod down": "Data, packages and files stay: `pod up` starts all of it again.",
    "pod power": (
        "Over Redfish, by the controllers that `bmc:` of a group names; the variable that its `secret` names holds"
        " USER:PASSWORD. Switching asks first."
    ),
    "pod firmware": (
        "Nothing is written without approval, and only an image of the digest that was given.\nA controller"
        " verifies it too, and its word is printed."
    ),
    "pod validate": (
        "GPUs, links, storage, a job on all nodes. What cannot be measured is skipped with\nthe reason; exit code 1"
        " when a check failed."
    ),
    "pod nodes": (
        "By what the netboot server saw: absent, seen, booting, installing, installed,\nrunning. A machine that no"
        " group names is `discovered`, with its hardware\naddress for `macs:`."
    ),
    "mirror make": (
        "All packages that any host gets, with what they need, and the images that its file names, by digest. It is"
        " made\non a machine that runs what the hosts run."
    ),
    "mirror verify": "Exit code 1 when anything is bad.",
    "mirror serve": (
        "Packages as apt reads them, images as every registry's client does. It serves nothing but what it has"
        " checked first, by TLS of the pod's own authority."
    ),
    "waste": "All jobs where Slurm keeps account, else own runs. Whether a GPU was busy is known of own runs.",
    "exporter": (
        "Metrics are under our own names in base units and under those of NVIDIA's dcgm-exporter, before 4.9 and from"
        " it. On a network it asks for TLS and a token, as it says who runs what."
        " `pod up` starts it on every host with GPUs or jobs."
    ),
    "lab": (
        "Every node has processes, a network and a name of its own, and may be killed or\ncut off. A lab is a pod:"
        " `run --on lab-slurm` uses it. It needs root."
    ),
    "lab up": (
        "What the machine lacks (Slurm, containerd, ...) is reported with the command that installs it.\nKubernetes"
        " is built from source the first time: 8 to 20 minutes on 2 cores."
    ),
    "lab kill-node": "All its processes are gone at once.",
    "lab cut-node": "What runs on it goes on, and nobody hears of it.",
    "lab restart-controller": "Jobs go on meanwhile.",
    "lab down": "The runs on it end, and their folders on the lab go.",
    "data": "A dataset is a folder under a name. It needs the extra `data`:\npip install 'podwright[data]'.",
    "data scan": (
        "What is known of files that did not change is kept. Readers see the old state until the\nnew one is whole."
        " Exit code 1: some folders could not be read; they are named."
        " Exit\ncode 3: nothing of last time is there, as where a disk is not mounted."
    ),
    "data move": "No file is moved. Names and sizes of a sample are compared first.",
    "data revert": "It is published as a new generation, so the others stay in the history.",
    "data watch": (
        "Every folder is watched by inotify. Where events were lost, all of it is scanned again.\nIt ends when it"
        " is interrupted."
    ),
    "data find": (
        "Filters have = != < <= > >=, ~ (a part of the path), and, or, not, brackets. Names and\nvalues with other"
        " characters stand in double quotes."
    ),
    "data stats": (
        "Pixels of each class in label images, objects' areas of COCO, or images by their folder.\nLabels that were"
        " counted before are not read again. Then filters know the classes: Car>0. With --on the nodes of a"
        " run\ncount label images, each its share; their python3 needs Pillow and NumPy, and the dataset must be"
        " there."
    ),
    "data policy": (
        "A policy is a filter, an action and, with --every, a schedule for `run --due`. What was\ndone with a file"
        " is written down: it is not done again, and `undo` takes it back. A\ndeletion is shown first: the second"
        " `run` deletes what the first one listed."
    ),
    "data sql": (
        "The view `files` has a row for each file and every column of filters. A query only reads,\nand only this"
        " dataset: no other files, no extensions, no settings."
    ),
    "data select": (
        "A sample is an image with its label. `data: {frames: selection:street/train}` of a\nworkload gives the"
        " program its files. The same seed chooses the same samples."
    ),
    "data diff": "In samples, by their images.",
    "data forget": "No file of it is touched.",
    "init": (
        "It reads the script, what lies beside it and requirements.txt; nothing is run. What it guessed is said in"
        " the file. A file that is there is never written over."
    ),
    "image": (
        "What `build:` says becomes a Containerfile, which podman or buildah builds. An\nimage is named by its"
        " content: what is built already is not built again."
    ),
    "image build": "Prints its name.",
    "image push": "Prints its name with the digest, for `image:`.",
}
"""By command, such as `lab up`."""
