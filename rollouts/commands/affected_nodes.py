"""Cordons the affected nodes of a halted plan, on a person's request. The plan owns the cordons and removes them."""

from datetime import datetime
from typing import Any

from people.models import User
from rollouts.commands.plan_control import carry_out_once
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.models import Plan, Verb
from rollouts.models.cordon import intend_cordons
from rollouts.queries.affected_nodes import affected_nodes


def cordon_affected(
    plan: Plan,
    *,
    actor: User,
    reason: str,
    key: str = "",
    expected_state: str = "",
    seen: str | None = None,
    now: datetime,
) -> None:
    """Records the cordons; the next round writes them.

    `seen` is the `AffectedNodes.seen` that the person was shown; None accepts any.

    :raises OutOfDate: when other nodes are affected now
    :raises Refusal: when the plan is not halted, or there is nothing to cordon
    """

    def act(plan: Plan) -> dict[str, Any]:
        found = affected_nodes(plan)
        if found.why_not:
            raise Refusal(found.why_not)
        if seen is not None and seen != found.seen:
            raise OutOfDate(f"Other nodes are affected now. {found.says}")
        nodes = {node.uid: node.name for node in found.to_cordon}
        intend_cordons(plan, nodes, now=now, is_of_halt=True)
        return {"nodes": sorted(nodes.values())}

    carry_out_once(
        plan, Verb.CORDON, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now,
        also={"seen": seen},
    )  # fmt: skip
