"""Gives a cluster objects that outlive a run (rights, storage, builds), and tells what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes.access import may
from podwright.clients.kubernetes.api import FORBIDDEN, Api, ApiError, asked_to, refusal_of
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.clients.kubernetes.paths import PLURALS, path_of_object
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler

Object = Mapping[str, Any]
RENEWED = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
"""Of an object's metadata: what the server keeps for itself, and changes when nothing else changed."""
ENFORCED, STRICTEST = "pod-security.kubernetes.io/enforce", "restricted"
ESCALATION = "attempting to grant RBAC permissions not currently held"


@dataclass(frozen=True)
class Applied:
    """One object and what became of it: `created`, `changed` or `unchanged`."""

    result: str
    kind: str
    name: str
    namespace: str | None

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        return asdict(self)


def reach(scheduler: KubernetesScheduler) -> Api:
    """Return the cluster of a scheduler, with the user's own kubeconfig."""
    return Api(read_entry(scheduler.kubeconfig, scheduler.context))


def apply_objects(api: Api, objects: Sequence[Object], dry: bool = False) -> list[Applied]:
    """Apply objects server-side, one after the other; doing it again changes nothing. `dry`: nothing does.

    What the user may not do is told as a whole and first, so that no half of it is done.
    """
    with asked_to("answer"):
        lacking = list(_lacking(api, objects))
        if lacking:
            raise _not_allowed(lacking)
        return list(_apply_all(api, objects, dry))


def _lacking(api: Api, objects: Iterable[Object]) -> Iterator[str]:
    """Yield the rights that the user has not; a namespace that is there needs none, as it is not changed."""
    changed = [item for item in objects if item["kind"] != "Namespace" or not _is_left_alone(_find(api, item), item)]
    kinds = dict.fromkeys((item["metadata"].get("namespace"), item["apiVersion"], item["kind"]) for item in changed)
    for namespace, version, kind in kinds:
        place = "in the cluster"
        if namespace:
            place = f"in the namespace {namespace}"
        group = version.rpartition("/")[0]
        verbs = [verb for verb in ("create", "patch") if not may(api, namespace or "", verb, group, PLURALS[kind])]
        if verbs:
            yield f"{' and '.join(verbs)} {PLURALS[kind]} {place}"


def _not_allowed(lacking: Sequence[str]) -> Refusal:
    who = "its administrator"
    if any(right.endswith("the cluster") for right in lacking):
        who = "a cluster administrator"
    hint = f"{who} may: send the output of `--render`, which `kubectl apply --server-side -f -` takes"
    return refuse(f"you may not {', '.join(lacking)}", hint=hint, exit_code=3)


def _apply_all(api: Api, objects: Iterable[Object], dry: bool) -> Iterator[Applied]:
    """Yield what became of each; a namespace that a dry run does not make cannot be asked what would be in it."""
    missing = set()
    for item in objects:
        metadata = item["metadata"]
        namespace = metadata.get("namespace")
        result = "created" if namespace in missing else _apply(api, item, dry)
        if dry and result == "created" and item["kind"] == "Namespace":
            missing.add(metadata["name"])
        yield Applied(result, item["kind"], metadata["name"], namespace)


def _apply(api: Api, item: Object, dry: bool) -> str:
    try:
        before = _find(api, item)
        if before and _is_left_alone(before, item):
            return "unchanged"
        after = api.apply(path_of_object(item), item, dry=dry)
    except ApiError as error:
        raise _refusal(error, item) from None
    if before is None:
        return "created"
    if _content(before) == _content(after):
        return "unchanged"
    return "changed"


def _is_left_alone(before: Object | None, item: Object) -> bool:
    """Return whether a namespace stays as it is: its Pod Security is changed where it has none, or less is wanted."""
    if item["kind"] != "Namespace" or before is None:
        return False
    wanted = (item["metadata"].get("labels") or {}).get(ENFORCED)
    there = (before["metadata"].get("labels") or {}).get(ENFORCED)
    if wanted in (None, there):
        return True
    return wanted == STRICTEST and there is not None


def _find(api: Api, item: Object) -> dict[str, Any] | None:
    """Return the object as it is; a namespace the user may not look at is taken to be there, as nobody says."""
    try:
        return api.find(path_of_object(item))
    except ApiError as error:
        if error.status == FORBIDDEN and item["kind"] == "Namespace":
            return dict(item)
        raise


def _content(item: Object) -> dict[str, Any]:
    metadata = {name: value for name, value in item["metadata"].items() if name not in RENEWED}
    return {**item, "metadata": metadata, "status": None}


def _refusal(error: ApiError, item: Object) -> Exception:
    named = f"the {item['kind']} {item['metadata']['name']}"
    if error.status == FORBIDDEN and ESCALATION in error.message:
        hint = "nobody can give rights away that are not their own: a cluster administrator may"
        return refuse(f"{named} holds rights that you do not have yourself", hint=hint, exit_code=3)
    if error.status == 404 and "namespaces" not in error.message:
        hint = "`dialect:` of the scheduler in the pod file says what it is"
        return refuse(f"the cluster does not know {item['kind']} ({item['apiVersion']})", hint=hint)
    return refusal_of(error, f"take {named}")
