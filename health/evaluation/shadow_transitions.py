"""Moves current findings when the shadow mode of their rule starts or ends.

Each side has a row of its own. So reported findings stay in every history, and shadow findings never enter it.
"""

from collections.abc import Sequence

from health.evaluation.finding_events import write_events
from health.evaluation.finding_openings import TEXTS, Openings
from health.lifecycle import FindingState
from health.models import Finding

BEGAN, ENDED = "its rule entered shadow mode", "its rule left shadow mode"
CARRIED = (
    "cluster_id", "node_id", "subject", "rule", "severity", *TEXTS, "since", "confirmed_at", "as_bad_since",
    "worse_since", "gpu_uuid",
)  # fmt: skip


def move_findings(findings: Sequence[Finding], openings: Openings) -> list[Finding]:
    """Moves findings to the other side, and returns the current rows in the same order. Pending findings keep their
    row.

    It runs in the cluster's lock. The number of statements is constant up to hundreds of findings. The findings need
    their nodes loaded.
    """
    now = openings.now
    for is_shadow in (False, True):
        unopened = [one for one in findings if one.opened_at is None and one.is_shadow != is_shadow]
        Finding.objects.filter(pk__in=[one.pk for one in unopened]).update(is_shadow=is_shadow, parent=None)
    told = [one for one in findings if one.opened_at is not None]
    for reason, its in (
        (BEGAN, [one for one in told if not one.is_shadow]),
        (ENDED, [one for one in told if one.is_shadow]),
    ):
        Finding.move_all(its, FindingState.RESOLVED, now=now, resolved_reason=reason)
        write_events(its, "finding.resolved", now=now, reason=reason)
    others = [
        Finding(**{column: getattr(one, column) for column in CARRIED}, is_shadow=not one.is_shadow, updated_at=now)
        for one in told
    ]
    names = {one.node_id: one.node.name for one in told if one.node_id and one.node}
    opened = openings.open_all(others, names)
    turned = {one.pk: other for one, other in zip(told, opened, strict=True)}
    for one in findings:
        if one.pk not in turned:
            one.is_shadow, one.parent = not one.is_shadow, None
    return [turned.get(one.pk, one) for one in findings]
