"""What somebody wrote into a dialog whose command was refused: it comes back on the next page, once."""

from edges.requests import PersonRequest
from rollouts.models import Plan

KEY = "written"


def keep(request: PersonRequest, plan: Plan, verb: str) -> None:
    because, override = (request.POST.get(name, "")[:1000] for name in ("because", "override_because"))
    request.session[KEY] = {"plan": plan.pk, "verb": verb, "because": because, "override_because": override}


def take(request: PersonRequest, plan: Plan) -> dict[str, str]:
    """Empty: nothing was refused on this plan."""
    if request.session.get(KEY, {}).get("plan") != plan.pk:
        return {}
    return dict(request.session.pop(KEY))
