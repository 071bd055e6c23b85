"""A draft as an earlier plan, with one more gate in each stage."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from fleet.models import DriverObject
from people.models import User
from rollouts.commands.plan_drafts import LONGEST_TITLE, draft, stages_of
from rollouts.commands.refusals import ObjectGone
from rollouts.commands.stage_drafts import gates_by_default
from rollouts.gates import GATES
from rollouts.models import Plan

NOT_COUNTED = ("advisory", "reason")


def usual_options(gate: str) -> dict[str, Any]:
    """Returns the default options with which the gate counts."""
    return {name: value for name, value in gates_by_default().get(gate, {}).items() if name not in NOT_COUNTED}


def draft_with_gate(plan: Plan, *, gate: str, options: Mapping[str, Any], actor: User, now: datetime) -> Plan:
    """Creates a draft of the same change. The gate counts in every stage, with these options.

    :raises ObjectGone: when the cluster no longer has the driver object
    :raises BadPlan: with each field that is wrong, such as an unknown gate
    """
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).first()
    if driver_object is None:
        raise ObjectGone(f"{plan.object_kind} {plan.object_name} no longer exists.")
    title = GATES[gate].title if gate in GATES else gate
    added = f" with gate {title}"
    return draft(
        cluster=plan.cluster,
        title=f"{plan.title[: LONGEST_TITLE - len(added)]}{added}",
        driver_object=driver_object,
        to_version=plan.to_version,
        stages=[replace(stage, gate_options={**stage.gate_options, gate: dict(options)}) for stage in stages_of(plan)],
        cordon_affected=plan.cordon_affected,
        actor=actor,
        now=now,
    )
