"""What a plan would do, worked out from what is seen now. Touches nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleet.allocation.physical import physical_of
from fleet.drivers.mode import OWN_POLICIES_FROM, has_own_policies, operator_of
from fleet.models import ClusterMode, DriverObject, Node, Operand, Pod
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from gpu.operands import VALIDATOR
from gpu.upgrade_controller import LOOKS_EVERY
from kube import selectors
from rollouts.components.base import BEGUN
from rollouts.components.driver import DriverFacts
from rollouts.components.isolated_canary import IsolatedCanary, isolated_canary
from rollouts.models import Hold, Plan, Stage
from rollouts.picking import bound_on_failure_rate, in_order, nodes_for, representatives, uncovered, waves
from rollouts.preflight import Check
from rollouts.queries import (
    candidate,
    cluster_policy,
    driver_daemonsets,
    is_held_by_others,
    nodes_of,
    object_uid,
    stale_because,
    upgrade_policy,
)
from rollouts.restraints import restraints_of
from rollouts.steering.duration import Duration, duration_of
from rollouts.steering.extremes import cannot_be_approved, meaningless
from rollouts.steering.measuring import unmeasured
from rollouts.steering.refusals import ObjectGone
from rollouts.steering.remaining import stage_time
from rollouts.steering.unasked import goes_unasked, must_ask
from rollouts.steering.version_checks import version_checks
from wording.lists import names
from wording.numbers import are, count, either

LIKELY = 0.1  # a driver that fails on fewer nodes than this is no surprise to a canary of ordinary size
FACTOR_TITLES = {
    "os_image": "OS image",
    "gpu_product": "GPU",
    "gpu_layout": "its GPUs as",
    "driver_version": "old driver",
}


@dataclass(frozen=True)
class StagePreview:
    name: str
    kind: str
    targets: list[str]
    by_wave: list[tuple[str, ...]]  # the order in which they go, where each wave has all of its room
    at_once: int  # the most that a wave may have: the stage's budget, or what the operator upgrades at once
    max_unavailable: int
    gates: list[tuple[str, dict]]

    @property
    def waves(self) -> int:
        return len(self.by_wave)

    @property
    def waves_because(self) -> str:
        """What makes waves as large as they are, and what makes them smaller."""
        operators = self.at_once < self.max_unavailable
        allows = f"The operator upgrades {self.at_once} at once" if operators else f"The stage allows {self.at_once}"
        return f"{allows}. Nodes still on their way, broken ones and the operator's free slots make waves smaller."


@dataclass(frozen=True)
class Forecast:
    """What the plan disrupts, as things are now."""

    nodes: int
    gpus: int
    pods: int
    namespaces: list[str]
    pods_with_local_files: int  # emptyDir: lost where the operator may delete them, in the way where it may not
    unmanaged_pods: int
    waits_for_operator: timedelta  # at most, beside what the nodes need: it looks at each wave every two minutes
    duration: Duration


@dataclass(frozen=True)
class Preview:
    blockers: list[Check]
    warnings: list[Check]
    stages: list[StagePreview]
    uncovered: list[str]  # nodes of the object that no stage takes: they stay held
    excluded: list[tuple[str, str]]  # (node, why it is not taken)
    forecast: Forecast
    canary_proves: str
    cohorts_uncovered: list[str]
    isolated_canary: IsolatedCanary


@dataclass
class Picks:
    """Which nodes each stage takes, in the order of release."""

    by_stage: dict[int, list[Node]] = field(default_factory=dict)  # stage index → nodes
    excluded: list[tuple[str, str]] = field(default_factory=list)
    uncovered: list[Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        return [node for nodes in self.by_stage.values() for node in nodes]


def pick(stages: Iterable[Stage], nodes: Sequence[Node]) -> Picks:
    """Hand the object's nodes out to the stages. A node goes to the first stage that takes it."""
    picks = Picks()
    left = {node.uid: node for node in nodes if not _why_excluded(node)}
    picks.excluded = [(node.name, why) for node in nodes if (why := _why_excluded(node))]
    for stage in stages:
        matching = [node for node in left.values() if _takes(stage, node)]
        candidates = [candidate(node) for node in matching]
        chosen = in_order(candidates) if stage.count is None else representatives(candidates, stage.count)
        picks.by_stage[stage.index] = [left.pop(one.uid) for one in chosen]
    picks.uncovered = list(left.values())
    return picks


def _why_excluded(node: Node) -> str:
    """Cordoned by others: the operator would take it past its own slots, and it is not ours to uncordon (Z6)."""
    if node.is_unschedulable:
        return "cordoned by somebody else"
    if is_held_by_others(node):
        return "held by somebody else"
    return "brings its own driver" if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED else ""


def _takes(stage: Stage, node: Node) -> bool:
    if stage.pool_id is not None and all(pool.pk != stage.pool_id for pool in node.pools.all()):
        return False
    return selectors.parse(stage.selector).matches(node.labels)


def forward(plan: Plan) -> list[Stage]:
    return list(plan.stages.forward().select_related("pool"))


def preview(plan: Plan, *, stages: Sequence[Stage] | None = None, now: datetime) -> Preview:
    """`stages`: unsaved ones, in place of the plan's own; it may be unsaved then, too."""
    nodes = list(nodes_of(plan).prefetch_related("pools"))
    stages = forward(plan) if stages is None else stages
    picks = pick(stages, nodes)
    facts = facts_of(plan, nodes)
    barred, warned = version_checks(plan, stages, picks.nodes, today=now.date())
    previews = [_stage_preview(stage, picks.by_stage[stage.index], facts) for stage in stages]
    return Preview(
        blockers=[*_blockers(plan, stages, picks, facts, now=now), *barred],
        warnings=sorted(
            [
                *goes_unasked(plan, stages),
                *warned,
                *_meaningless(plan, stages, picks),
                *unmeasured(plan, stages, picks.by_stage),
                *plan.its_component.warnings(facts),
                *_pick_warnings(picks),
                *_restrained(plan, picks, now=now),
                *_budget_warnings(stages, nodes),
            ],
            key=lambda check: not check.is_grave,
        ),
        stages=previews,
        uncovered=sorted(node.name for node in picks.uncovered),
        excluded=picks.excluded,
        forecast=_forecast(
            plan, picks.nodes, _duration(stages, picks, facts), waves=sum(stage.waves for stage in previews)
        ),
        canary_proves=_proof(picks),
        cohorts_uncovered=_uncovered_sentences(picks),
        isolated_canary=_isolated_canary(plan, picks),
    )


def facts_of(plan: Plan, nodes: Sequence[Node]) -> DriverFacts:
    """:raises ObjectGone: when the cluster no longer shows the object"""
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=object_uid(plan)).first()
    if driver_object is None:
        gone = f"{plan.cluster.name} no longer shows {plan.object_kind} {plan.object_name}."
        raise ObjectGone(f"{gone} Draft a plan for what is there now.")
    policy = cluster_policy(plan.cluster_id)
    return DriverFacts(
        kind=driver_object.kind,
        object_version=driver_object.version,
        to_version=plan.to_version,
        state=driver_object.state,
        message=driver_object.message,
        use_precompiled=driver_object.use_precompiled,
        sandbox_workloads=bool(policy and policy.sandbox_workloads),
        policy_uses_crd=bool(policy and policy.uses_driver_crd),
        has_policy=policy is not None,
        upgrade_policy=upgrade_policy(driver_object),
        is_driver_off=driver_object.is_driver_off,
        owned_by=tuple(driver_object.owned_by),
        nodes=len(nodes),
        pre_installed=tuple(node.name for node in nodes if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED),
        unsettled=tuple(d.name for d in driver_daemonsets(plan) if d.observed_generation < d.generation),
        under_way=tuple(n.name for n in nodes if plan.its_component.phase(n.upgrade_state) in BEGUN),
    )


def _blockers(plan: Plan, stages: Sequence[Stage], picks: Picks, facts: DriverFacts, *, now: datetime):
    if stale := stale_because(plan, now=now):
        yield Check("stale", stale, "A plan starts from what is seen; bring the cluster back into sight first.")
    if plan.cluster.mode != ClusterMode.OPERATE:
        yield Check("mode", f"Quarterdeck may not change {plan.cluster.name}: its mode is {plan.cluster.mode}.")
    if facts.object_version != plan.from_version:
        asks = f"asks for {facts.object_version}" if facts.object_version else "names no version"
        sentence = f"The object {asks} now; the plan was written for {plan.from_version or 'an object without one'}."
        yield Check("drifted", sentence, "Draft it anew.")
    same_object = Plan.objects.under_way().filter(cluster=plan.cluster_id, object_uid=plan.object_uid)
    if other := same_object.exclude(pk=plan.pk).first():
        yield Check("busy", f"{other} is under way on the same object.", "One change at a time: end it first.")
    yield from _busy(plan, picks)
    yield from plan.its_component.preflight(facts)
    for stage in stages:
        if not picks.by_stage.get(stage.index):
            yield Check("empty-stage", f"{stage.name} takes no node.", "Widen its selector, or remove the stage.")
    yield from must_ask(plan, stages, picks.by_stage)
    yield from cannot_be_approved(plan, stages)


def _busy(plan: Plan, picks: Picks) -> Iterator[Check]:
    """Nodes of the object that another plan holds: whatever that changes, it has them first."""
    uids = {node.uid for node in (*picks.nodes, *picks.uncovered)}
    others = Hold.objects.in_force().filter(plan__cluster=plan.cluster_id).exclude(plan__object_uid=plan.object_uid)
    busy: dict[str, list[str]] = {}
    for hold in others.select_related("plan"):
        if hold.node_uid in uids:
            busy.setdefault(str(hold.plan), []).append(hold.node_name)
    for other, taken in busy.items():
        sentence = f"{other} is changing {names(tuple(sorted(taken)))}."
        yield Check("busy-nodes", sentence, "One change at a time on a node: end it first, or wait until it is over.")


def _meaningless(plan: Plan, stages: Sequence[Stage], picks: Picks) -> Iterator[Check]:
    pods = Pod.objects.filter(cluster=plan.cluster_id).tenants().filter(node__in=picks.nodes)
    by_node = Counter(pods.values_list("node_id", flat=True))
    for stage in stages:
        nodes = picks.by_stage.get(stage.index, [])
        yield from meaningless(stage, nodes=len(nodes), pods=sum(by_node[node.pk] for node in nodes))


def _pick_warnings(picks: Picks):
    if picks.uncovered:
        nodes = names(tuple(sorted(node.name for node in picks.uncovered)))
        stay = either(len(picks.uncovered), "it stays", "they stay")
        yield Check("uncovered", f"No stage takes {nodes}: {stay} held on the old driver.")
    if picks.excluded:
        yield Check("excluded", f"{count(len(picks.excluded), 'node')} left out: {picks.excluded[0][1]}.")
    yield from (Check("cohort", sentence) for sentence in _uncovered_sentences(picks))


def _restrained(plan: Plan, picks: Picks, *, now: datetime) -> Iterator[Check]:
    """What holds nodes back now beside the plan: freezes, and windows that are closed."""
    bound = restraints_of(plan, now=now).of_nodes([node.uid for node in picks.nodes])
    for sentence, number in Counter(one.sentence for one in bound.values()).items():
        waits = f"{count(number, 'node')} {either(number, 'waits', 'wait')} for it"
        yield Check("restrained", sentence, f"{waits}; the plan may be started all the same.")


def _budget_warnings(stages: Iterable[Stage], nodes: Sequence[Node]) -> Iterator[Check]:
    """A budget that is used up before the plan starts: it counts what is broken already, by whomever."""
    broken = tuple(sorted(node.name for node in nodes if node.is_unschedulable or node.is_ready is not True))
    for stage in stages:
        if len(broken) >= stage.max_unavailable:
            used = f"{names(broken)} already {are(len(broken))}"
            sentence = f"{stage.name} may have {stage.max_unavailable} unavailable, and {used}."
            yield Check("budget", sentence, "Nothing goes until they are back, or the stage is allowed more.")


def _stage_preview(stage: Stage, nodes: Sequence[Node], facts: DriverFacts) -> StagePreview:
    targets = [node.name for node in nodes]
    at_once = stage_time(stage, len(nodes), facts.upgrade_policy).at_once
    return StagePreview(
        name=stage.name,
        kind=stage.kind,
        targets=targets,
        by_wave=waves(targets, at_once),
        at_once=at_once,
        max_unavailable=stage.max_unavailable,
        # By name: PostgreSQL gives the keys of JSON back in an order of its own.
        gates=[(gate.title, dict(sorted(stage.gate_options.get(gate.key, {}).items()))) for gate in stage.gates],
    )


def _duration(stages: Sequence[Stage], picks: Picks, facts: DriverFacts) -> Duration:
    nodes = {stage.index: len(picks.by_stage.get(stage.index, ())) for stage in stages}
    return duration_of([stage_time(stage, nodes[stage.index], facts.upgrade_policy) for stage in stages], took=())


def _forecast(plan: Plan, nodes: Sequence[Node], duration: Duration, *, waves: int) -> Forecast:
    uids = [node.uid for node in nodes]
    pods = list(Pod.objects.filter(cluster=plan.cluster_id, node__uid__in=uids).tenants())
    return Forecast(
        nodes=len(nodes),
        gpus=physical_of(nodes).total,
        pods=len(pods),
        namespaces=sorted({pod.namespace for pod in pods}),
        pods_with_local_files=sum(pod.has_empty_dir for pod in pods),
        unmanaged_pods=sum(not pod.owner_kind for pod in pods),
        waits_for_operator=waves * LOOKS_EVERY,
        duration=duration,
    )


def _canary_and_others(picks: Picks) -> tuple[list[Node], list[Node]]:
    stages = list(picks.by_stage.values())
    return (stages[0], [node for nodes in stages[1:] for node in nodes]) if stages else ([], [])


def _proof(picks: Picks) -> str:
    """What the canary gives, and what it would take."""
    canary, others = _canary_and_others(picks)
    nodes, wanted = len(canary), nodes_for(LIKELY)
    most = min(100, math.ceil(100 * bound_on_failure_rate(nodes)))
    if nodes >= wanted:
        return f"If none of {nodes} canary nodes fails, at most {most} % of all nodes would (95 % confidence)."
    aim = f"For 95 % confidence that under {LIKELY * 100:.0f} % of all nodes would fail,"
    all_of_them = nodes + len(others)
    takes = f"use {wanted} canary nodes" if wanted < all_of_them else f"{wanted} canary nodes must not"
    has = "" if wanted < all_of_them else f", and the plan has {count(all_of_them, 'node')}"
    return f"{aim} {takes}{has}; {count(nodes, 'node')} can only show that at most {most} % would."


def _isolated_canary(plan: Plan, picks: Picks) -> IsolatedCanary:
    objects = list(DriverObject.objects.filter(cluster=plan.cluster_id))
    validators = Operand.objects.filter(cluster=plan.cluster_id, operand=VALIDATOR)
    canary, _ = _canary_and_others(picks)
    return isolated_canary(
        plan.object_name,
        kind=plan.object_kind,
        is_fallback=any(each.is_fallback and each.name == plan.object_name for each in objects),
        has_own_policies=has_own_policies(operator_of(objects, list(validators)).version),
        since=OWN_POLICIES_FROM,
        to_version=plan.to_version,
        nodes=[node.name for node in canary],
    )


def _uncovered_sentences(picks: Picks) -> list[str]:
    canary, others = _canary_and_others(picks)
    missing = uncovered([candidate(node) for node in canary], [candidate(node) for node in others])
    return [_unmet(factor, value, number) for (factor, value), number in missing.items()]


def _unmet(factor: str, value: str, number: int) -> str:
    later = count(number, "later node")
    if factor == "pool":
        met = f"No canary node is in pool {value}" if value else "Every canary node is in a pool"
        return f"{met}; {later} {are(number)}{'' if value else ' in none'}."
    title = FACTOR_TITLES.get(factor, factor.replace("_", " "))
    return f"No canary node has {title} {value or '(unknown)'}; {later} {either(number, 'does', 'do')}."
