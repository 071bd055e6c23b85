"""Causes of driver upgrades that failed or do not finish, as far as rows show them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from django.db.models import QuerySet

from fleet.models import Cluster, DisruptionBudget, DriverObject, Node, Pod
from gpu.evictions import EvictionPolicy, Hindrance, is_evicted, read_policy
from gpu.operands import DRIVER, VALIDATOR
from gpu.upgrade_controller import DRAIN_REQUIRED, POD_DELETION_REQUIRED, UPGRADE_FAILED, WAIT_FOR_JOBS
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.base import Blocker
from health.rules.upgrade_failed import UpgradeFailed
from health.rules.upgrade_stuck import UpgradeStuck
from health.stack import read_stack
from health.stack.causes import Cause, Weight
from kube.selectors import BadSelector, parse, readable
from wording.durations import spell
from wording.lists import names
from wording.numbers import either

ASKED_WHY = 20  # nodes of a look that are asked: ten queries each
OF_UPGRADES = (UpgradeFailed.key, UpgradeStuck.key)  # rules whose cause is the node's upgrade state and its blocker
EVICTING = frozenset({POD_DELETION_REQUIRED, DRAIN_REQUIRED, UPGRADE_FAILED})


@dataclass(frozen=True)
class PodThere:
    """A pod that uses GPUs of the node. `budget` is the PodDisruptionBudget that blocks its eviction; empty if none."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    owner_kind: str = ""
    has_empty_dir: bool = False
    budget: str = ""


def find_blockers(cluster: Cluster, *, now: datetime) -> dict[int, Blocker]:
    """Returns causes by node key, for upgrades that failed or take too long.

    The driver's own pod comes first, then the validator's, then the pods to evict. Each evaluation examines a few
    nodes: first those without a known cause, then a sample of the others. The rest keep their earlier cause.
    """
    told = Finding.objects.unresolved().filter(cluster=cluster, rule__in=OF_UPGRADES, node__isnull=False)
    overdue = told.filter(rule=UpgradeStuck.key, confirmed_at__lte=now).values("node")
    nodes = Node.objects.filter(cluster=cluster).with_gpus()
    of_them = nodes.filter(upgrade_state=UPGRADE_FAILED) | nodes.filter(pk__in=overdue)
    states = dict(of_them.order_by("pk").values_list("pk", "upgrade_state"))
    found = _found_before(told, states) if states else {}
    asked = [key for key in states if key not in found][:ASKED_WHY]
    asked += Random(now.timestamp()).sample(sorted(found), min(len(found), ASKED_WHY - len(asked)))
    found |= {node.pk: find_blocker(node, now=now) for node in nodes.filter(pk__in=asked)} if asked else {}
    return {key: blocker for key, blocker in found.items() if blocker != Blocker()}


def _found_before(told: QuerySet[Finding], states: Mapping[int, str]) -> dict[int, Blocker]:
    """Returns earlier blockers by node key, for nodes in the same state; empty if an earlier check found none."""
    known = told.exclude(state=FindingState.CONFIRMING).values_list("node", "facts")
    return {
        key: Blocker(**{name: tuple(texts) for name, texts in facts.get("blocker", {}).items()})
        for key, facts in known
        if facts.get("state") == states.get(key)
    }


def find_blocker(node: Node, *, now: datetime) -> Blocker:
    """Returns the cause for one node from its current rows, with ten queries."""
    causes: dict[str, Cause | None] = {row.operand: row.cause for row in read_stack(node, now=now).operands}
    of_validator = causes.get(VALIDATOR)
    if of_validator is not None and of_validator.weight is Weight.WAITING:
        of_validator = None  # another reason then keeps the node
    cause = causes.get(DRIVER) or of_validator
    if node.upgrade_state in (WAIT_FOR_JOBS, POD_DELETION_REQUIRED, DRAIN_REQUIRED) or cause is None:
        return kept_by_pods(node.upgrade_state, _policy(node), _pods(node))
    validator = ("The operator waits for the validator of this node.",) if cause is of_validator else ()
    return Blocker((*validator, cause.sentence), cause.steps)


def kept_by_pods(state: str, policy: EvictionPolicy, pods: Sequence[PodThere]) -> Blocker:
    """Returns the cause if pods delay the upgrade; empty if unknown."""
    if state == WAIT_FOR_JOBS:
        return _awaited(policy, pods)
    if state not in EVICTING:
        return Blocker()
    refused: dict[Hindrance, list[str]] = {}
    for pod in pods:
        for hindrance in policy.pods.hindrances(owner_kind=pod.owner_kind, has_empty_dir=pod.has_empty_dir):
            refused.setdefault(hindrance, []).append(pod.name)
    held: dict[str, list[str]] = {}
    for pod in pods:
        if pod.budget:
            held.setdefault(pod.budget, []).append(pod.name)
    said = [
        f"PodDisruptionBudget {budget} allows no eviction of {names(sorted(those))}." for budget, those in held.items()
    ]
    said += [f"{names(sorted(refused[each]))} {WORDS[each](len(refused[each]))}" for each in WORDS if each in refused]
    return Blocker(tuple(said), ("Delete the pods by hand, or let the policy or the budget allow it.",) if said else ())


WORDS: Mapping[Hindrance, Callable[[int], str]] = {
    Hindrance.NO_CONTROLLER: lambda number: (
        f"{either(number, 'has', 'have')} no controller (podDeletion.force is off)."
    ),
    Hindrance.EMPTY_DIR: lambda number: (
        f"{either(number, 'keeps', 'keep')} files on the node in an emptyDir (podDeletion.deleteEmptyDir is off)."
    ),
    Hindrance.DAEMON_SET: lambda number: (
        f"{either(number, 'requests', 'request')} GPUs and {either(number, 'is', 'are')} a DaemonSet's."
    ),
}


def _awaited(policy: EvictionPolicy, pods: Iterable[PodThere]) -> Blocker:
    try:
        selector = parse(policy.waits_for)
    except BadSelector:
        return Blocker()
    those = sorted(pod.name for pod in pods if pod.labels and selector.matches(pod.labels))
    named = names(those) or f"pods that are {policy.waits_for}"
    limit = f"for {spell(policy.waits_at_most)} at most" if policy.waits_at_most else "without a limit"
    return Blocker(
        (f"The operator waits for {named} to end, {limit} (upgradePolicy.waitForCompletion).",),
        (f"End {either(max(1, len(those)), 'it', 'them')}, or set timeoutSeconds there.",),
    )


def _policy(node: Node) -> EvictionPolicy:
    """Returns the node's upgrade policy: of its NVIDIADriver from operator 26.7 on, of the ClusterPolicy before."""
    rows = list(DriverObject.objects.filter(cluster=node.cluster_id))
    own = next((row for row in rows if row.kind == "NVIDIADriver" and row.name == node.driver_owner), None)
    lead = next((row for row in rows if row.kind == "ClusterPolicy" and row.state != "ignored"), None)
    given = (own.upgrade_policy if own else {}) or (lead.upgrade_policy if lead else {})
    return read_policy(given)


def _pods(node: Node) -> list[PodThere]:
    """Returns the pods, with two queries."""
    there = Pod.objects.filter(cluster=node.cluster_id, node_name=node.name, deleted_at=None).not_done().tenants()
    using = [pod for pod in there.order_by("namespace", "name") if is_evicted(pod.resources)]
    none_left = DisruptionBudget.objects.filter(
        cluster=node.cluster_id, namespace__in={pod.namespace for pod in using}, disruptions_allowed=0
    )
    budgets = [(row, selector) for row in none_left if (selector := readable(row.selector)) is not None]

    def budget_of(pod: Pod) -> str:
        mine = (row for row, selector in budgets if row.namespace == pod.namespace and selector.matches(pod.labels))
        return next((f"{row.namespace}/{row.name}" for row in mine), "")

    return [PodThere(str(pod), pod.labels, pod.owner_kind, pod.has_empty_dir, budget_of(pod)) for pod in using]
