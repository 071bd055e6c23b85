"""What plans say is wrong in a cluster, asked for by the app below, which does not know them."""

from collections.abc import Iterator
from datetime import timedelta

from fleet.asked import Said, Source
from fleet.models import Cluster
from fleet.rules.base import Severity, Wrong
from rollouts.lifecycle import PlanState
from rollouts.models import Plan


def halted_plans(cluster: Cluster) -> Iterator[Said]:
    """One query, and one more for each that is."""
    for plan in Plan.objects.filter(cluster=cluster, state=PlanState.HALTED).order_by("pk"):
        last = plan.events.filter(to=PlanState.HALTED).order_by("-pk").first()
        because = last.because if last else ""
        yield Said(
            subject=f"plan {plan.pk}",
            title="Plan halted",
            after=timedelta(0),
            wrong=Wrong(
                Severity.WARNING,
                f"Plan #{plan.pk} “{plan.title}” is halted, with nodes of {cluster.name} in between two versions. "
                f"{because}".strip(),
                "Open the plan: roll it back, or resume it with a reason.",
                {"plan": plan.pk, "from": plan.from_version, "to": plan.to_version},
            ),
        )


HALTED = Source("plan-halted", halted_plans)
