"""The WebSocket topics `plans` (every visible plan) and `plan-7` (one plan)."""

from dataclasses import dataclass

from django.db.models import Max

from edges.digits import whole_number
from fleet.live.topics import OpenedTopic
from fleet.models import Cluster
from people.models import User
from people.rights import Permission, scope_of
from rollouts.lifecycle import PLAN_FINAL
from rollouts.messages import announce
from rollouts.models import Plan, PlanEvent


@dataclass(frozen=True)
class PlanTopics:
    def open(self, user: User, name: str) -> OpenedTopic | None:
        visible = Plan.objects.visible_to(user)
        if name == announce.PLANS_GROUP:
            plans = visible.under_way().values_list("pk", flat=True)
            return OpenedTopic((announce.PLANS_GROUP,), _keys(plans) | _clusters(user))
        kind, _, key = name.partition("-")
        if kind != "plan" or (pk := whole_number(key)) is None or not visible.filter(pk=pk).exists():
            return None
        return OpenedTopic((announce.plan_group(pk),), _keys([pk]))

    def sequences(self) -> dict[str, int]:
        """Returns the newest event of every unfinished plan, drafts included."""
        unfinished = Plan.objects.exclude(state__in=PLAN_FINAL)
        rows = PlanEvent.objects.filter(plan__in=unfinished).order_by().values("plan")
        return {announce.plan_group(row["plan"]): row["newest"] for row in rows.annotate(newest=Max("pk"))}

    def last_seen(self) -> dict[str, str]:
        return {}


def _keys(plan_ids) -> frozenset[str]:
    return frozenset(announce.plan_group(pk) for pk in plan_ids)


def _clusters(user: User) -> frozenset[str]:
    """Returns the clusters whose plans the person sees, later plans included."""
    there = scope_of(user, Permission.SEE)
    seen = Cluster.objects.values_list("pk", flat=True) if there.everywhere else there.cluster_ids
    return frozenset(map(announce.plans_of, seen))
