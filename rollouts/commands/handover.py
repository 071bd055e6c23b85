"""Hands the nodes of an aborted plan over to a foreign version, by a person's decision (Z38)."""

from datetime import datetime
from typing import Any

from people.models import User
from rollouts.commands.plan_control import carry_out_once
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.models import Plan, Verb
from rollouts.queries.handover import handover_of


def hand_over(
    plan: Plan,
    *,
    actor: User,
    reason: str,
    key: str = "",
    expected_state: str = "",
    version: str | None = None,
    seen: str | None = None,
    now: datetime,
) -> None:
    """Releases the nodes to the object's version, in waves. The decision is valid for that version and template only.

    `version` and `seen`, the `ObjectOfOthers.seen`, are what the person was shown; None accepts any version, and any
    object without a foreign template.

    :raises OutOfDate: when the object has another version or template now
    :raises Refusal: when nobody else has changed the object
    """

    def act(plan: Plan) -> dict[str, Any]:
        found = handover_of(plan)
        if found.why_not:
            raise Refusal(found.why_not)
        if version is not None and version != found.version:
            raise OutOfDate(f"The object no longer requests {version}. {found.says}")
        if seen is None and found.template_change:
            raise OutOfDate(f"Somebody else has changed the template. Send `seen` as well. {found.says}")
        if seen not in {None, found.seen}:
            raise OutOfDate(f"The object has changed since you read the plan. {found.says}")
        changed = plan.template_change.get("says", "")
        plan.accept_template_change()
        Plan.objects.filter(pk=plan.pk).update(handed_to=found.version)
        plan.handed_to = found.version
        return {"handed_to": found.version, "template_change": changed}

    carry_out_once(
        plan, Verb.HANDOVER, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now,
        also={"version": version} | ({"seen": seen} if seen else {}),
    )  # fmt: skip
