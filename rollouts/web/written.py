"""What somebody wrote into a dialog: the reason; and, where its command was refused, what comes back once."""

from collections.abc import Iterator
from contextlib import contextmanager

from edges.requests import LONGEST_REASON, PersonRequest, reason, text_of
from rollouts.models import Plan
from rollouts.steering.refusals import Refusal

KEY = "written"
SAY_WHY = "Say why: the next person at this page will want to know."


def because_of(request: PersonRequest, *, missing: str = SAY_WHY) -> str:
    """`missing`: what is said where there is none.

    :raises Refusal: when nothing was written
    """
    because = reason(request)
    if not because:
        raise Refusal(missing)
    return because


def keep(request: PersonRequest, plan: Plan, verb: str) -> None:
    asked = {name: text_of(request, name)[:LONGEST_REASON] for name in ("because", "override_because", "hours")}
    request.session[KEY] = {"plan": plan.pk, "verb": verb} | asked


@contextmanager
def kept_if_refused(
    request: PersonRequest, plan: Plan, verb: str, refusals: tuple[type[Exception], ...]
) -> Iterator[None]:
    """The next page of the plan has what was written once more."""
    try:
        yield
    except refusals:
        keep(request, plan, verb)
        raise


def take(request: PersonRequest, plan: Plan) -> dict[str, str]:
    """Empty: nothing was refused on this plan."""
    if request.session.get(KEY, {}).get("plan") != plan.pk:
        return {}
    return dict(request.session.pop(KEY))
