"""The requirements of a pod, or of a template of pods, on its node."""

from typing import Any

import msgspec

from kube.structs.meta import Struct


class Toleration(Struct, frozen=True):
    key: str | None = ""  # blank, with Exists: every taint
    operator: str | None = "Equal"
    value: str | None = ""
    effect: str | None = ""  # blank: every effect


class NodeSelectorRequirement(Struct, frozen=True):
    key: str = ""
    operator: str = ""  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: list[str] | None = None


class NodeSelectorTerm(Struct, frozen=True):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Struct, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(Struct, frozen=True):
    """Pods of one topology domain. The API server has merged `matchLabelKeys` into the selector."""

    topology_key: str = ""
    label_selector: dict[str, Any] | None = None  # None: no pod
    namespaces: list[str] | None = None
    namespace_selector: dict[str, Any] | None = None  # None: the pod's own namespace, or `namespaces`; {}: all


class PodAffinity(Struct, frozen=True):
    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpread(Struct, frozen=True):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str | None = ""  # DoNotSchedule, ScheduleAnyway
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = ""  # Ignore: also nodes that the pod's node affinity excludes count
    node_taints_policy: str | None = ""  # Honor: nodes with untolerated taints do not count
    match_label_keys: list[str] | None = None


class GroupOfPod(Struct, frozen=True):
    """The gang of a pod, as `schedulingGroup` (from 1.36) or `workloadRef` (1.35)."""

    pod_group_name: str | None = ""
    pod_group: str | None = ""


class SchedulingGate(Struct, frozen=True):
    name: str = ""
