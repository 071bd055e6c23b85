"""Starts and ends the shadow mode of a rule. The rule still runs, but notifies nobody."""

from collections.abc import Collection
from datetime import datetime

from django.db import IntegrityError, transaction

from edges.slices import slices
from fleet.models import Cluster
from health.evaluation.finding_openings import Openings, correlate, lock_findings
from health.evaluation.shadow_transitions import move_findings
from health.inbox.acts import recount
from health.inbox.refusals import BadAct, FindingRefusal
from health.models import Finding, RuleShadow
from health.rules import RULES
from health.rules.base import NODE, OWNER, WAITING
from health.rules.gpus import GPU_RULES
from people.models import AuditEntry

# Rules that report missing observation of nodes and GPUs.
OF_NOT_SEEING = frozenset({"exporter-silent", "gpu-silent", "operand-down"})
# Rules about missing observations, and findings of plans, are never in shadow mode.
MAY_BE_SHADOWS: Collection[str] = (
    frozenset(
        {rule.key for rule in RULES if rule.subject in (NODE, OWNER, WAITING, "GPU stack")}
        | {rule.key for rule in GPU_RULES}
    )
    - OF_NOT_SEEING
)


def why_never(rule: str) -> str:
    """Returns why this rule cannot be in shadow mode; empty if it can."""
    if rule in MAY_BE_SHADOWS:
        return ""
    return "This rule reports missing observations or decisions that a plan needs. It always notifies."


def begin(rule: str, *, actor: str, reason: str, now: datetime) -> RuleShadow:
    """Starts shadow mode. The rule's open findings are resolved and stay in every history.

    :raises BadAct: when there is no such rule, it can never be in shadow mode, or the reason is missing
    :raises FindingRefusal: when it is in shadow mode already
    """
    if said := why_never(rule):
        raise BadAct(("rule", said))
    _require_reason(reason)
    try:
        with transaction.atomic():
            row = RuleShadow.objects.create(rule=rule, by=actor, at=now, reason=reason)
            _record(row, "begin", actor=actor, reason=reason, now=now)
    except IntegrityError as error:
        standing = RuleShadow.objects.in_force().filter(rule=rule).first()
        who = f"{standing.by} has already started shadow mode" if standing else "Somebody else was first"
        raise FindingRefusal(f"{who}. Nothing was changed.") from error
    _turn(rule, is_shadow=True, now=now)
    return row


def end_shadow_mode(row: RuleShadow, *, actor: str, reason: str, now: datetime) -> None:
    """Ends shadow mode. Findings that persist are open from now on.

    :raises FindingRefusal: when somebody ended it already
    """
    _require_reason(reason)
    with transaction.atomic():
        ends = {"ended_at": now, "ended_by": actor, "ended_reason": reason}
        if not RuleShadow.objects.in_force().filter(pk=row.pk).update(**ends):
            raise FindingRefusal("Shadow mode has already ended. Nothing was changed.")
        row.refresh_from_db()
        _record(row, "end", actor=actor, reason=reason, now=now)
    _turn(row.rule, is_shadow=False, now=now)


def _turn(rule: str, *, is_shadow: bool, now: datetime) -> None:
    """Moves current findings into or out of shadow mode, cluster by cluster, in batches.

    The next evaluation moves findings that open meanwhile, or that a crashed worker left.
    """
    wrong = Finding.objects.unresolved().filter(rule=rule).exclude(is_shadow=is_shadow)
    keys = sorted(set(wrong.order_by().values_list("cluster", flat=True)))
    for cluster in Cluster.objects.filter(pk__in=keys).order_by("pk"):
        of_cluster = wrong.filter(cluster=cluster).order_by("pk")
        for some in slices(of_cluster.values_list("pk", flat=True)):
            with lock_findings(cluster):
                its = list(of_cluster.filter(pk__in=some.whole()).select_related("node"))
                move_findings(its, Openings.of(cluster, now=now))
        correlate(cluster, now=now)
        recount(cluster, now=now)


def _require_reason(reason: str) -> None:
    if not reason:
        raise BadAct(("reason", "Give a reason: it is shown during shadow mode."))


def _record(row: RuleShadow, verb: str, *, actor: str, reason: str, now: datetime) -> None:
    AuditEntry.record(
        f"rule:{row.rule}", verb=f"rule.shadow.{verb}", actor=actor, reason=reason, evidence={"rule": row.rule},
        now=now,
    )  # fmt: skip
