from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from edges.digests import digest

NOTHING = "0" * 64


class AuditEntry(models.Model):
    """One decision: actor, verb, reason and evidence. Hash-chained to the entry before; never edited or pruned.

    Write it in the transaction of the decision, after the guarded update of the subject or under its lock. That
    separates two writers of one chain; the unique pair below is the safety net.
    """

    subject = models.CharField(max_length=64)  # "plan:7"
    number = models.PositiveIntegerField()  # 1, 2, 3 … within the subject
    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    verb = models.CharField(max_length=64)
    reason = models.CharField(max_length=1000, blank=True)
    evidence = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject", "number"], name="one_entry_per_number")]
        ordering = ["subject", "number"]
        indexes = [
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["at"], name="audit_by_time"),
        ]

    @classmethod
    def record(
        cls, subject: str, *, verb: str, actor: str, reason: str = "", evidence: Any = None, now: datetime
    ) -> AuditEntry:
        last = cls.objects.filter(subject=subject).order_by("-number").first()
        entry = cls(
            subject=subject,
            number=last.number + 1 if last else 1,
            at=now,
            actor=actor,
            verb=verb,
            reason=reason,
            evidence=json.loads(json.dumps(evidence or {}, cls=DjangoJSONEncoder), parse_float=_number_as_stored),
            previous_hash=last.hash if last else NOTHING,
        )
        entry.hash = entry.computed_hash()
        entry.save(force_insert=True)
        return entry

    def computed_hash(self) -> str:
        content = [
            self.previous_hash,
            self.subject,
            self.number,
            self.at.isoformat(timespec="microseconds"),
            self.actor,
            self.verb,
            self.reason,
            self.evidence,
        ]
        return digest(content)


def _number_as_stored(literal: str) -> float | int:
    """Returns a number as PostgreSQL returns it: 1e+16 as an integer with all digits, and no negative zero."""
    return int(Decimal(literal)) if "e+" in literal else float(literal) or 0.0


def broken_links(entries: models.QuerySet[AuditEntry]) -> Iterator[tuple[AuditEntry, str]]:
    """Yields each altered entry with the reason: content, number or predecessor differs from what was written."""
    before: AuditEntry | None = None
    for entry in entries.order_by("subject", "number").iterator():
        is_next = before is not None and (before.subject, before.number + 1) == (entry.subject, entry.number)
        if fault := _fault_of(entry, before.hash if before and is_next else None):
            yield entry, fault
        before = entry


def faults_among(entries: Sequence[AuditEntry]) -> dict[int, str]:
    """Returns the reason for each altered entry, by key. It checks these entries alone, in one query."""
    wanted = [Q(subject=entry.subject, number=entry.number - 1) for entry in entries if entry.number > 1]
    rows = AuditEntry.objects.filter(reduce(or_, wanted)) if wanted else AuditEntry.objects.none()
    hashes = {(subject, number): last for subject, number, last in rows.values_list("subject", "number", "hash")}
    found = {entry.pk: _fault_of(entry, hashes.get((entry.subject, entry.number - 1))) for entry in entries}
    return {key: fault for key, fault in found.items() if fault}


def _fault_of(entry: AuditEntry, previous_hash: str | None) -> str:
    """Returns what is wrong with an entry; blank: nothing. `previous_hash` None: there is no entry before it."""
    if previous_hash is None and entry.number > 1:
        return "the entry before it is missing"
    if entry.previous_hash != (previous_hash or NOTHING):
        return "its hash does not follow from the entry before it"
    return "" if entry.hash == entry.computed_hash() else "its content was changed"
