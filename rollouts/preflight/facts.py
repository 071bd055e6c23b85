"""The facts about the nodes of a plan's stages, for the rules. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gpu.evictions import EvictionPolicy, is_evicted
from kube.selectors import Selector


@dataclass(frozen=True, eq=False)
class PodFacts:
    """A pod on one of the nodes that is neither ended nor terminating."""

    name: str  # with its namespace
    namespace: str
    node: str
    owner_kind: str  # blank: no controller makes it again
    is_ready: bool = True
    is_pending: bool = False
    has_empty_dir: bool = False
    resources: tuple[str, ...] = ()  # names of the GPU resources that it requests
    labels: Mapping[str, str] = field(default_factory=dict)  # of tenants only
    is_operand: bool = False
    is_tenant: bool = True
    claims_gpus: bool = False  # through DRA, without shared access for monitoring
    runtime_class: str = ""
    visible_devices: str = ""  # NVIDIA_VISIBLE_DEVICES, if the pod's spec exposes GPUs by it
    image: str = ""
    cuda: str = ""  # such as 12.8; blank: unknown


@dataclass(frozen=True)
class NodeToChange:
    name: str
    is_ready: bool | None = True  # None: nobody knows
    reason: str = ""  # why it is not
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()  # keys


@dataclass(frozen=True)
class DaemonSetFacts:
    """One of the cluster's driver DaemonSets."""

    name: str
    wanted: int
    pods: int
    without_node: tuple[str, ...] = ()


@dataclass(frozen=True)
class DraPluginFacts:
    """A kubelet plugin of NVIDIA's DRA driver, which keeps the loaded driver in use."""

    name: str  # of its DaemonSet, with its namespace
    selected_by: frozenset[str]  # the labels of nodes that its nodeSelector and affinity name
    nodes: tuple[str, ...]  # nodes of the plan on which it runs


@dataclass(frozen=True, eq=False)
class BudgetFacts:
    """A PodDisruptionBudget as the API server applies it to an eviction."""

    name: str
    namespace: str
    selector: Selector | None  # None: it covers no pod
    allowed: int | None  # None: not counted yet, which blocks evictions
    healthy: int = 0
    needed: int = 0
    evicts_unhealthy: bool = False  # unhealthyPodEvictionPolicy: AlwaysAllow

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def covers(self, pod: PodFacts) -> bool:
        return self.namespace == pod.namespace and self.selector is not None and self.selector.matches(pod.labels)

    def is_asked(self, pod: PodFacts) -> bool:
        """Returns whether the budget decides on the pod's eviction (pkg/registry/core/pod/storage/eviction.go)."""
        if pod.is_pending:
            return False
        is_healthy = 0 < self.needed <= self.healthy
        return pod.is_ready or not (self.evicts_unhealthy or is_healthy)


@dataclass(frozen=True)
class PreflightFacts:
    policy: EvictionPolicy
    pods: Sequence[PodFacts]
    budgets: Sequence[BudgetFacts]
    nodes: Sequence[NodeToChange] = ()
    driver_daemonsets: Sequence[DaemonSetFacts] = ()
    dra_plugins: Sequence[DraPluginFacts] = ()
    manager_label: str = ""  # by which the driver manager stops one more DaemonSet; blank: none is named
    operator_down: str = ""  # that the GPU operator is seen not to run, as a sentence
    operator_unseen: str = ""  # why nobody sees whether it runs
    to_version: str = ""
    from_version: str = ""
    proven_images: frozenset[str] = frozenset()  # images with Ready pods on a node that has the plan's new version
    evicts_claims: bool | None = True  # whether this operator evicts pods that claim GPUs; None: nobody knows
    budgets_unseen: str = ""  # why nobody knows the budgets, as a sentence; blank: they are known
    claims_unseen: str = ""  # the same for claims of pods; blank also if no pod has a claim

    @cached_property
    def evicted(self) -> list[PodFacts]:
        """Returns the pods that the operator evicts."""
        return [pod for pod in self.pods if self.is_evicted(pod)]

    def is_evicted(self, pod: PodFacts) -> bool:
        return is_evicted(pod.resources) or (pod.claims_gpus and self.evicts_claims is True)

    @cached_property
    def budgets_of(self) -> Mapping[PodFacts, Sequence[BudgetFacts]]:
        """Returns the budgets of each evicted pod; empty if budgets are unknown.

        Each set of labels is matched once, since pods of a workload share theirs.
        """
        found: dict[tuple[str, frozenset[tuple[str, str]]], Sequence[BudgetFacts]] = {}
        of: dict[PodFacts, Sequence[BudgetFacts]] = {}
        for pod in () if self.budgets_unseen else self.evicted:
            if pod.is_pending:
                continue
            like = (pod.namespace, frozenset(pod.labels.items()))
            if like not in found:
                there = self.budgets_by_namespace.get(pod.namespace, ())
                found[like] = [budget for budget in there if budget.covers(pod)]
            of[pod] = found[like]
        return of

    @cached_property
    def budgets_by_namespace(self) -> Mapping[str, Sequence[BudgetFacts]]:
        found: dict[str, list[BudgetFacts]] = defaultdict(list)
        for budget in self.budgets:
            found[budget.namespace].append(budget)
        return found
