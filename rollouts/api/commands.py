"""Commands to a plan. Each verb is a resource: POST creates one, and 204 means that it is recorded.

202 means that it is in force, and recorded as soon as the plan is no longer locked.
"""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.commands import COMMANDS, plan_control
from rollouts.commands.retries import retry
from rollouts.lifecycle import PlanState
from rollouts.queries.affected_nodes import affected_nodes
from rollouts.verbs import VERBS

STATES = [(state.value, state.value) for state in PlanState]


class ReasonRequest(Asked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class CommandRequest(ReasonRequest):
    expected_state = serializers.ChoiceField(
        choices=STATES, required=False, help_text="The state that the caller read. 409 if the state has changed since."
    )


class StartRequest(ReasonRequest):
    expected_revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The `revision` of the draft whose preview the caller saw."
    )
    override_reason = serializers.CharField(
        max_length=1000, allow_blank=True, required=False, default="",
        help_text="Reason for a start despite blockers that `may_be_overridden`. It is stored and shown to approvers.",
    )  # fmt: skip


class Tell(PlanEdge):
    """The view of one verb; the domain refuses, not the view."""

    verb: ClassVar[str]

    def tell(self, plan_id: int, body: type[Asked], **given: Any) -> Response:
        plan = self.plan(plan_id)
        self.may(VERBS[self.verb].permission, plan)
        said = COMMANDS[self.verb](plan, actor=self.user, now=timezone.now(), **given, **self.read(body))
        return Response({"detail": said}, status=202) if said else Response(status=204)


class InForceSerializer(serializers.Serializer):
    """A halt or pause that is in force before the plan's own state shows it."""

    detail = serializers.CharField(help_text="A sentence: the command is in force, and what happens next.")


class TellUnderWay(Tell):
    """The view of a verb of started plans."""

    @extend_schema(request=CommandRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        return self.tell(plan_id, CommandRequest, key=self.key())


class HaltOrPause(TellUnderWay):
    @extend_schema(request=CommandRequest, responses={204: None, 202: InForceSerializer}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        return super().post(request, plan_id)


class Halts(HaltOrPause):
    """Halts the plan at once. From this answer on nothing more is released."""

    verb = "halt"


class Pauses(HaltOrPause):
    """Pauses releases until somebody resumes. Gates are still evaluated."""

    verb = "pause"


class Resumptions(TellUnderWay):
    """Ends a pause, or continues after a halt."""

    verb = "resume"


class Rollbacks(TellUnderWay):
    """Restores the old version and returns every changed node to it, in waves."""

    verb = "rollback"


class AffectedNodeSerializer(serializers.Serializer):
    node = serializers.CharField(source="name")
    reason = serializers.CharField(help_text="Why it is affected or excluded.")


class AffectedNodesSerializer(serializers.Serializer):
    """The nodes that a cordon now would affect."""

    why_not = serializers.CharField(help_text="Why there is nothing to cordon. Blank: there is.")
    to_cordon = AffectedNodeSerializer(many=True)
    left_alone = AffectedNodeSerializer(many=True, help_text="Affected nodes, with why no cordon is written.")
    pools = serializers.ListField(child=serializers.CharField(), help_text="Nodes in service before and after.")
    seen = serializers.CharField(help_text="Send it with the POST.")


class CordonRequest(CommandRequest):
    seen = serializers.CharField(
        max_length=64, required=False, allow_null=True, default=None,
        help_text="`seen` of the preview. 409 if other nodes are affected now. Absent: any nodes.",
    )  # fmt: skip


class AffectedCordons(Tell):
    """Cordons the affected nodes of a halted plan. The plan owns the cordons and removes them."""

    verb = "cordon"

    @extend_schema(responses=AffectedNodesSerializer)
    def get(self, request, plan_id: int) -> Response:
        """Returns the preview: the affected nodes, and the nodes in service without them."""
        return Response(AffectedNodesSerializer(affected_nodes(self.plan(plan_id))).data)

    @extend_schema(request=CordonRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        return self.tell(plan_id, CordonRequest, key=self.key())


class Aborts(TellUnderWay):
    """Aborts the plan. Changed nodes stay as they are, held."""

    verb = "abort"


class Completions(TellUnderWay):
    """Completes the plan without the failed or held nodes of its last stage."""

    verb = "complete"


class HandoverRequest(CommandRequest):
    version = serializers.CharField(
        max_length=64, help_text="The driver object's version that the caller read. 409 if it has changed since."
    )
    seen = serializers.CharField(
        max_length=64, required=False, allow_null=True, default=None,
        help_text="`seen` of `handover` in the plan's `buttons`. 409 if the version or the template is another now, or "
        "if it is absent and somebody else has changed the template.",
    )  # fmt: skip


class Handovers(Tell):
    verb = "handover"

    @extend_schema(request=HandoverRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        """Releases the nodes of an aborted plan to the version that somebody else has set, in waves."""
        return self.tell(plan_id, HandoverRequest, key=self.key())


class Starts(Tell):
    verb = "start"

    @extend_schema(request=StartRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        """Requests a live check of the cluster, then seals and starts the draft. Blockers from rows are in `blockers`
        of the 409.

        204: a worker asks the cluster and starts the plan if nothing bars it. Until then it is a draft: `why` has the
        reason, and `live-checks` has each answer.
        """
        return self.tell(plan_id, StartRequest, key=self.key())


class Discards(Tell):
    verb = "discard"

    @extend_schema(request=ReasonRequest, responses={204: None})
    def post(self, request, plan_id: int) -> Response:
        """Discards a draft."""
        return self.tell(plan_id, ReasonRequest)


class Retries(PlanEdge):
    @extend_schema(request=ReasonRequest, responses={204: None})
    def post(self, request, target_id: int) -> Response:
        """Retries a failed node. The node is held, and released in a wave once the plan continues."""
        target = self.target(target_id)
        self.may(Permission.RUN, target.stage.plan)
        retry(target, actor=self.user, now=timezone.now(), **self.read(ReasonRequest))
        return Response(status=204)


class Exclusions(PlanEdge):
    @extend_schema(request=ReasonRequest, responses={204: None})
    def post(self, request, target_id: int) -> Response:
        """Excludes a node from its stage. The node stays held."""
        target = self.target(target_id)
        self.may(Permission.RUN, target.stage.plan)
        plan_control.exclude(target, actor=self.user, now=timezone.now(), **self.read(ReasonRequest))
        return Response(status=204)


VERB_VIEWS: tuple[type[Tell], ...] = (Starts, Halts, Pauses, Resumptions, Rollbacks, AffectedCordons, Aborts,
                                      Completions, Handovers, Discards)  # fmt: skip
