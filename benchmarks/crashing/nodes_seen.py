"""Nodes as the API server's log has them, and what a request makes of one. It shares no rule with the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SKIP = "nvidia.com/gpu-driver-upgrade.skip"
STATE = "nvidia.com/gpu-driver-upgrade-state"
LOADED = "nvidia.com/cuda.driver-version.full"
HELD_BY, HELD_SINCE = "quarterdeck.io/held-by", "quarterdeck.io/held-since"
EXCLUDED_BY = "quarterdeck.io/opted-out-by"
CORDONED_BY = "quarterdeck.io/cordoned-by"
OUT_OF_SERVICE, OUT_OF_SERVICE_BY = "node.kubernetes.io/out-of-service", "quarterdeck.io/out-of-service-by"
OPT_OUTS = {  # of NVSentinel, Karpenter and the autoscaler: the value with which each leaves a node alone
    "k8saas.nvidia.com/ManagedByNVSentinel": "false",
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
}
IDLE = {"", "upgrade-done", "upgrade-required"}


@dataclass
class NodeSeen:
    """A node as the log has it."""

    labels: dict[str, str] = field(default_factory=dict)
    offered: str = ""  # the driver that its ResourceSlice names; blank: none does
    annotations: dict[str, str] = field(default_factory=dict)
    is_cordoned: bool = False
    cordoned_by_others: bool = False
    is_tested: bool = False  # a test Job of ours was made for it since it was let go
    is_ready: bool = True
    is_silent: bool = False  # its kubelet does not report
    let_go: str = ""  # the version that it was let go towards; blank: it was not, or is back
    has_begun: bool = False  # since it was let go
    done: set[str] = field(default_factory=set)  # versions that it has begun to change to, let go by us
    theirs: dict[str, str | None] = field(default_factory=dict)  # opt-out → what others have made it; None: nothing
    is_another: bool = False  # made anew under its name, with our label and our name on it
    unclear: set[str] = field(default_factory=set)  # those that others have set to what we had set them to already

    @property
    def is_held(self) -> bool:
        return self.labels.get(SKIP) == "true"

    @property
    def loaded(self) -> str:
        """The driver that its labels name, or where DRA offers its GPUs its ResourceSlice. Blank: nothing does."""
        return self.labels.get(LOADED) or self.offered

    def runs(self, version: str) -> bool:
        """Slices write numbers: 580.95.05 is 580.95.5 there."""
        return bool(self.loaded) and _numbers(self.loaded) == _numbers(version)

    @property
    def state(self) -> str:
        return self.labels.get(STATE, "")

    @property
    def opt_outs(self) -> dict[str, str | None]:
        return {name: self.labels.get(name, self.annotations.get(name)) for name in OPT_OUTS}


def waits_held(node: NodeSeen) -> bool:
    """In the operator's queue, where our label keeps it: one that was let go, failed, and is to go again."""
    return node.is_held and node.state in IDLE


def is_unavailable(node: NodeSeen) -> bool:
    """It has lost what there is to lose: the first of these goes back whether the operator has a slot or not."""
    return node.is_cordoned or not node.is_ready


def as_seen(node: dict[str, Any], offered: str = "") -> NodeSeen:
    metadata = node["metadata"]
    seen = NodeSeen(
        labels=dict(metadata.get("labels") or {}),
        offered=offered,
        annotations=dict(metadata.get("annotations") or {}),
        is_cordoned=bool(node.get("spec", {}).get("unschedulable")),
    )
    seen.theirs = seen.opt_outs
    return seen


def note_opt_outs(node: NodeSeen, body: Any) -> None:
    """Of a write that is not ours. Where ours stands, and is set once more, nobody can tell the two apart."""
    metadata = body.get("metadata") or {}
    written = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    for name in written.keys() & OPT_OUTS.keys():
        node.theirs[name] = written[name]
        is_same = written[name] == OPT_OUTS[name] and EXCLUDED_BY in node.annotations
        (node.unclear.add if is_same else node.unclear.discard)(name)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def offered_in(resource_slice: dict[str, Any]) -> str:
    """The driver that its devices name. Blank: it has none."""
    found = (device["attributes"]["driverVersion"]["version"] for device in resource_slice["spec"]["devices"])
    return next(found, "")


def apply(node: NodeSeen, body: Any) -> None:
    if isinstance(body, dict):
        metadata, spec = body.get("metadata") or {}, body.get("spec") or {}
        _merge(node.labels, metadata.get("labels") or {})
        _merge(node.annotations, metadata.get("annotations") or {})
        if "unschedulable" in spec:
            node.is_cordoned = bool(spec["unschedulable"])
        for one in (body.get("status") or {}).get("conditions") or ():
            if one["type"] == "Ready":
                node.is_ready, node.is_silent = one["status"] == "True", one["status"] == "Unknown"
        return
    for step in body:
        if step["op"] != "test":
            _apply_step(node, step)


def _apply_step(node: NodeSeen, step: dict[str, Any]) -> None:
    if step["path"] == "/spec/unschedulable":
        node.is_cordoned = step["op"] != "remove" and bool(step["value"])
    for place, has in (("/metadata/labels", node.labels), ("/metadata/annotations", node.annotations)):
        if not step["path"].startswith(place):
            continue
        key = step["path"].removeprefix(place).removeprefix("/").replace("~1", "/").replace("~0", "~")
        if not key:
            has.update(step["value"])
        elif step["op"] == "remove":
            has.pop(key, None)
        else:
            has[key] = step["value"]


def _merge(has: dict[str, str], given: dict[str, str | None]) -> None:
    for key, value in given.items():
        if value is None:
            has.pop(key, None)
        else:
            has[key] = value
