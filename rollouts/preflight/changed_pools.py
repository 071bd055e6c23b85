"""Pools that changed after the draft was written, or change now, so that its stages select other nodes."""

from collections import Counter
from collections.abc import Iterator

from fleet.models import Pool
from gpu.upgrade_controller import unavailable_of
from people.models import AuditEntry
from rollouts.checks import Check, stage_field
from rollouts.models import Hold
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import are, count, either


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
        sentence = f"{entry.actor} changed pool {name} after the draft was written: {stage.name} takes {nodes} now."
        fix = "Look at the nodes of the stage before you start it."
        yield Check("pool-changed", sentence, fix, is_grave=True, field=stage_field(stage.index, "pool"))


def are_unsorted(subject: PreflightSubject) -> Iterator[Check]:
    """Yields a blocker while nodes enter or leave a pool of the cluster by a changed selector. One query."""
    return unsorted_pools(subject.plan.cluster_id)


def unsorted_pools(cluster_id: int) -> Iterator[Check]:
    found = Pool.objects.filter(cluster=cluster_id, is_sorted=False)
    if pools := tuple(found.order_by("name").values_list("name", flat=True)):
        words = either(len(pools), "pool", "pools")
        sentence = f"Nodes are entering and leaving {words} {names(pools)}: a stage would take only some of its nodes."
        yield Check("pool-unsorted", sentence, "Start it again in a few seconds.")


def is_used_up(subject: PreflightSubject) -> Iterator[Check]:
    broken = tuple(sorted(node.name for node in subject.nodes if node.is_unschedulable or node.is_ready is not True))
    for stage in subject.stages:
        if len(broken) >= stage.max_unavailable:
            used = f"{names(broken)} already {are(len(broken))}"
            sentence = f"{stage.name} may have {stage.max_unavailable} unavailable, and {used}."
            fix = "Nothing goes until they are back, or the stage is allowed more."
            yield Check("budget", sentence, fix, field=stage_field(stage.index, "max_unavailable"))
    allowed = unavailable_of(subject.driver.upgrade_policy, len(subject.nodes))
    if allowed and len(broken) >= allowed:
        used = f"{names(broken)} already {are(len(broken))}"
        sentence = f"The operator lets {count(allowed, 'node')} of the object be unavailable, and {used}."
        yield Check("budget", sentence, "Nothing goes until they are back, or maxUnavailable of its policy is more.")


def domains_are_full(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings for failure domains without a free place in the ledger."""
    waiting = subject.budgets.waiting([node.name for node in subject.picks.nodes])
    for sentence, number in Counter(waiting.values()).items():
        waits = f"{count(number, 'node')} {either(number, 'waits', 'wait')} for it"
        yield Check("domain", sentence, f"{waits}; the plan may be started all the same.")


def is_changed_by_others(subject: PreflightSubject) -> Iterator[Check]:
    plan, picks = subject.plan, subject.picks
    uids = {node.uid for node in (*picks.nodes, *picks.uncovered)}
    others = Hold.objects.in_force().filter(plan__cluster=plan.cluster_id).exclude(plan__object_uid=plan.object_uid)
    busy: dict[str, list[str]] = {}
    for hold in others.select_related("plan"):
        if hold.node_uid in uids:
            busy.setdefault(str(hold.plan), []).append(hold.node_name)
    for other, taken in busy.items():
        sentence = f"{other} is changing {names(tuple(sorted(taken)))}."
        yield Check("busy-nodes", sentence, "One change at a time on a node: end it first, or wait until it is over.")
