"""What plans say is wrong in a cluster, asked for by the app below, which does not know them."""

from collections.abc import Iterator
from datetime import timedelta

from fleet.models import Cluster
from health.judging.sources import FindingSource
from health.rules.base import Severity, Wrong
from rollouts.gates import GATES
from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import BreakGlass, Plan, Target
from wording.numbers import count


def halted_plans(cluster: Cluster) -> Iterator[tuple[str, Wrong]]:
    """As bad here as on its own page: nothing goes until a person decides. One query, and two more for each."""
    for plan in Plan.objects.filter(cluster=cluster, state=PlanState.HALTED).order_by("pk"):
        last = plan.events.filter(to=PlanState.HALTED).order_by("-pk").first()
        because = last.because if last else ""
        yield (
            f"plan {plan.pk}",
            Wrong(
                Severity.CRITICAL,
                f"Plan #{plan.pk} “{plan.title}” is halted, {_how_far(plan)}. {because}".strip(),
                f"Open the plan: {'roll it back' if plan.write_intended_at else 'abort it'}, or say why it is resumed.",
                {"plan": plan.pk, "from": plan.from_version, "to": plan.to_version},
            ),
        )


def _how_far(plan: Plan) -> str:
    """Where its nodes stand, without those that were taken out of their stage."""
    targets = Target.objects.filter(stage__plan=plan).forward().exclude(state=TargetState.EXCLUDED)
    untouched = targets.filter(state=TargetState.HELD).count()
    let_go = targets.count() - untouched
    if not let_go:
        return "before any node was let go"
    return f"with {let_go} of {count(let_go + untouched, 'node')} let go, between two versions"


def unseen_glass(cluster: Cluster) -> Iterator[tuple[str, Wrong]]:
    """A gate that one person passed over, until another has looked at it. One query."""
    rows = BreakGlass.objects.filter(stage__plan__cluster=cluster, acknowledged_at=None).order_by("pk")
    for glass in rows.select_related("stage__plan"):
        plan, is_approval = glass.stage.plan, glass.gate == ApprovalGate.key
        where = f"{glass.stage.name} of plan #{plan.pk} “{plan.title}”"
        yield (
            f"glass {glass.pk}",
            Wrong(
                Severity.CRITICAL if is_approval else Severity.WARNING,
                f"{glass.by} passed over the gate {GATES[glass.gate].title} in {where}: {glass.because}",
                f"Somebody other than {glass.by} looks at it, and says so on the page of the plan.",
                {"plan": plan.pk, "stage": glass.stage.name, "gate": glass.gate, "it said": glass.said},
            ),
        )


HALTED = FindingSource("plan-halted", "Plan halted", timedelta(0), halted_plans)
GLASS = FindingSource("gate-passed-over", "Gate passed over", timedelta(0), unseen_glass)
