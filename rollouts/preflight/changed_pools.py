"""Pools that changed after the draft was written, or change now, so that its stages select other nodes."""

from collections import Counter
from collections.abc import Iterator, Sequence

from fleet.models import Pool
from gpu.upgrade_controller import unavailable_of
from people.models import AuditEntry
from rollouts.checks import START_ANYWAY, Check, listed, stage_field
from rollouts.models import Hold
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import count, either
from wording.reports import EvidenceItem

NONE_RELEASED = "No node is released until one of the unavailable nodes is back."


def have_changed(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. One query if a stage is of a pool."""
    pools = {f"pool:{stage.pool_id}": stage for stage in reversed(subject.stages) if stage.pool_id}
    if not pools or subject.plan.pk is None:
        return
    since = AuditEntry.objects.filter(subject__in=list(pools), at__gt=subject.plan.edited_at)
    newest = {entry.subject: entry for entry in since.order_by("number")}
    for key, entry in sorted(newest.items()):
        stage = pools[key]
        nodes = count(len(subject.picks.by_stage.get(stage.index, ())), "node")
        name = stage.pool.name if stage.pool else ""
        yield Check(
            "pool-changed",
            title=f"Pool {name} changed after the draft was written",
            summary=f"{entry.actor} changed it. {stage.name} takes {nodes} now.",
            steps=("Check the nodes of the stage before you start the plan.",),
            is_grave=True,
            field=stage_field(stage.index, "pool"),
        )


def are_unsorted(subject: PreflightSubject) -> Iterator[Check]:
    """Yields a blocker while nodes enter or leave a pool of the cluster by a changed selector. One query."""
    return unsorted_pools(subject.plan.cluster_id)


def unsorted_pools(cluster_id: int) -> Iterator[Check]:
    found = Pool.objects.filter(cluster=cluster_id, is_sorted=False)
    if pools := tuple(found.order_by("name").values_list("name", flat=True)):
        yield Check(
            "pool-unsorted",
            title=f"Nodes are entering or leaving {either(len(pools), 'pool', 'pools')} {names(pools)}",
            summary="A stage would take only some of its nodes.",
            evidence=listed("Pools", pools),
            steps=("Start the plan again in a few seconds.",),
        )


def is_used_up(subject: PreflightSubject) -> Iterator[Check]:
    broken = tuple(sorted(node.name for node in subject.nodes if node.is_unschedulable or node.is_ready is not True))
    for stage in subject.stages:
        if len(broken) >= stage.max_unavailable:
            yield Check(
                "budget",
                title=f"The budget of {stage.name} is used up",
                summary=NONE_RELEASED,
                evidence=_budget(stage.max_unavailable, broken),
                steps=("Repair these nodes, or raise the budget of the stage.",),
                field=stage_field(stage.index, "max_unavailable"),
            )
    allowed = unavailable_of(subject.driver.upgrade_policy, len(subject.nodes))
    if allowed and len(broken) >= allowed:
        yield Check(
            "budget",
            title="maxUnavailable of the driver object is used up",
            summary=NONE_RELEASED,
            evidence=_budget(allowed, broken),
            steps=("Repair these nodes, or raise maxUnavailable.",),
        )


def _budget(allowed: int, broken: Sequence[str]) -> tuple[EvidenceItem, ...]:
    return (EvidenceItem("Allowed to be unavailable", allowed), *listed("Unavailable now", broken))


def domains_are_full(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings for failure domains without a free place in the ledger."""
    waiting = subject.budgets.waiting([node.name for node in subject.picks.nodes])
    for sentence, number in Counter(waiting.values()).items():
        title = f"A failure domain is full for {count(number, 'node')}"
        yield Check("domain", title=title, summary=sentence, steps=(START_ANYWAY,))


def is_changed_by_others(subject: PreflightSubject) -> Iterator[Check]:
    plan, picks = subject.plan, subject.picks
    uids = {node.uid for node in (*picks.nodes, *picks.uncovered)}
    others = Hold.objects.in_force().filter(plan__cluster=plan.cluster_id).exclude(plan__object_uid=plan.object_uid)
    busy: dict[str, list[str]] = {}
    for hold in others.select_related("plan"):
        if hold.node_uid in uids:
            busy.setdefault(str(hold.plan), []).append(hold.node_name)
    for other, taken in busy.items():
        title = f"Another plan is changing {count(len(taken), 'node')}"
        steps = ("Wait until that plan ends, or end it.",)
        yield Check("busy-nodes", title=title, summary=f"{other}.", evidence=listed("Nodes", taken), steps=steps)
