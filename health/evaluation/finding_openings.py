"""Confirmed findings: they open, open muted, or reopen.

Open findings are also listed under their cause here, and unmuted when their mute ends.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from django.db import transaction
from django.db.models import F, Q

from edges.slices import slices
from fleet.event_kinds import OPENED, OPENED_MUTED
from fleet.models import Cluster, DomainEvent, Observer
from gpu.conditions import is_of_a_gpu
from gpu.resources import Layout, boards_of
from health.correlation import Found, causes
from health.evaluation.finding_events import EventOfNode, event_of, write_events
from health.lifecycle import FindingState
from health.models import Finding, Mute
from health.models.mute import pools_of
from health.rules.allocatable_below_expected import AllocatableBelowExpected
from health.rules.base import RANKS, Severity
from health.rules.limits import LONGEST
from health.rules.node_conditions import NodeConditions

AT_ONCE = 500  # rows a statement
SAME_WITHIN = timedelta(minutes=30)  # a problem that returns this soon reopens its finding
LATELY = SAME_WITHIN + LONGEST  # resolved before: nothing that opens now began so soon after
UNCOVERED = "finding.uncovered"  # of `fleet.event_kinds`
ATTENDED = (FindingState.OPEN, FindingState.ACKNOWLEDGED)
ACTIVE = (FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.MUTED)
TEXTS = ("fingerprint", "title", "summary", "evidence", "causes", "steps", "facts")
AGAIN = (
    "subject", "severity", *TEXTS, "since", "confirmed_at",
    "as_bad_since", "worse_since", "node_id", "gpu_uuid",
)  # fmt: skip
# Fields that decide whether one finding explains another.
COMPARED = (
    "rule", "subject", "gpu_uuid", "node", "severity", "parent", "since", "state", "muted_at", "facts",
    "node__layout", "node__gpu_product",
)  # fmt: skip
TO_MATCH = ("cluster", "rule", "subject", "gpu_uuid", "node__name")  # with its mutes
TO_OPEN = ("state", "severity", "title", "summary", "is_shadow", "opened_at", "first_opened_at")  # again, and notify
NO_FEEDBACK = {"feedback": "", "feedback_by": "", "feedback_reason": ""}


@contextmanager
def lock_findings(cluster: Cluster) -> Iterator[None]:
    """Opens the one transaction that may write findings of this cluster. Two at once would open a finding twice.

    Existing rows stay locked until the transaction ends.
    """
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        Observer.lock(cluster.pk)
        yield


@dataclass(frozen=True)
class Openings:
    """The state that opening a batch of findings needs.

    Nothing is read before something opens: then the mutes, lately resolved findings, and pools if a mute is of one.
    `about` filters the subjects of the batch.
    """

    cluster: Cluster
    now: datetime
    mutes: Iterable[Mute] = ()  # may be a query set, read once
    about: Q = field(default_factory=Q)
    events: list[EventOfNode] = field(default_factory=list)  # of the batch: its transaction writes them at once

    @classmethod
    def of(cls, cluster: Cluster, *, now: datetime, about: Q | None = None) -> "Openings":
        return cls(cluster, now, Mute.objects.in_force(now=now).filter(cluster=cluster), about or Q())

    def open(self, finding: Finding, node_name: str) -> Finding:
        """Opens a pending finding, muted if a mute covers it, and returns its row. A recently resolved row is reopened.

        :raises LostRace: when somebody else moved it first
        """
        to = FindingState.MUTED if self.is_muted(finding, node_name) else FindingState.OPEN
        before = self._same_before(finding)
        if before is None:
            finding.move(to, now=self.now)
            self.note(finding, OPENED)
            return finding
        again = {name: getattr(finding, name) for name in AGAIN}
        finding.delete()
        is_other = before.steps != again["steps"]
        before.move(to, now=self.now, times=F("times") + 1, parent=None, **again, **(NO_FEEDBACK if is_other else {}))
        before.refresh_from_db(fields=["times"])
        self.note(before, OPENED)
        return before

    def note(self, finding: Finding, kind: str, **facts: str) -> None:
        """Adds an event of the batch. A muted finding has none but that of its opening."""
        if finding.state == FindingState.MUTED and kind == OPENED:
            kind = OPENED_MUTED
        elif finding.state not in ATTENDED:
            return
        if not finding.is_shadow:
            self.events.append((event_of(finding, kind, now=self.now, **facts), finding.node_id))

    def open_all(self, findings: Sequence[Finding], names: Mapping[int, str]) -> list[Finding]:
        """Opens unsaved findings as `open` does, in a few statements for all. `names` holds node names by key.

        :raises LostRace: when somebody else moved one of them first
        """
        fresh: list[Finding] = []
        again: list[Finding] = []
        now_so: list[Finding] = []
        for finding in findings:
            before = self._same_before(finding)
            if before is not None:
                is_other = before.steps != finding.steps
                for name in AGAIN:
                    setattr(before, name, getattr(finding, name))
                before.times, before.parent = before.times + 1, None
                if is_other:
                    before.feedback = before.feedback_by = before.feedback_reason = ""
                again.append(before)
            else:
                fresh.append(finding)
            now_so.append(before or finding)
        Finding.objects.bulk_create(fresh, batch_size=AT_ONCE)
        Finding.objects.bulk_update(again, (*AGAIN, *NO_FEEDBACK, "times", "parent"), batch_size=AT_ONCE)
        muted = [one for one in now_so if self.is_muted(one, names.get(one.node_id or 0, ""))]
        Finding.move_all(muted, FindingState.MUTED, now=self.now)
        write_events(muted, OPENED_MUTED, now=self.now)
        opened = [one for one in now_so if one.state != FindingState.MUTED]
        Finding.move_all(opened, FindingState.OPEN, now=self.now)
        write_events(opened, OPENED, now=self.now)
        return now_so

    def _same_before(self, finding: Finding) -> Finding | None:
        """Returns the recently resolved finding of the same fault; None if there is none."""
        before = self._lately.get((finding.rule, finding.identity, finding.is_shadow))
        if before is None or before.resolved_at is None or finding.since - before.resolved_at > SAME_WITHIN:
            return None
        return before

    def is_muted(self, finding: Finding, node_name: str) -> bool:
        return any(mute.covers(finding, node_name, self._pools.get(finding.node_id or 0, ())) for mute in self.mutes)

    def unmute(self, among: Collection[int] | None = None) -> int:
        """Opens findings whose mute has ended, and returns how many. One query, and one for all of them."""
        ended = self.unmuted(among)
        Finding.move_all(ended, FindingState.OPEN, now=self.now)
        write_events(ended, OPENED, now=self.now)
        return len(ended)

    def unmuted(self, among: Collection[int] | None = None) -> list[Finding]:
        """Returns muted findings that no mute covers any more. `among` holds the keys to check; None means all."""
        muted = Finding.objects.filter(cluster=self.cluster, state=FindingState.MUTED)
        muted = muted.select_related("node").only(*TO_MATCH, *TO_OPEN)
        rows = muted if among is None else muted.filter(pk__in=among)
        return [row for row in rows.order_by("pk") if not self.is_muted(row, row.node.name if row.node else "")]

    @cached_property
    def _pools(self) -> Mapping[int, frozenset[int]]:
        return pools_of(self.mutes)

    @cached_property
    def _lately(self) -> Mapping[tuple[str, str, bool], Finding]:
        """Returns findings resolved so lately that the same fault may be back.

        Findings that entered or left shadow mode are left out, since they were closed on purpose.
        """
        lately = {"resolved_at__gte": self.now - LATELY, "resolved_reason": ""}
        rows = Finding.objects.filter(self.about, cluster=self.cluster, **lately)
        return {(row.rule, row.identity, row.is_shadow): row for row in rows.order_by("resolved_at", "pk")}


def must_notify_again(finding: Finding, severity: str) -> bool:
    """Returns whether the assignee must be notified of a change: the finding became critical."""
    return finding.state == FindingState.ACKNOWLEDGED and severity == Severity.CRITICAL


def unmute(cluster: Cluster, *, now: datetime) -> int:
    """Opens findings whose mute has ended, in batches. Returns how many; one query if none is muted."""
    ended = [row.pk for row in Openings.of(cluster, now=now).unmuted()]
    opened = 0
    for some in slices(ended):
        with lock_findings(cluster):
            opened += Openings.of(cluster, now=now).unmute(some.whole())
    return opened


def correlate(cluster: Cluster, *, now: datetime) -> int:
    """Lists findings under their cause, in batches. Returns how many changed; two queries, and one for each cause."""
    events = list(DomainEvent.objects.unsettled().filter(cluster=cluster).values_list("pk", flat=True))
    told = Finding.objects.notified().filter(cluster=cluster, state__in=ACTIVE).select_related("node")
    rows = list(told.order_by("pk").only(*COMPARED))
    found = [_found(row) for row in rows]
    explained = causes(found)
    moved = [(row.pk, explained.get(row.pk)) for row in rows if row.parent_id != explained.get(row.pk)]
    for some in slices(moved):
        with lock_findings(cluster):
            _list(some.whole(), now=now)
    DomainEvent.settle(events, cluster_id=cluster.pk)
    return len(moved)


def _list(moved: Collection[tuple[int, int | None]], *, now: datetime) -> None:
    """Sets the parent of each finding, unless the parent was resolved meanwhile; None removes the parent."""
    by_cause: dict[int | None, list[int]] = defaultdict(list)
    for key, cause in moved:
        by_cause[cause].append(key)
    asked = [cause for cause in by_cause if cause is not None]
    there = set(Finding.objects.unresolved().filter(pk__in=asked).values_list("pk", flat=True))
    for cause, keys in by_cause.items():
        if cause is None or cause in there:
            rows = Finding.objects.filter(pk__in=keys)
            if cause is None:
                write_events(rows.filter(state=FindingState.OPEN), UNCOVERED, now=now)
            rows.update(parent=cause)


def _found(row: Finding) -> Found:
    return Found(
        row.pk,
        row.rule,
        row.identity if row.is_of_gpu else "",
        row.node_id,
        RANKS.get(row.severity, len(RANKS)),
        row.since,
        muted_at=row.muted_at if row.state == FindingState.MUTED else None,
        gpus=_gpus(row),
    )


def _gpus(row: Finding) -> int:
    """Returns how many GPUs of the node need findings before they explain this one; 0: they never do."""
    if row.rule == NodeConditions.key:
        return int(all(map(is_of_a_gpu, row.facts)))
    if row.rule != AllocatableBelowExpected.key or row.node is None:
        return 1
    gone = {name: each["expected"] - (each["allocatable"] or 0) for name, each in row.facts.items()}
    return max(1, boards_of(gone, Layout.read(row.node.layout), product=row.node.gpu_product))


def resolve(findings: Sequence[Finding], *, reason: str = "", now: datetime) -> int:
    """Resolves findings, and returns how many of them users had been notified of. Pending ones are deleted.

    The number of statements is constant. Findings listed under one of them become independent. An empty `reason` means
    that the fault ended.
    """
    opened = [one for one in findings if one.opened_at is not None]
    unopened = [one.pk for one in findings if one.opened_at is None]
    if unopened:
        Finding.objects.filter(pk__in=unopened).delete()
    if not opened:
        return 0
    Finding.move_all(opened, FindingState.RESOLVED, now=now, resolved_reason=reason)
    children = Finding.objects.filter(parent__in=[one.pk for one in opened])
    write_events(children.filter(state=FindingState.OPEN), UNCOVERED, now=now)
    children.update(parent=None)
    told = [one for one in opened if not one.is_shadow]
    write_events(told, "finding.resolved", now=now, reason=reason)
    return len(told)
