"""What stands against starting at all: how the cluster is seen, its mode, what else is under way."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from fleet.models import ClusterMode
from rollouts.checks import Check
from rollouts.components.driver import DriverFacts
from rollouts.models import Hold, Plan, Stage
from rollouts.preflight.extremes import cannot_be_approved
from rollouts.preflight.picks import Picks
from rollouts.preflight.unasked import must_ask
from rollouts.queries import stale_because
from wording.lists import names


def blockers(plan: Plan, stages: Sequence[Stage], picks: Picks, facts: DriverFacts, *, now: datetime):
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
