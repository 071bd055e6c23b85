"""What the bench itself looks at between rounds: the same few questions, as SQL that Django makes once."""

from functools import lru_cache
from typing import Any

from django.db.models import Exists, OuterRef, Q

from benchmarks.crashing.rows import raw_rows
from operations.models import Freeze
from rollouts.models import Approval, Command, MaintenanceWindow, Plan, Stage, Target

Asked = tuple[str, tuple[Any, ...]]


def state_of(plan_id: int) -> str:
    ((state,),) = raw_rows(_of_plan(plan_id)["state"])
    return str(state)


def is_paused(plan_id: int) -> bool:
    return bool(raw_rows(_of_plan(plan_id)["pauses"]))


def is_opening(plan_id: int) -> bool:
    """A stage of it waits for what its gates say."""
    return bool(raw_rows(_of_plan(plan_id)["opening"]))


def is_approved(plan_id: int) -> bool:
    """A stage of it is opening, and an approval stands."""
    return bool(raw_rows(_of_plan(plan_id)["approved"]))


def is_without_nodes(plan_id: int) -> bool:
    """A stage that is on has no node left that it could be judged on: it never passes, and the page says so.

    Or the one before it, of which it asks once more before it lets its first nodes go.
    """
    return bool(raw_rows(_of_plan(plan_id)["empty"]))


def soaking(plan_id: int) -> frozenset[str]:
    """Nodes that are being judged."""
    return frozenset(name for (name,) in raw_rows(_of_plan(plan_id)["soaking"]))


def is_anything_frozen() -> bool:
    """Or outside of a window. Nobody in a schedule gives a freeze an end."""
    return any(raw_rows(asked) for asked in _frozen())


@lru_cache
def _of_plan(plan_id: int) -> dict[str, Asked]:
    stages = Stage.objects.filter(plan=plan_id).order_by()
    opens_after = Stage.objects.filter(plan=OuterRef("plan"), index=OuterRef("index") + 1, state="opening")
    asked = {
        "state": Plan.objects.filter(pk=plan_id).order_by().values_list("state"),
        "pauses": Command.objects.in_force().filter(plan=plan_id).order_by().values_list("pk"),
        "opening": stages.filter(state="opening").values_list("pk"),
        "approved": Approval.objects.standing()
        .filter(stage__in=stages.filter(state="opening"), is_rejection=False)
        .order_by()
        .values_list("pk"),
        "empty": stages.filter(Q(state__in=["opening", "promoting", "soaking"]) | Exists(opens_after))
        .exclude(kind="rollback")
        .exclude(pk__in=Target.objects.exclude(state="excluded").values("stage"))
        .values_list("pk"),
        "soaking": Target.objects.filter(stage__in=stages.filter(state="soaking")).order_by().values_list("node_name"),
    }
    return {name: each.query.sql_with_params() for name, each in asked.items()}


@lru_cache
def _frozen() -> tuple[Asked, ...]:
    rows = Freeze.objects.filter(ended_at__isnull=True), MaintenanceWindow.objects.all()
    return tuple(each.order_by().values_list("pk").query.sql_with_params() for each in rows)
