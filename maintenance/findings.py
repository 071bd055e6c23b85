"""Findings about cases that wait for a person, and about open breakers of automatic quarantine."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from maintenance.gate_steps import LIMITS
from maintenance.lifecycle import FINAL, NEW, CaseFacts, CaseState
from maintenance.models import AutomaticQuarantine, NewNodeGate, NodeCase
from maintenance.queries import facts_of
from maintenance.triggers import CAUSES, BreakerState, Mode
from wording.durations import spell
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit, instant

IDLE_FOR = timedelta(hours=4)  # a node out of service without a next step
REFUSED_LATELY = timedelta(minutes=2)  # each round tries again, every 10 s
SOON = frozenset({CaseState.DRAIN_BLOCKED, CaseState.IN_REPAIR, CaseState.PROBATION})  # states that need a person
BY_ITSELF = frozenset({CaseState.SUSPECT, CaseState.DRAINING, CaseState.IN_REPAIR, CaseState.PROBATION, *NEW, *FINAL})


def waiting_cases(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields open cases that wait for a person. One query, and seven more with open cases."""
    cases = list(NodeCase.objects.open().filter(cluster=cluster).select_related("finding").order_by("pk"))
    facts = facts_of(cases)
    for case in cases:
        if reason := _why_waiting(facts[case.pk], now=now):
            yield (
                f"case {case.pk}",
                Problem(
                    severity=Severity.WARNING,
                    title=fit("Case of {} waits for a person", case.node_name),
                    summary=fit("{}", reason, longest=LONGEST_SUMMARY),
                    evidence=(
                        EvidenceItem("State", case.title),
                        instant("Since", case.state_since),
                        EvidenceItem("Reason", case.reason),
                    ),
                    facts={"case": case.pk},
                    identity=f"{case.state} {reason}",
                ),
            )


def _why_waiting(facts: CaseFacts, *, now: datetime) -> str:
    """Returns why the case waits for a person. Blank: it does not, or not for long."""
    if facts.state == CaseState.PROBATION and not facts.lacks_validation:
        return ""
    if (facts.state in SOON or facts.is_uncordoned) and facts.obstacle:
        return facts.obstacle
    if facts.handed_over and not facts.is_busy:
        return facts.handed_over
    if facts.state in NEW and now - facts.since >= LIMITS[facts.state]:
        return facts.obstacle or f"The new node is {facts.state} for more than {spell(LIMITS[facts.state])}."
    if facts.state not in BY_ITSELF and not facts.is_busy and now - facts.since >= IDLE_FOR:
        return f"The node is out of service without a next step for more than {spell(IDLE_FOR)}."
    return ""


def _page(facts: Mapping[str, Any]) -> str:
    return reverse("case", args=[facts["case"]])


WAITING = FindingSource(
    "case-waits",
    "Case waits for a person",
    timedelta(minutes=10),  # a reboot takes minutes
    waiting_cases,
    "A drain is blocked, a repair is overdue, a node returned without a validation, automatic steps ended, a new node "
    "lacks something, or nobody does the next step.",
    _page,
    (
        "Open the case. It shows what it waits for, and the next step.",
        "If the drain is blocked, look at the pod and the budget that it names.",
        "If the node returned without a validation, run the test and record its result.",
    ),
    "cases",
)


def open_breakers(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields the open breakers of automatic quarantine, those of one storm as one problem. One query.

    A driver that breaks nodes of several pools opens a breaker in each, and one person looks at it (lifecycle R52).
    A later storm of the same cause is another problem: a finding that somebody acknowledged may not hide it.
    """
    rows = AutomaticQuarantine.objects.filter(pool__cluster=cluster, breaker=BreakerState.OPEN, breaker_since__lte=now)
    rows = rows.exclude(mode=Mode.OFF)
    together: dict[str, list[AutomaticQuarantine]] = defaultdict(list)
    for row in rows.select_related("pool").order_by("breaker_since", "pk"):
        about = f"automatic quarantine of pool {row.pool.name}"
        if cause := CAUSES.get(row.breaker_cause):
            about = f"automatic quarantine: {cause}, {to_the_minute(row.storm_since or row.breaker_since)}"
        together[about].append(row)
    for about, its in together.items():
        pools = [row.pool.name for row in its]
        yield (
            about,
            Problem(
                severity=Severity.CRITICAL,
                title=fit(
                    "Automatic quarantine of {} is stopped",
                    f"pool {pools[0]}" if len(pools) == 1 else count(len(pools), "pool"),
                ),
                summary=fit("{}", its[-1].breaker_reason, longest=LONGEST_SUMMARY),
                evidence=(
                    instant("Breaker open since", its[0].breaker_since),
                    EvidenceItem("Mode", its[0].mode) if len(its) == 1 else EvidenceItem("Pools", names(sorted(pools))),
                ),
                facts={"pool": its[0].pool_id} if len(its) == 1 else {"pools": [row.pool_id for row in its]},
                identity=" ".join(f"{row.pool_id} {row.breaker_since}" for row in its),
            ),
        )


def refused_holds(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields gates of new nodes whose last round could not hold a node. One query."""
    gates = NewNodeGate.objects.filter(pool__cluster=cluster, refused_at__gt=now - REFUSED_LATELY)
    for gate in gates.exclude(on_since=None).select_related("pool").order_by("pk"):
        yield (
            f"new nodes of pool {gate.pool.name}",
            Problem(
                severity=Severity.WARNING,
                title=fit("New node {} is not held", gate.refused_node),
                summary=fit("Pods start there without a test. {}", gate.refusal, longest=LONGEST_SUMMARY),
                evidence=(EvidenceItem("Node", gate.refused_node), EvidenceItem("Pool", gate.pool.name)),
                facts={"pool": gate.pool_id},
                identity=gate.refused_node,
            ),
        )


def _gate_page(facts: Mapping[str, Any]) -> str:
    return reverse("new-node-gate", args=[facts["pool"]])


UNHELD = FindingSource(
    "new-node-not-held",
    "New node is not held",
    timedelta(minutes=1),
    refused_holds,
    "The gate of a pool tried to cordon a new node, and the operation was refused.",
    _gate_page,
    (
        "Open the gate of the pool. It lists nodes that joined and are not held, with the reason.",
        "Mend what refuses the operation, or quarantine the node by hand.",
    ),
    "new nodes",
)


def _pool_page(facts: Mapping[str, Any]) -> str:
    return (
        reverse("automatic-quarantine", args=[facts["pool"]]) if "pool" in facts else reverse("automatic-quarantines")
    )


BREAKER = FindingSource(
    "quarantine-breaker-open",
    "Automatic quarantine is stopped",
    timedelta(0),
    open_breakers,
    "A breaker opened: too many nodes at once, or several nodes with one cause.",
    _pool_page,
    (
        "Look for what the nodes share: a driver, a kernel, a rack, a plan.",
        "Halt a plan that changed them.",
        "Quarantine sick nodes by hand. Then reset the breaker with the reason.",
    ),
    "automatic quarantine",
)
