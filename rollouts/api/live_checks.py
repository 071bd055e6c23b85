"""Live checks of a plan's cluster, before the start and while nodes remain.

POST requests one, GET returns the last result.
"""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from rollouts.api.base import PlanEdge
from rollouts.api.previews import LiveCheckSerializer
from rollouts.commands.live_checks import ask
from rollouts.preflight.live_checks.latest import live_on_page, may_ask_live


class NewestLiveCheck(serializers.Serializer):
    live_check = LiveCheckSerializer(allow_null=True, help_text="The newest live check. Null: none was requested.")


class LiveChecks(PlanEdge):
    @extend_schema(responses=NewestLiveCheck)
    def get(self, request, plan_id: int) -> Response:
        return Response(NewestLiveCheck({"live_check": live_on_page(self.plan(plan_id))}).data)

    @extend_schema(request=None, responses={201: NewestLiveCheck})
    def post(self, request, plan_id: int) -> Response:
        """Requests a live check. Nothing in the cluster changes: patches are dry runs."""
        plan = self.plan(plan_id)
        self.may(may_ask_live(plan), plan)
        ask(plan, actor=self.user, now=timezone.now())
        return Response(NewestLiveCheck({"live_check": live_on_page(plan)}).data, status=201)
