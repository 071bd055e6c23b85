"""The requirements of a pod on its node, matched as Kubernetes does. Pure.

kubernetes.io/docs/reference/kubernetes-api/definitions: node-selector-v1-core (one term is enough, every requirement
of a term must hold, an empty term takes no node), toleration-v1-core and taint-v1-core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from capacity.wait_reasons.device_requests import DeviceDemand
from capacity.wait_reasons.label_requirements import LabelRequirement, Term, is_beyond, read_terms_of_nodes
from capacity.wait_reasons.pod_rules import NO_RULES, NamespaceLabels, PodRules, read_rules
from capacity.wait_reasons.pod_volumes import ClaimVolume

USUAL_SCHEDULER = "default-scheduler"  # corev1.DefaultSchedulerName
NEVER_PREEMPTS = "Never"  # corev1.PreemptNever
KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
COMPARING = frozenset({"Gt", "Lt"})


@dataclass(frozen=True, slots=True)
class NodeTaint:
    key: str
    value: str
    effect: str

    @property
    def keeps_away(self) -> bool:
        return self.effect in KEEPS_AWAY

    @property
    def text(self) -> str:
        """Returns the taint as kubectl writes it: nvidia.com/gpu=present:NoSchedule."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True)
class PodToleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: NodeTaint) -> bool:
        """Tells whether it tolerates the taint. Operators that compare numbers do so where the value is one."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        if self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.operator in COMPARING:
            return is_beyond(self.operator, taint.value, self.value)
        return self.value == taint.value


@dataclass(frozen=True)
class WaitingPod:
    """A pod without a node."""

    name: str  # namespace/name
    requests: Mapping[str, int]  # by resource, with cpu in millicores and memory in bytes
    created_at: datetime
    selector: Term = ()
    terms: Sequence[Term] = ()
    tolerations: Sequence[PodToleration] = ()
    scheduler: str = USUAL_SCHEDULER
    priority: int = 0
    never_preempts: bool = False
    gates: Sequence[str] = ()
    pod_group: str = ""  # of kube-scheduler's own gangs
    nominated_node: str = ""
    rules: PodRules = NO_RULES  # about other pods
    volume_claims: Sequence[str] = ()
    volumes: Sequence[ClaimVolume] | None = None  # None: volumes were not read
    claims: Sequence[str] = ()
    devices: Sequence[DeviceDemand] | None = None  # of its claims, also among `requests`; None: they are not compared
    has_device_constraints: bool = False
    has_device_overlaps: bool = False  # two requests may match the same device
    incomplete_pools: tuple[str, ...] = ()  # of ResourceSlices whose devices its claims may match
    unread: Sequence[str] = ()  # parts that are not known
    condition_reason: str = ""  # of PodScheduled
    message: str = ""  # of PodScheduled, whole
    message_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]

    @property
    def is_read(self) -> bool:
        """Tells whether all requirements on nodes are known."""
        return not {"affinity", "tolerations", "node_selector", "placement"} & set(self.unread)


def read_pod(
    placement: Mapping[str, Any], *, name: str, requests: Mapping[str, int], claims: Sequence[str],
    created_at: datetime, labels: Mapping[str, str], namespaces: NamespaceLabels | None = None,
) -> WaitingPod:  # fmt: skip
    """Reads the stored placement of a pod. An empty one was never observed, so nothing of it is known."""
    scheduled: Mapping[str, str] = next(
        (each for each in placement.get("conditions", ()) if each.get("type") == "PodScheduled"), {}
    )
    at = scheduled.get("at")
    return WaitingPod(
        name=name,
        requests={resource: amount for resource, amount in requests.items() if amount},
        created_at=created_at,
        selector=tuple(LabelRequirement(k, "In", (v,)) for k, v in sorted(placement.get("node_selector", {}).items())),
        terms=read_terms_of_nodes(placement.get("node_affinity", ())),
        tolerations=tuple(map(read_toleration, placement.get("tolerations", ()))),
        scheduler=placement.get("scheduler", USUAL_SCHEDULER),
        priority=placement.get("priority", 0),
        never_preempts=placement.get("preemption_policy") == NEVER_PREEMPTS,
        gates=tuple(placement.get("gates", ())),
        pod_group=placement.get("pod_group", ""),
        nominated_node=placement.get("nominated_node", ""),
        rules=read_rules(placement, name.partition("/")[0], labels, namespaces),
        volume_claims=tuple(placement.get("volume_claims", ())),
        claims=tuple(claims),
        unread=tuple(placement.get("unread", ())) if placement else ("placement",),
        condition_reason=scheduled.get("reason", ""),
        message=scheduled.get("message", ""),
        message_at=datetime.fromisoformat(at) if at else None,
        labels=labels,
    )


def read_taint(stored: Mapping[str, str]) -> NodeTaint:
    return NodeTaint(stored.get("key", ""), stored.get("value") or "", stored.get("effect", ""))


def read_toleration(stored: Mapping[str, str]) -> PodToleration:
    return PodToleration(
        stored.get("key") or "",
        stored.get("operator") or "Equal",
        stored.get("value") or "",
        stored.get("effect") or "",
    )
