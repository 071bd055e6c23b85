"""Adds test Jobs to a stage in progress whose changed nodes lack proof (Z27, Z41)."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from edges.transition_errors import LostRace
from people.models import AuditEntry, User
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.gates.test_job import TestJobGate
from rollouts.models import Plan, Stage
from rollouts.models.transitions import record_event
from rollouts.queries.remedies import why_no_test_jobs


def add_test_jobs(stage: Stage, *, actor: User, reason: str, now: datetime) -> None:
    """Adds the gate `test_job` to the stage. Its nodes are in service, so none is cordoned for it.

    :raises BadPlan: without a reason
    :raises Refusal: when the stage has test Jobs, is not in progress, or no image is set
    :raises LostRace: when the stage moved at this moment
    """
    if not reason.strip():
        raise BadPlan(("reason", "Give a reason. It is stored."))
    plan, who = stage.plan, actor.get_username()
    with transaction.atomic():
        stage.plan = Plan.objects.select_for_update().get(pk=plan.pk)
        stage.refresh_from_db(fields=["state", "gate_options"])
        if refusal := why_no_test_jobs(stage):
            raise Refusal(refusal)
        options = {**stage.gate_options, TestJobGate.key: {"cordon": False}}
        if not Stage.objects.filter(pk=stage.pk, state=stage.state).update(gate_options=options):
            raise LostRace(f"{stage.name} is no longer {stage.state}.")
        # A round that started earlier evaluates without the new gate: it has lost its turn.
        Plan.objects.filter(pk=plan.pk).update(epoch=F("epoch") + 1, lease_until=now)
        record_event(plan=plan, stage=stage, what="command", was="", to="test-jobs", now=now, actor=who, reason=reason)
        evidence = {"stage": stage.index, "gate": TestJobGate.key}
        AuditEntry.record(plan.mark, verb="add-test-jobs", actor=who, reason=reason, evidence=evidence, now=now)
        plan.say(f"{stage.name}: {who} added a test Job to each changed node.")
    plan.wake(now=now)
