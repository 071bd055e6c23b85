"""ControllerRevisions of a DaemonSet: every pod template it ever had, under a name made of the template's hash."""

import json
from functools import lru_cache
from typing import Any

from simulator.actors.objects import Obj, labels, name, namespace, owned_by, uid
from simulator.actors.world import World
from simulator.kinds import CONTROLLER_REVISION, POD

HASH_LABEL = "controller-revision-hash"
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, no look-alikes
HISTORY_LIMIT = 10


def template_hash(template: Obj) -> str:
    """FNV-1a over the template, spelled as the controller spells it. Ours hashes JSON where Go hashes its own dump."""
    return _hashed(json.dumps(template, sort_keys=True))


@lru_cache(maxsize=256)
def _hashed(text: str) -> str:
    """A byte at a time, and of the same few templates again and again."""
    total = 2166136261
    for byte in text.encode():
        total = ((total ^ byte) * 16777619) & 0xFFFFFFFF
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(total))


def frozen_template(daemon_set: Obj) -> dict[str, Any]:
    """What a revision remembers: a patch that puts this template back."""
    return {"spec": {"template": {**daemon_set["spec"]["template"], "$patch": "replace"}}}


def revision_of(daemon_set: Obj, number: int) -> Obj:
    template = daemon_set["spec"]["template"]
    hash_ = template_hash(template)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name(daemon_set)}-{hash_}",
            "namespace": namespace(daemon_set),
            "labels": {**(template["metadata"].get("labels") or {}), HASH_LABEL: hash_},
            "annotations": {"deprecated.daemonset.template.generation": str(daemon_set["metadata"]["generation"])},
            "ownerReferences": [owned_by(daemon_set, api_version="apps/v1", kind="DaemonSet")],
        },
        "data": frozen_template(daemon_set),
        "revision": number,
    }


def revisions(world: World, daemon_set: Obj) -> list[Obj]:
    """Oldest first."""
    owned = world[CONTROLLER_REVISION].by("controller", uid(daemon_set))
    return sorted(owned, key=lambda revision: int(revision["revision"]))


def hash_of(revision: Obj) -> str:
    return labels(revision)[HASH_LABEL]


def current_revision(world: World, daemon_set: Obj) -> str:
    """The hash new pods carry. An older revision with the same template is used again, with the highest number."""
    known = revisions(world, daemon_set)
    template = frozen_template(daemon_set)
    newest = int(known[-1]["revision"]) if known else 0
    same = next((each for each in known if each["data"] == template), None)
    if same is None:
        _forget_oldest(world, known, daemon_set)
        return hash_of(world.create(CONTROLLER_REVISION, revision_of(daemon_set, newest + 1), namespace(daemon_set)))
    if int(same["revision"]) < newest:
        same = world.patch(CONTROLLER_REVISION, same, {"revision": newest + 1})
    return hash_of(same)


def _forget_oldest(world: World, known: list[Obj], daemon_set: Obj) -> None:
    """Revisions beyond revisionHistoryLimit go, oldest first, but never one that a pod still runs."""
    limit = int(daemon_set["spec"].get("revisionHistoryLimit", HISTORY_LIMIT))
    unused = [each for each in known if hash_of(each) not in _running(world, daemon_set)]
    for revision in unused[: max(0, len(unused) - limit)]:
        world.delete(CONTROLLER_REVISION, revision)


def _running(world: World, daemon_set: Obj) -> set[str]:
    return {labels(pod).get(HASH_LABEL, "") for pod in world[POD].by("controller", uid(daemon_set))}
