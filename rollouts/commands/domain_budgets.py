from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from fleet.models import Cluster
from fleet.models.pool import LABEL_KEY
from operations.failure_domains import DomainKind
from operations.models import DomainBudget
from people.models import AuditEntry
from people.rights import Permission
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.models import Plan
from rollouts.models.plan import wake_plans
from rollouts.models.transitions import record_event
from wording.numbers import count

MAY = Permission.ADMINISTER  # approvers of the cluster: an operator could raise the budget for their own plan
MOST = 100_000  # nodes
LONGEST_LABEL = 317  # of a label's key: a prefix of 253, a slash, a name of 63
EACH = {DomainKind.ZONE: "zone", DomainKind.RACK: "rack", DomainKind.NVLINK: "NVLink domain"}


class BadBudget(BadPlan):
    """The input is no valid budget."""


@dataclass(frozen=True)
class BudgetShown:
    kind: DomainKind
    max_unavailable: int | None  # None: any number
    label: str = ""
    by: str = ""
    at: datetime | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        return budget_text(self.kind, self.max_unavailable, self.label)


def budgets_of(cluster: Cluster) -> list[BudgetShown]:
    """Returns one entry per kind of domain, set or not. One query."""
    rows = {row.kind: row for row in DomainBudget.objects.filter(cluster=cluster)}
    return [
        BudgetShown(kind, row.max_unavailable, row.label, row.by, row.at, row.reason)
        if (row := rows.get(kind.value))
        else BudgetShown(kind, None)
        for kind in EACH
    ]


def set_budget(
    cluster: Cluster,
    kind: DomainKind,
    max_unavailable: int | None,
    *,
    label: str = "",
    actor: str,
    reason: str,
    now: datetime,
) -> str:
    """Sets the budget of a kind of domain, or removes it with None, and returns the sentence in force.

    Plans in progress apply it from their next wave.

    :raises BadBudget: when the number or the label is invalid
    """
    _refuse_nonsense(kind, max_unavailable, label)
    was = DomainBudget.objects.filter(cluster=cluster, kind=kind)
    with transaction.atomic():
        plans = list(Plan.objects.under_way().filter(cluster=cluster).select_for_update(no_key=True).order_by("pk"))
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        before = was.values("max_unavailable", "label").first()
        if max_unavailable is None:
            was.delete()
        else:
            row = {"max_unavailable": max_unavailable, "label": label, "by": actor, "reason": reason, "at": now}
            DomainBudget.objects.update_or_create(cluster=cluster, kind=kind, defaults=row)
        said = budget_text(kind, max_unavailable, label)
        evidence = {"before": before, "after": {"max_unavailable": max_unavailable, "label": label}}
        subject = f"domain-budget:{cluster.pk}:{kind}"
        AuditEntry.record(subject, verb="set", actor=actor, reason=reason, evidence=evidence, now=now)
        for plan in plans:
            told = f"{said} {reason}".strip()
            record_event(plan=plan, what="command", was="", to="domain budget", now=now, actor=actor, reason=told)
    wake_plans(Plan.objects.filter(cluster=cluster), now=now)
    return said


def budget_text(kind: DomainKind, max_unavailable: int | None, label: str = "") -> str:
    each = f"Each {EACH[kind]}{f' (label {label})' if label else ''}"
    if max_unavailable is None:
        return f"{each} may have any number of nodes unavailable."
    return f"{each} may have {count(max_unavailable, 'node')} unavailable at a time."


def kind_named(text: str) -> DomainKind:
    """Returns the kind.

    :raises Refusal: when that kind has no budget
    """
    for kind in EACH:
        if text == kind.value:
            return kind
    raise Refusal(
        f"A budget applies to {', '.join(kind.value for kind in EACH)}. A pool has its own budget, max_unavailable."
    )


def _refuse_nonsense(kind: DomainKind, max_unavailable: int | None, label: str) -> None:
    if max_unavailable is not None and not 1 <= max_unavailable <= MOST:
        raise BadBudget(
            ("max_unavailable", f"Must be a number from 1 to {MOST:,}, or empty. With 0 no node could ever change.")
        )
    needs_label = kind is DomainKind.RACK and max_unavailable is not None
    if needs_label and not label:
        raise BadBudget(("label", "Name the node label with the rack's name. Kubernetes has no such label of its own."))
    if label and not needs_label:
        raise BadBudget(("label", "Only racks need a label name."))
    if len(label) > LONGEST_LABEL or (label and not LABEL_KEY.fullmatch(label)):
        raise BadBudget(("label", "That is not a label key. Write it as topology.example.com/rack."))
