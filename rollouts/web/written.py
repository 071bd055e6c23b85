"""What somebody wrote into a dialog about a plan: why, and what comes back where it was refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edges import written
from edges.requests import PersonRequest, reason
from rollouts.models import Plan
from rollouts.steering.refusals import BadPlan

SAY_WHY = "Say why: the next person at this page will want to know."
OF_A_PLAN = ("because", "override_because", "hours", "nodes_each")


def because_of(request: PersonRequest, *, missing: str = SAY_WHY) -> str:
    """`missing`: what is said where there is none.

    :raises BadPlan: when nothing was written
    """
    because = reason(request)
    if not because:
        raise BadPlan(("because", missing))
    return because


@contextmanager
def kept_if_refused(
    request: PersonRequest, plan: Plan, verb: str, refusals: tuple[type[Exception], ...]
) -> Iterator[None]:
    with written.kept_if_refused(request, _about(plan), *OF_A_PLAN, refusals=refusals, verb=verb):
        yield


def take(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Empty: nothing was refused on this plan."""
    return written.take(request, _about(plan))


def _about(plan: Plan) -> str:
    return f"plan-{plan.pk}"
