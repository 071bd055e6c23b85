"""What a plan can be told. A verb is a resource: POST makes one, and 204 says that it is written down."""

from collections.abc import Callable
from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.lifecycle import PlanState
from rollouts.steering import commands
from rollouts.steering.drafting import discard
from rollouts.steering.starting import start

RESOURCES = {
    "start": "starts", "halt": "halts", "pause": "pauses", "resume": "resumptions", "rollback": "rollbacks",
    "abort": "aborts", "discard": "discards",
}  # fmt: skip
STATES = [(state.value, state.value) for state in PlanState]


class Because(Asked):
    because = serializers.CharField(max_length=1000, help_text="Why. Kept for good.")


class CommandRequest(Because):
    expected_state = serializers.ChoiceField(
        choices=STATES, required=False, help_text="The state that was seen: refused (409) when it is another by now."
    )


class StartRequest(Asked):
    because = serializers.CharField(max_length=1000, allow_blank=True, required=False, default="")
    expected_revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The `revision` whose preview was seen."
    )
    override_because = serializers.CharField(
        max_length=1000, allow_blank=True, required=False, default="",
        help_text="Why it starts despite blockers that `may_be_overridden`. Kept, and shown to approvers.",
    )  # fmt: skip


class Tell(PlanEdge):
    """One verb. The domain says no with a refusal; nothing is decided here."""

    permission: ClassVar[Permission]
    command: ClassVar[Callable[..., None]]

    @extend_schema(request=CommandRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        plan = self.plan(plan_id)
        self.may(self.permission, plan)
        asked = self.read(CommandRequest)
        type(self).command(plan, actor=self.user, key=self.key(), now=timezone.now(), **asked)
        return Response(status=204)


class Halts(Tell):
    """Stop at once. From this answer on nothing more is released."""

    permission = Permission.STOP
    command = commands.halt


class Pauses(Tell):
    """Let nothing more go until somebody resumes. Gates go on being asked."""

    permission = Permission.STOP
    command = commands.pause


class Resumptions(Tell):
    """End a pause, or take up again what was halted."""

    permission = Permission.RUN
    command = commands.resume


class Rollbacks(Tell):
    """Put the old version back and bring every changed node back to it, in waves."""

    permission = Permission.RUN
    command = commands.roll_back


class Aborts(Tell):
    """Give the plan up. Changed nodes stay as they are, held."""

    permission = Permission.RUN
    command = commands.abort


class Starts(PlanEdge):
    @extend_schema(request=StartRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        """Seal the draft and begin. What stands in the way is in `blockers` of the 409."""
        plan = self.plan(plan_id)
        self.may(Permission.RUN, plan)
        asked = self.read(StartRequest)
        start(plan, actor=self.user, key=self.key(), now=timezone.now(), **asked)
        return Response(status=204)


class Discards(PlanEdge):
    @extend_schema(request=Because, responses={204: None})
    def post(self, request, plan_id: int) -> Response:
        """Throw a draft away."""
        plan = self.plan(plan_id)
        self.may(Permission.DRAFT, plan)
        discard(plan, actor=self.user, now=timezone.now(), **self.read(Because))
        return Response(status=204)


class Exclusions(PlanEdge):
    @extend_schema(request=Because, responses={204: None})
    def post(self, request, target_id: int) -> Response:
        """Take a node out of its stage. It stays held."""
        target = self.target(target_id)
        self.may(Permission.RUN, target.stage.plan)
        commands.exclude(target, actor=self.user, now=timezone.now(), **self.read(Because))
        return Response(status=204)


RESOURCE_OF: dict[str, type[PlanEdge]] = {
    "starts": Starts, "halts": Halts, "pauses": Pauses, "resumptions": Resumptions, "rollbacks": Rollbacks,
    "aborts": Aborts, "discards": Discards,
}  # fmt: skip
