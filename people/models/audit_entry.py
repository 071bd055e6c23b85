from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

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
            evidence=json.loads(json.dumps(evidence or {}, cls=DjangoJSONEncoder), parse_float=_as_stored),
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


def _as_stored(literal: str) -> float | int:
    """Returns a number as PostgreSQL returns it: 1e+16 as an integer with all digits, and no negative zero."""
    return int(Decimal(literal)) if "e+" in literal else float(literal) or 0.0


def broken_links(entries: models.QuerySet[AuditEntry]) -> Iterator[tuple[AuditEntry, str]]:
    """Yields each altered entry with the reason: content, number or predecessor differs from what was written."""
    before: AuditEntry | None = None
    for entry in entries.order_by("subject", "number").iterator():
        if before is not None and before.subject != entry.subject:
            before = None
        if entry.number != (before.number + 1 if before else 1):
            yield entry, "the entry before it is missing"
        elif entry.previous_hash != (before.hash if before else NOTHING):
            yield entry, "it does not follow from the entry before it"
        elif entry.hash != entry.computed_hash():
            yield entry, "its content was changed"
        before = entry
