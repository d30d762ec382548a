"""What the help of a command says beyond its summary; texts alone, for `table.py`."""

from __future__ import annotations

RUN_TOO = "Leaving with Ctrl-C leaves the run going; `podwright attach` takes it up again."

FORWARD_TOO = (
    "A server in the run, such as TensorBoard, is seen in a browser here, and by nobody else. On Slurm it must listen"
    " on all addresses of its node: the way there leads through the login node."
)

UP_TOO = (
    "What the machine lacks (Slurm, containerd, ...) is reported with the command that installs it.\n"
    "Kubernetes is built from source the first time: 8 to 20 minutes on 2 cores."
)

PLAN_TOO = "Nothing changes. With --out it is a project that plain `ansible-playbook` runs too."

POD_UP_TOO = (
    "Stages: base, mirror, registry, slurm, monitoring. What is as it should be is not touched; after an end in between"
    " it goes on where it was. It needs `pip install 'podwright[bringup]'`."
)

STATUS_TOO = "Works before any `up`, too. Exit code 1 when a host differs or does not answer."

REPLACE_TOO = "Only this host is touched; its name and address are those of the host that is gone."

SECRETS_TOO = (
    "Secrets are munge_key, registry_password, ca_key, registry_key; left out: all of them. They lie encrypted in the"
    " home; PODWRIGHT_VAULT_KEY_FILE names the file of the key. `up` brings them to the hosts."
)

DOWN_TOO = "Data, packages and files stay: `pod up` starts all of it again."

MIRROR_TOO = (
    "All packages that any host gets, with what they need, and the images that its file names, by digest. It is made"
    "\non a machine that runs what the hosts run."
)

SERVE_TOO = (
    "Packages as apt reads them, images as every registry's client does. It serves nothing but what it has checked"
    " first."
)

POWER_TOO = (
    "Over Redfish, by the controllers that `bmc:` of a group names; the variable that its `secret` names holds"
    " USER:PASSWORD. Switching asks first."
)

FIRMWARE_TOO = (
    "Nothing is written without approval, and only an image of the digest that was given.\nA controller verifies it"
    " too, and its word is printed."
)

VALIDATE_TOO = (
    "GPUs, links, storage, a job on all nodes. What cannot be measured is skipped with\nthe reason; exit code 1 when"
    " a check failed."
)

NODES_TOO = (
    "By what the netboot server saw: absent, seen, booting, installing, installed,\nrunning. A machine that no group"
    " names is `discovered`, with its hardware\naddress for `macs:`."
)

GRANT_TOO = (
    "For administrators of Kubernetes: rights, claims on the pod's storage, and on OpenShift what RDMA takes. Doing it"
    " again changes nothing."
)

BENCH_RUN_TOO = (
    "Cells are run in turn, so that drift hits all alike. What was run is never run\nagain, even if this client is"
    " killed meanwhile; `--again` begins a new round."
)

SCALE_TOO = "Prints efficiency with its interval, the fitted law, and what was predicted from\nthe smallest size."

GATE_TOO = (
    "Each cell is held against its history: the latest rounds of the suite. One that\nwas slow and is good again is"
    " still named while its round is among them."
)

RENT_TOO = "The tables that ship have few prices, dated and of low trust: name your own with\n`--prices`."

SYSTEM_TOO = "As JSON. What the pod's file does not say is left empty, for you to fill in."

SCORE_TOO = (
    "Logs of round 0.6 (`:::MLL`) and later (`:::MLLOG`). The best and the worst run are\ndropped, and one that did not"
    " reach its target counts as the worst."
)

PUBLISHED_TOO = "Rounds 0.6 and 0.7, worked out from the published logs; not verified by MLCommons."

SCAN_TOO = (
    "What is known of files that did not change is kept. Readers see the old state until the\nnew one is whole."
    " Exit code 1: some folders could not be read; they are named."
)

WATCH_TOO = (
    "Every folder is watched by inotify. Where events were lost, all of it is scanned again.\nIt ends when it is"
    " interrupted."
)

POLICY = "run night --dry-run"
POLICY_TOO = (
    "A policy is a filter, an action and, with --every, a schedule for `run --due`. What was\ndone with a file is"
    " written down: it is not done again, and `undo` takes it back. A\ndeletion is shown first: the second `run`"
    " deletes what the first one listed."
)

STATS_TOO = (
    "Pixels of each class in label images, objects' areas of COCO, or images by their folder.\nLabels that were counted"
    " before are not read again. Then filters know the classes: Car>0. With --on the nodes of a run\ncount label"
    " images, each its share; their python3 needs Pillow and NumPy, and the dataset must be there."
)

SELECT = "a2d2 --name s --split train=0.8,test=0.2 --by scene"
SELECT_TOO = (
    "A sample is an image with its label. `data: {frames: selection:street/train}` of a\nworkload gives the program its"
    " files. The same seed chooses the same samples."
)

SQL_TOO = (
    "The view `files` has a row for each file and every column of filters. A query only reads,\nand only this dataset:"
    " no other files, no extensions, no settings."
)

FIND_TOO = (
    "Filters have = != < <= > >=, ~ (a part of the path), and, or, not, brackets. Names and\nvalues with other"
    " characters stand in double quotes."
)
