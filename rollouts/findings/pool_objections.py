from fleet.models import Cluster
from rollouts.models import Plan

NAMED = 5


def plans_that_rest_on(cluster: Cluster) -> str:
    """Returns why another cluster cannot be accepted in place of this one; empty if no plan is in progress."""
    plans = list(Plan.objects.under_way().filter(cluster=cluster).order_by("pk")[:NAMED])
    if not plans:
        return ""
    named = ", ".join(f"#{plan.pk} “{plan.title}” ({plan.state})" for plan in plans)
    return (
        f"{cluster.name} has a plan in progress for nodes that would no longer exist: {named}. End the plan "
        f"first. If the old cluster is gone permanently, run `manage.py release_all {cluster.name} "
        "--give-up-plans WHY`."
    )
