import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Case, Exists, IntegerField, OuterRef, Q, Value, When
from django.db.models.functions import Coalesce

from edges.transitions import write_move, write_moves
from fleet.models import Gpu, Node, Pool
from fleet.models.node import members_of
from fleet.models.visible import Visible
from health import correlation
from health.lifecycle import FINDING_MOVES, FindingState
from health.rules.base import RANKS, Severity
from health.subjects import LONGEST, PAGES, identity_of
from people.models import User
from people.rights import Permission, scope_of
from wording.instants import to_the_minute
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, EvidenceItem, sentence_of

OF_A_GPU, OF_A_NAME = re.compile(r"GPU (\d{1,4}) of "), re.compile(r"GPU (\S+) of ")
STAMPS = {
    FindingState.ACKNOWLEDGED: ("acknowledged_at",),
    FindingState.MUTED: ("muted_at",),
    FindingState.RESOLVED: ("resolved_at",),
}  # columns that say when
INACTIVE = (FindingState.CONFIRMING, FindingState.RESOLVED)
# Columns of open and muted findings: nobody handles them, and they have not ended.
UNTOUCHED = {"acknowledged_at": None, "acknowledged_by": "", "resolved_at": None, "resolved_reason": ""}
WORST_FIRST = Case(
    *(When(severity=severity, then=Value(rank)) for severity, rank in RANKS.items()),
    output_field=IntegerField(),
)
# Order of short lists: neither acknowledged findings nor notes may hide an unacknowledged one.
UNACKNOWLEDGED_FIRST = Case(
    When(severity=Severity.NOTE.value, then=Value(2)),
    When(state=FindingState.ACKNOWLEDGED, then=Value(1)),
    default=Value(0),
    output_field=IntegerField(),
)
CAUSES_FIRST = Case(When(parent=None, then=Value(0)), default=Value(1))
SEVERITIES = [(severity.value, severity.value) for severity in Severity]
STATES = [(state.value, state.value) for state in FindingState]


@dataclass(frozen=True)
class FindingsOfGpu:
    """The findings of one GPU; each list takes a query when it is read."""

    open: "FindingQuerySet"
    confirming: "FindingQuerySet"
    muted: "FindingQuerySet"  # of it and of its node as a whole
    of_node: "FindingQuerySet"  # that are open of its node as a whole, which it may suffer from


class FindingQuerySet(Visible["Finding"]):
    """Findings. A finding is visible with its node, or with its cluster if it has no node."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(node__in=members_of(pool_ids))

    def notified(self) -> "FindingQuerySet":
        """Excludes findings of rules in shadow mode, which are neither notified nor counted."""
        return self.filter(is_shadow=False)

    def open(self) -> "FindingQuerySet":
        return self.notified().filter(state__in=(FindingState.OPEN, FindingState.ACKNOWLEDGED))

    def without_cause(self) -> "FindingQuerySet":
        """Excludes findings listed under their cause, which are neither notified nor counted."""
        return self.filter(parent__isnull=True)

    def without_visible_cause(self, user: User) -> "FindingQuerySet":
        """Returns the findings that a user sees, without those whose cause the user sees too.

        The cause is about the same node, or about the cluster, which users of a pool do not see.
        """
        seen = scope_of(user, Permission.SEE)
        if seen.everywhere:
            return self.without_cause()
        is_beyond = Q(parent__node__isnull=True) & ~Q(cluster__in=seen.cluster_ids)
        return self.seen_within(seen).filter(Q(parent__isnull=True) | is_beyond)

    def worst_first(self) -> "FindingQuerySet":
        """Orders by severity, newest first. Findings listed under a cause follow those of the same severity.

        A cause is never milder than its findings, so it always precedes them.
        """
        return self.order_by(WORST_FIRST, CAUSES_FIRST, "-opened_at", "-pk")

    def unacknowledged_first(self) -> "FindingQuerySet":
        """Orders unacknowledged findings first and notes last, the worst first in each."""
        return self.order_by(UNACKNOWLEDGED_FIRST, WORST_FIRST, CAUSES_FIRST, "-opened_at", "-pk")

    def of_nodes_own(self) -> "FindingQuerySet":
        """Returns findings about nodes, without those listed under another finding of a node.

        Findings listed under one of the cluster are kept.
        """
        is_own = Q(parent__isnull=True) | Q(parent__node__isnull=True)
        return self.filter(is_own, node__isnull=False)

    def of_gpu(self, gpu: Gpu) -> "FindingQuerySet":
        """Returns findings about the GPU or its slices. The GPU needs its node loaded.

        They match by UUID. The exporter's number or name is used only if one side has no UUID, and no other GPU of the
        node has the finding's.
        """
        about = Q(pk__in=())
        for name in filter(None, (str(gpu.index), gpu.uuid)):
            subject = f"{correlation.OF_A_GPU}{name} of {gpu.node.name}"
            about |= Q(subject=subject) | Q(subject__startswith=f"{subject}, slice ")
        is_anothers = Exists(Gpu.objects.filter(node=gpu.node, uuid=OuterRef("gpu_uuid")).exclude(uuid=""))
        about &= Q(gpu_uuid="") if gpu.uuid else ~Q(is_anothers)
        own = Q(gpu_uuid=gpu.uuid) if gpu.uuid else Q(pk__in=())
        return self.filter(own | about, node=gpu.node)

    def around(self, gpu: Gpu) -> "FindingsOfGpu":
        """Returns the findings of a GPU's page and of REST, worst first. The GPU needs its node loaded."""
        every = self.filter(node=gpu.node).worst_first()
        own, of_node = every.of_gpu(gpu), every.of_no_gpu()
        return FindingsOfGpu(own.open(), own.confirming(), (own | of_node).muted(), of_node.open())

    def of_pool(self, pool: Pool) -> "FindingQuerySet":
        """Returns findings about the pool's nodes. Each finding is asked: there are more nodes than findings."""
        is_of_a_member = Exists(Node.pools.through.objects.filter(node=OuterRef("node"), pool=pool))
        return self.filter(is_of_a_member, cluster=pool.cluster_id)

    def of_no_gpu(self) -> "FindingQuerySet":
        """Returns findings about a node as a whole, or about no node."""
        return self.exclude(node__isnull=False, subject__startswith=correlation.OF_A_GPU)

    def unresolved(self) -> "FindingQuerySet":
        return self.filter(resolved_at__isnull=True)

    def confirming(self) -> "FindingQuerySet":
        """Returns pending findings: the fault has not persisted long enough yet."""
        return self.notified().filter(state=FindingState.CONFIRMING)

    def muted(self) -> "FindingQuerySet":
        """Returns muted findings: the fault persists, and nobody is notified for a while."""
        return self.notified().filter(state=FindingState.MUTED)


class Finding(models.Model):
    """A fault of a node, a cluster or its observation: opened, updated and resolved with evidence."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="findings")
    node = models.ForeignKey("fleet.Node", models.SET_NULL, null=True, related_name="findings")
    subject = models.CharField(max_length=LONGEST)  # "node gpu-001", "GPU operator", "quarterdeck": outlives its node
    gpu_uuid = models.CharField(max_length=64, blank=True, default="")  # of its board; blank: about none
    rule = models.CharField(max_length=63)  # the name of a file in `health.rules`
    severity = models.CharField(max_length=16, choices=SEVERITIES)
    fingerprint = models.CharField(max_length=1200)  # the row is written again when this changes; internal
    title = models.CharField(max_length=LONGEST_TITLE)
    summary = models.CharField(max_length=LONGEST_SUMMARY, blank=True, default="")
    evidence = models.JSONField(default=list)  # of `wording.reports.EvidenceItem`
    causes = models.JSONField(default=list)  # probable causes, the most probable first
    steps = models.JSONField(default=list)  # recommended action, in order
    facts = models.JSONField(default=dict)  # for later evaluations and queries; in no answer
    state = models.CharField(max_length=16, choices=STATES, default=FindingState.CONFIRMING)
    since = models.DateTimeField()  # when it was first seen; after a return: the start of this occurrence
    confirmed_at = models.DateTimeField()  # when it opens if the problem persists
    opened_at = models.DateTimeField(null=True)  # null: it never did
    as_bad_since = models.DateTimeField(null=True)  # while confirming: since it is this severe; null: since its start
    worse_since = models.DateTimeField(null=True)  # since the rule reports a worse severity; null: no worse severity
    first_opened_at = models.DateTimeField(null=True)
    times = models.PositiveIntegerField(default=1)  # openings since then, each soon after a resolution
    updated_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    resolved_reason = models.CharField(max_length=60, blank=True, default="")  # blank: it is no longer so
    is_shadow = models.BooleanField(default=False)  # the rule is in shadow mode
    # The finding that is its cause, under which it is listed. Null: no cause.
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="children")
    muted_at = models.DateTimeField(null=True)  # when it was last; null: it never was
    # Last acts of people; the complete list is in `FindingAct`.
    acknowledged_at = models.DateTimeField(null=True)  # null: nobody is at it
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")
    assigned_to = models.CharField(max_length=150, blank=True, default="")  # whose it is; blank: nobody's
    feedback = models.CharField(max_length=16, blank=True, default="")  # on the action; blank: no feedback
    feedback_by = models.CharField(max_length=150, blank=True, default="")
    feedback_reason = models.CharField(max_length=1000, blank=True, default="")

    objects = FindingQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "rule", "subject", "gpu_uuid"],
                condition=Q(resolved_at__isnull=True),
                name="one_finding_at_a_time_per_subject",
            )
        ]
        indexes = [
            models.Index(fields=["cluster", "-opened_at"]),
            models.Index(fields=["cluster", "-resolved_at"]),
        ]
        ordering = ["-opened_at", "-pk"]

    def __str__(self) -> str:
        return self.title

    @property
    def sentence(self) -> str:
        """Returns title and summary as one text, for histories."""
        return sentence_of(self.title, self.summary)

    @property
    def evidence_items(self) -> list[EvidenceItem]:
        return [EvidenceItem(**row) for row in self.evidence]

    def move(self, to: FindingState, *, now: datetime, **given: Any) -> None:
        """Changes the state, with further columns in the same statement.

        :raises IllegalMove: when the state table does not allow it
        :raises LostRace: when somebody else moved it first
        """
        was = FindingState(self.state)
        columns = {"updated_at": now, **dict.fromkeys(STAMPS.get(to, ()), now), **given}
        if was in INACTIVE:
            columns |= {"opened_at": now, "first_opened_at": self.first_opened_at or self.opened_at or now}
        if to in (FindingState.OPEN, FindingState.MUTED):
            columns |= UNTOUCHED
        write_move(self, FINDING_MOVES, was, to, **columns)
        self.state = to
        for name, value in columns.items():
            setattr(self, name, value)

    @staticmethod
    def move_all(rows: "Sequence[Finding]", to: FindingState, *, now: datetime, **given: Any) -> None:
        """Changes states as `move` does, in a few statements for a thousand. A lost race must undo the transaction.

        :raises IllegalMove: when the state table does not allow any of them
        :raises LostRace: when somebody else moved any of them first
        """
        begin = [row for row in rows if row.state in INACTIVE]
        others = [row for row in rows if row.state not in INACTIVE]
        columns = {"updated_at": now, **dict.fromkeys(STAMPS.get(to, ()), now), **given}
        if to in (FindingState.OPEN, FindingState.MUTED):
            columns |= UNTOUCHED
        first = Coalesce("first_opened_at", "opened_at", Value(now))
        write_moves(begin, FINDING_MOVES, to, **columns, opened_at=now, first_opened_at=first)
        write_moves(others, FINDING_MOVES, to, **columns)
        for row in begin:
            row.opened_at, row.first_opened_at = now, row.first_opened_at or row.opened_at or now
        for row in rows:
            row.state = to
            for name, value in columns.items():
                setattr(row, name, value)

    @property
    def xid(self) -> int | None:
        number = self.facts.get("xid")
        return number if isinstance(number, int) else None

    @property
    def recurrence(self) -> str:
        """Returns how often the fault came back; empty if it did not."""
        first = self.first_opened_at or self.opened_at
        return f"opened {self.times} times since {to_the_minute(first)}" if self.times > 1 and first else ""

    @property
    def is_of_gpu(self) -> bool:
        """Returns whether it is about a single GPU of an existing node."""
        return self.node_id is not None and self.subject.startswith(correlation.OF_A_GPU)

    @property
    def identity(self) -> str:
        """Returns the identity of the subject, which survives renaming."""
        return identity_of(self.subject, self.gpu_uuid)

    @property
    def gpu(self) -> int | None:
        """Returns the exporter's number of the GPU; None without a single GPU, or without a number.

        `gpu_among` tells whether it is Kubernetes' number.
        """
        found = OF_A_GPU.match(self.subject) if self.node_id else None
        return int(found[1]) if found else None

    def gpu_among(self, uuids: Mapping[int, str]) -> int | None:
        """Returns the number of the finding's GPU among those of its node; an empty UUID in `uuids` means unknown.

        They match by UUID, or by the exporter's number or name if one side has no UUID. `of_gpu` is the same in SQL.
        """
        called = OF_A_NAME.match(self.subject) if self.node_id else None
        board = self.gpu_uuid or (called[1] if called else "")
        for index, uuid in uuids.items():
            if uuid and uuid == board:
                return index
        is_anothers = bool(self.gpu_uuid and self.gpu is not None and uuids.get(self.gpu))
        return None if is_anothers else self.gpu

    @property
    def page(self) -> str:
        """Returns the address of the subject if an app above knows it; empty if it is the finding's node or cluster."""
        address = PAGES.get(self.rule)
        return address(self.facts) if address else ""


class FindingActQuerySet(models.QuerySet["FindingAct"]):
    def visible_to(self, user) -> "FindingActQuerySet":
        """Returns acts on findings that the user sees.

        If the finding is gone, only users who see everything see them.
        """
        seen = scope_of(user, Permission.SEE)
        return self if seen.everywhere else self.filter(finding__in=Finding.objects.seen_within(seen))


class FindingAct(models.Model):
    """An act of a person on a finding, with its time and reason. It outlives the finding."""

    finding = models.ForeignKey(Finding, models.SET_NULL, null=True, related_name="acts")
    rule = models.CharField(max_length=63)
    verb = models.CharField(max_length=16)  # of `health.inbox.verbs`
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000, blank=True)
    to = models.CharField(max_length=150, blank=True)  # whom it was assigned to
    said = models.CharField(max_length=500, blank=True)  # the finding, as it was then
    key = models.CharField(max_length=100, blank=True)  # the actor's own: see `edges.idempotency`

    objects = FindingActQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["finding", "by", "key"], condition=~Q(key=""), name="one_act_per_key")
        ]
        indexes = [models.Index(fields=["rule", "verb"])]
        ordering = ["-at", "-pk"]
