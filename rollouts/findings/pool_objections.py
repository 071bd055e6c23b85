"""What plans have against a decision of the app below, which does not know them."""

from fleet.models import Cluster
from rollouts.models import Plan

NAMED = 5


def plans_that_rest_on(cluster: Cluster) -> str:
    """Why another cluster cannot be taken for this one now. Blank: no plan is under way on it."""
    plans = list(Plan.objects.under_way().filter(cluster=cluster).order_by("pk")[:NAMED])
    if not plans:
        return ""
    named = ", ".join(f"#{plan.pk} “{plan.title}” ({plan.state})" for plan in plans)
    return (
        f"On {cluster.name} a plan is under way, for nodes that would no longer be there: {named}. "
        "Bring it to its end first; where the old cluster is gone for good, with "
        f"`manage.py release_all {cluster.name} --give-up-plans WHY`."
    )
