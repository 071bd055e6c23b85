"""Pools that changed after the draft was written, so that its stages select other nodes."""

from collections.abc import Iterator

from people.models import AuditEntry
from rollouts.checks import Check, stage_field
from rollouts.preflight.subject import PreflightSubject
from wording.numbers import count


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
