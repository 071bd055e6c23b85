from typing import Any

from django.db.models import QuerySet

from edges.digests import digest
from people.models import AuditEntry
from rollouts.evidence.file import FORMAT, bytes_of, hashes_of_parts
from rollouts.models import Approval, GateAnswer, GateOverride, Plan, PlanEvent
from rollouts.models.plan_event import OF_HALTS


def evidence_of(plan: Plan) -> bytes:
    """Returns the evidence file: the sealed plan, each decision with its bundle, results, suspects, audit chain.

    Five queries.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "plan": {
            "id": plan.pk,
            "mark": plan.mark,
            "title": plan.title,
            "cluster": plan.cluster.name,
            "author": plan.author,
            "last_editor": plan.last_editor,
            "state": plan.state,
            "sealed_at": _instant_text(plan.sealed_at),
            "sealed": plan.sealed,
            "content_hash": plan.content_hash,
        },
        "decisions": [_decision(each) for each in _decisions(plan)],
        "answers": [_answer(each) for each in _answers(plan)],
        "audit": [_entry(each) for each in AuditEntry.objects.filter(subject=plan.mark).order_by("number")],
    }
    if overrides := [_override_entry(each) for each in _overrides_of_plan(plan)]:
        content["overrides"] = overrides
    if notes := [_note(each) for each in plan.events.filter(to__in=OF_HALTS).order_by("pk")]:
        content["halts"] = notes
    content["parts"] = hashes_of_parts(content)
    return bytes_of(content | {"hash": digest(content)})


def _decisions(plan: Plan) -> QuerySet[Approval]:
    return Approval.objects.filter(stage__plan=plan).select_related("stage").order_by("pk")


def _answers(plan: Plan) -> QuerySet[GateAnswer]:
    rows = GateAnswer.objects.filter(stage__plan=plan).exclude(is_current=False, rested_on_at=None)
    return rows.select_related("stage").order_by("pk")


def _decision(approval: Approval) -> dict[str, Any]:
    return {
        "id": approval.pk,
        "stage": approval.stage.index,
        "stage_name": approval.stage.name,
        "decision": "reject" if approval.is_rejection else "approve",
        "by": approval.by,
        "at": _instant_text(approval.at),
        "reason": approval.reason,
        "bundle": approval.bundle,
        "bundle_hash": approval.bundle_hash,
        "void_at": _instant_text(approval.void_at),
        "void_reason": approval.void_reason,
    }


def _answer(answer: GateAnswer) -> dict[str, Any]:
    return {
        "stage": answer.stage.index,
        "gate": answer.gate,
        "answer": answer.answer,
        "is_advisory": answer.is_advisory,
        "cause": answer.cause,
        **answer.report,
        "nodes": answer.nodes,
        "since": _instant_text(answer.since),
        "at": _instant_text(answer.at),
        "rested_on_at": _instant_text(answer.rested_on_at),
    }


def _overrides_of_plan(plan: Plan) -> QuerySet[GateOverride]:
    return GateOverride.objects.filter(stage__plan=plan).select_related("stage").order_by("pk")


def _override_entry(override: GateOverride) -> dict[str, Any]:
    return {
        "id": override.pk,
        "stage": override.stage.index,
        "gate": override.gate,
        "said": override.said,
        "by": override.by,
        "at": _instant_text(override.at),
        "reason": override.reason,
        "until": _instant_text(override.until),
        "acknowledged_by": override.acknowledged_by,
        "acknowledged_at": _instant_text(override.acknowledged_at),
    }


def _note(note: PlanEvent) -> dict[str, Any]:
    return {"id": note.pk, "kind": note.to, "at": _instant_text(note.at), "text": note.reason}


def _entry(entry: AuditEntry) -> dict[str, Any]:
    return {
        "subject": entry.subject,
        "number": entry.number,
        "at": _instant_text(entry.at),
        "actor": entry.actor,
        "verb": entry.verb,
        "reason": entry.reason,
        "evidence": entry.evidence,
        "previous_hash": entry.previous_hash,
        "hash": entry.hash,
    }


def _instant_text(at: Any) -> str | None:
    return at.isoformat(timespec="microseconds") if at else None
