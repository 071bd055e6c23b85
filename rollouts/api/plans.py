from collections.abc import Mapping, Sequence
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from edges.rest import Listing
from fleet.models import Cluster
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.api.plan_serializers import (
    DraftInDetail,
    DraftSerializer,
    ListedPlanSerializer,
    PlanChange,
    PlanEventSerializer,
    PlanInDetail,
    PlanRequest,
    PlanSerializer,
)
from rollouts.api.previews import PreviewSerializer
from rollouts.api.serializers import StageDraftSerializer
from rollouts.backtest.review import review_plan
from rollouts.commands.added_gates import usual_options
from rollouts.commands.plan_drafts import draft, edit, stages_of, suggest_stages
from rollouts.commands.preview import preview
from rollouts.commands.refusals import ObjectGone
from rollouts.commands.remaining_time import expected, holding, releasing
from rollouts.commands.rollback_preview import rollback_preview
from rollouts.commands.stage_drafts import StageDraft, gates_by_default
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, PlanEvent
from rollouts.preflight.rollback import rollback_checks
from rollouts.queries.plan_view import PlanStanding, buttons, plan_on_page, standings_of
from rollouts.queries.pool_gates import ClusterGates, gates_in


class PlanFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    state = filters.ChoiceFilter(choices=[(state.value, state.value) for state in PlanState])
    author = filters.CharFilter(max_length=150)


class PlanList(PlanEdge, Listing):
    serializer_class = ListedPlanSerializer
    filterset_class = PlanFilters
    queryset = Plan.objects.none()

    def get_queryset(self) -> QuerySet[Plan]:
        visible = Plan.objects.visible_to(self.user).with_pending_stop()
        return visible.select_related("cluster").defer("sealed").order_by("-pk")

    def see(self, rows: Sequence[Plan]) -> list[PlanStanding]:
        return standings_of(rows, now=timezone.now())

    @extend_schema(request=PlanRequest, responses={201: DraftSerializer})
    def post(self, request) -> Response:
        """Creates a draft. Nothing changes in a cluster before its start; `preview` has blockers and warnings."""
        asked = self.read(PlanRequest)
        driver_object = self.driver_object(asked.pop("driver_object"))
        self.may(Permission.DRAFT, driver_object)
        stages = _stages(driver_object.cluster, asked.pop("stages"))
        plan = draft(
            cluster=driver_object.cluster,
            driver_object=driver_object,
            stages=stages,
            actor=self.user,
            now=timezone.now(),
            **asked,
        )
        return Response(drafted(plan, self.user), status=201)


class PlanDetail(PlanEdge):
    mark_field, guard_field = "revision", "expected_revision"

    @extend_schema(responses=PlanSerializer)
    def get(self, request, plan_id: int) -> Response:
        return Response(plan_data(self.plan(plan_id), self.user))

    @extend_schema(request=PlanChange, responses=DraftSerializer)
    def patch(self, request, plan_id: int) -> Response:
        plan = self.plan(plan_id)
        self.may(Permission.DRAFT, plan)
        asked = self.read(PlanChange)
        stages = _stages(plan.cluster, asked["stages"]) if "stages" in asked else stages_of(plan)
        plan = edit(
            plan,
            title=asked.get("title", plan.title),
            to_version=asked.get("to_version", plan.to_version),
            stages=stages,
            cordon_affected=asked.get("cordon_affected"),
            expected_revision=asked["expected_revision"],
            actor=self.user,
            now=timezone.now(),
        )
        return Response(drafted(plan, self.user))


def _stages(cluster: Cluster, asked: Sequence[Mapping[str, Any]]) -> list[StageDraft]:
    """Returns the stages. One without gates has the usual ones of its pool; one more query if there is one."""
    default = gates_in(cluster) if any("gate_options" not in stage for stage in asked) else ClusterGates({})
    pools = [stage.get("pool_id") for stage in asked]
    usual = [default.usual_of(pool, gates_by_default(cluster.pk, pool)) for pool in pools]
    return [StageDraft(**{"gate_options": gates, **stage}) for gates, stage in zip(usual, asked, strict=True)]


class PlanEventList(PlanEdge, Listing):
    """Lists the plan's history, the newest first."""

    serializer_class = PlanEventSerializer
    queryset = PlanEvent.objects.none()

    def get_queryset(self) -> QuerySet[PlanEvent]:
        return self.plan(self.kwargs["plan_id"]).events.select_related("stage", "target")


class PlanPreview(PlanEdge):
    @extend_schema(responses=PreviewSerializer)
    def get(self, request, plan_id: int) -> Response:
        """Returns what the plan would do now. Changes nothing."""
        return Response(PreviewSerializer(preview(self.plan(plan_id), now=timezone.now())).data)


class SuggestedStages(PlanEdge):
    @extend_schema(responses=StageDraftSerializer(many=True))
    def get(self, request, driver_object_id: int) -> Response:
        """Returns suggested stages for a draft."""
        stages = suggest_stages(self.driver_object(driver_object_id))
        return Response(StageDraftSerializer(stages, many=True).data)


def plan_data(plan: Plan, user) -> dict[str, Any]:
    now = timezone.now()
    on_page = plan_on_page(plan, now=now)
    detail = PlanInDetail(
        on_page,
        buttons(plan, user),
        holding(on_page, now=now),
        releasing(on_page, now=now),
        duration=expected(plan, on_page, now=now),
        rollback_checks=rollback_checks(on_page, now=now),
        rollback_preview=rollback_preview(on_page, now=now),
        missed_gate=review_plan(plan, usual_options).earliest if plan.state == PlanState.HALTED else None,
    )
    return PlanSerializer(detail).data


def drafted(plan: Plan, user) -> dict[str, Any]:
    now = timezone.now()
    try:
        told = preview(plan, now=now)
    except ObjectGone:
        told = None
    on_page = plan_on_page(plan, now=now)
    detail = DraftInDetail(
        on_page, buttons(plan, user), holding=None, releasing=None, duration=None, rollback_checks=[],
        rollback_preview=None, missed_gate=None, preview=told,
    )  # fmt: skip
    return DraftSerializer(detail).data
