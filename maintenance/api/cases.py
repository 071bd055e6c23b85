"""Cases of nodes: open one, read its state and moves, repair, validate and end it. Operations do the rest."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Flat, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Node
from health.models import Finding
from maintenance import commands
from maintenance.actors import ACTORS
from maintenance.actors.person import Person
from maintenance.acts import acts_of
from maintenance.lifecycle import RESULTS, CaseFacts, CaseState, RepairAnswer, RepairKind
from maintenance.models import NodeCase, Repair
from maintenance.queries import facts_of, offers_of, wanted_tests
from maintenance.repeat_offenders import results_of_repairs
from people.models import AuditEntry
from people.rights import Permission, require, require_somewhere

KEY_MOST = 2**53
STATES = [(state.value, state.value) for state in CaseState]
ACTOR_CHOICES = [(actor.key, actor.title) for actor in ACTORS.values()]
REPAIR_KINDS = [(kind.value, kind.value) for kind in RepairKind]
ANSWERS = [(answer.value, answer.value) for answer in RepairAnswer]
SEEN_HELP = (
    "The `state` that you saw, or better `state`, a space and `state_since`. 409 with the state now if it is another "
    "one, or began at another time. Blank: any."
)


class CaseActSerializer(serializers.Serializer):
    act = serializers.CharField(source="key")
    operation = serializers.CharField(help_text="The kind to POST to `operations`. Blank: a command on the case.")


class CaseSerializer(RowSerializer):
    cluster = RefSerializer()
    state = serializers.ChoiceField(choices=STATES)
    finding = serializers.IntegerField(source="finding_id", allow_null=True)
    obstacle = serializers.CharField(
        help_text="Condition it waits for, or a contradiction to its state. Blank: neither."
    )
    acts = CaseActSerializer(many=True, help_text="Possible now, the next step first.")
    test = serializers.CharField(help_text="The test that exercises the fault: `test` of an operation of kind `test`.")
    why_no_return = serializers.CharField(help_text="Why the node may not be released. Blank: it may.")

    class Meta:
        model = NodeCase
        fields = ("id", "cluster", "node_name", "node_uid", "state", "state_since", "state_reason", "moved_by",
                  "obstacle", "acts", "opened_at", "opened_by", "reason", "finding", "fault_at", "repaired_at",
                  "passed_at", "failed_at", "test", "why_no_return", "overridden_at", "overridden_by",
                  "override_reason", "is_new", "automatic_at", "handed_over_at", "handed_over_to",
                  "handed_over_reason")  # fmt: skip


class CaseMoveSerializer(RowSerializer):
    move = serializers.SerializerMethodField(help_text="The state after it, or opened.")
    evidence = serializers.DictField(help_text="The state before it, and the operation or finding that is its reason.")

    class Meta:
        model = AuditEntry
        fields = ("number", "at", "move", "actor", "reason", "evidence")

    def get_move(self, entry: AuditEntry) -> str:
        return entry.verb.removeprefix("case.")


class CaseRequest(Asked):
    cluster = serializers.IntegerField(min_value=1, max_value=KEY_MOST, help_text="Its id.")
    node = serializers.CharField(max_length=64, help_text="UID of a node of this cluster.")
    reason = serializers.CharField(max_length=1000, help_text="Why. Kept for good.")
    finding = serializers.IntegerField(
        min_value=1, max_value=KEY_MOST, required=False, default=None, allow_null=True,
        help_text="The id of the finding that is the reason. Null: none.",
    )  # fmt: skip


class CaseMoveRequest(Asked):
    reason = serializers.CharField(max_length=1000, help_text="Why. Kept for good.")
    seen = serializers.CharField(max_length=64, required=False, default="", allow_blank=True, help_text=SEEN_HELP)


class RepairRequest(CaseMoveRequest):
    by = serializers.ChoiceField(
        choices=ACTOR_CHOICES, required=False, default=Person.key, help_text="The actor. See `repair-actors`."
    )
    kind = serializers.ChoiceField(
        choices=REPAIR_KINDS, help_text="One of the actor's `kinds` in `repair-actors`; others are refused with 409."
    )
    then_test = serializers.BooleanField(
        required=False, default=False, help_text="A test starts in your name once the repair is proven."
    )
    then_release = serializers.BooleanField(
        required=False, default=False,
        help_text="After a pass, the node is released in your name. An open critical finding, a breaker, a stop or a "
        "freeze prevents it. Needs `then_test`.",
    )  # fmt: skip
    link = serializers.URLField(max_length=500, required=False, default="", allow_blank=True, help_text="Of a ticket.")
    deadline_h = serializers.IntegerField(min_value=1, max_value=720, required=False, default=24)


class RepairAnswerRequest(CaseMoveRequest):
    answer = serializers.ChoiceField(
        choices=ANSWERS,
        help_text="A reboot that is done counts once the boot ID has changed and the node is Ready.",
    )
    request = serializers.CharField(
        max_length=36, required=False, default="", allow_blank=True,
        help_text="Id of the request that is answered. 404 for an unknown id. 409 for an id of another case, a second "
        "answer, or a late one. Blank: the repair that the case waits for.",
    )  # fmt: skip
    ticket = serializers.CharField(
        max_length=100, required=False, default="", allow_blank=True, help_text="Its number."
    )
    link = serializers.URLField(
        max_length=500, required=False, default="", allow_blank=True, help_text="Of the ticket."
    )


class ValidationRequest(CaseMoveRequest):
    result = serializers.ChoiceField(choices=RESULTS, help_text="Unknown is no pass.")
    test = serializers.CharField(
        max_length=100,
        help_text="As `dcgmi diag -r 3`. A pass counts if the test exercises the fault; others are evidence only.",
    )
    link = serializers.URLField(
        max_length=500, required=False, default="", allow_blank=True, help_text="Of its output."
    )


class RepairSerializer(RowSerializer):
    by = serializers.ChoiceField(choices=ACTOR_CHOICES, help_text="The actor.")
    request = serializers.CharField(help_text="Id that an answer names. Blank: asked by an older version.")
    sent_at = serializers.DateTimeField(allow_null=True, help_text="When the request was sent. Null: not yet.")
    accepted_at = serializers.DateTimeField(allow_null=True, help_text="When the actor had the request. Null: unknown.")
    says = serializers.CharField(help_text="Reason why the request waits. Blank: it does not wait.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null: no answer, or a reboot that is not proven.")
    then_test = serializers.BooleanField(help_text="The asker chose the test after it.")
    then_release = serializers.BooleanField(help_text="The asker chose the release after a pass.")
    then_ended_at = serializers.DateTimeField(
        allow_null=True, help_text="Null: chosen steps are to come, or none were."
    )
    then_says = serializers.CharField(help_text="Why chosen steps wait, or why they ended early. Blank: neither.")

    class Meta:
        model = Repair
        fields = ("id", "by", "kind", "request", "asked_by", "asked_at", "note", "deadline", "sent_at", "accepted_at",
                  "says", "ticket", "link", "answer", "answered_by", "answer_note", "ended_at",
                  "then_test", "then_release", "then_ended_at",
                  "then_says")  # fmt: skip


class ActorSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="`by` of a repair.")
    title = serializers.CharField()
    kinds = serializers.ListField(child=serializers.CharField(), help_text="Repairs that it can be asked for.")
    why_not = serializers.CharField(help_text="Why it cannot be asked now. Blank: it can.")
    mended = serializers.DictField(
        child=serializers.CharField(),
        help_text="By repair, how often it mended the same fault in the cluster: 12 of 15.",
    )


class ShownCase:
    """A case with the values of its facts."""

    def __init__(self, test: str, facts: CaseFacts) -> None:
        self.test = test
        self.obstacle, self.acts, self.why_no_return = facts.obstacle, acts_of(facts), facts.why_no_return


def case_data(cases: Sequence[NodeCase]) -> Iterable[Flat]:
    facts, tests = facts_of(cases), wanted_tests(cases)
    return [Flat(ShownCase(tests[case.pk], facts[case.pk]), case) for case in cases]


class CaseEdge(Edge):
    def case(self, case_id: int) -> NodeCase:
        return self.load(NodeCase.objects.visible_to(self.user).select_related("cluster", "finding"), case_id)

    def answer(self, case: NodeCase, *, status: int = 200) -> Response:
        return Response(CaseSerializer(next(iter(case_data([case])))).data, status=status)


class CaseFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    state = filters.ChoiceFilter(choices=STATES)
    node = filters.CharFilter(field_name="node_name", max_length=253, label="Name of a node.")


class CaseList(CaseEdge, Listing):
    """Lists cases, the newest first."""

    serializer_class = CaseSerializer
    filterset_class = CaseFilters
    queryset = NodeCase.objects.none()

    def get_queryset(self) -> QuerySet[NodeCase]:
        return NodeCase.objects.visible_to(self.user).select_related("cluster", "finding").order_by("-pk")

    def see(self, rows: Sequence[NodeCase]) -> Iterable[Flat]:
        return case_data(rows)

    @extend_schema(request=CaseRequest, responses={201: CaseSerializer})
    def post(self, request) -> Response:
        """Opens a case of a node. 409 with the open case, if the node has one."""
        require_somewhere(self.user, Permission.RUN)
        asked = self.read(CaseRequest)
        cluster = self.load(Cluster.objects.visible_to(self.user), asked["cluster"])
        require(self.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        node = Node.objects.visible_to(self.user).filter(cluster=cluster, uid=asked["node"]).first()
        if node is None:
            raise serializers.ValidationError({"node": f"{cluster.name} has no node with this UID."})
        key = asked["finding"]
        finding = self.load(Finding.objects.visible_to(self.user), key) if key is not None else None
        actor, now = self.user.get_username(), timezone.now()
        case = commands.open_case(node, actor=actor, reason=asked["reason"], finding=finding, now=now)
        return self.answer(self.case(case.pk), status=201)


class CaseDetail(CaseEdge):
    @extend_schema(responses=CaseSerializer)
    def get(self, request, case_id: int) -> Response:
        return self.answer(self.case(case_id))


class CaseMoves(CaseEdge, Listing):
    """Lists the moves of a case, the newest first."""

    serializer_class = CaseMoveSerializer
    queryset = AuditEntry.objects.none()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        return self.case(self.kwargs["case_id"]).moves


class CaseCommand(CaseEdge):
    http_method_names = ["post", "options"]
    asked: ClassVar[type[Asked]] = CaseMoveRequest
    act: ClassVar[Callable[..., str | None]]

    def post(self, request, case_id: int) -> Response:
        case = self.case(case_id)
        require(self.user, Permission.RUN, cluster_id=case.cluster_id, where=f"cluster {case.cluster.name}")
        self.act(case, actor=self.user.get_username(), now=timezone.now(), **self.read(self.asked))
        return self.answer(self.case(case_id))


@extend_schema(request=CaseMoveRequest, responses=CaseSerializer)
class CaseClosures(CaseCommand):
    """Ends a suspect case, or one on probation. The node stays in service."""

    act = staticmethod(commands.close)


@extend_schema(request=CaseMoveRequest, responses=CaseSerializer)
class CaseRetirements(CaseCommand):
    """Ends a case. The node does not return, and Quarterdeck's cordon stays."""

    act = staticmethod(commands.retire)


class CaseRepairs(CaseCommand, Listing):
    """Lists the repairs of a case, the newest first."""

    http_method_names = ["get", "head", "post", "options"]
    serializer_class = RepairSerializer
    queryset = Repair.objects.none()
    asked = RepairRequest
    act = staticmethod(commands.ask_repair)

    def get_queryset(self) -> QuerySet[Repair]:
        return self.case(self.kwargs["case_id"]).repairs.all()

    @extend_schema(request=RepairRequest, responses=CaseSerializer)
    def post(self, request, case_id: int) -> Response:
        """Asks an actor for a repair. The case waits for the answer."""
        return super().post(request, case_id)


class CaseRepairActors(CaseEdge):
    @extend_schema(responses=ActorSerializer(many=True))
    def get(self, request, case_id: int) -> Response:
        """Lists the actors that could repair the node, with the reason where one cannot be asked."""
        case = self.case(case_id)
        mended = results_of_repairs(case)
        rows = [
            {
                "key": actor.key, "title": actor.title, "kinds": sorted(actor.kinds), "why_not": why_not,
                "mended": {kind: number for kind, number in mended.items() if kind in actor.kinds},
            }
            for actor, why_not in offers_of(case)
        ]  # fmt: skip
        return Response(ActorSerializer(rows, many=True).data)


@extend_schema(request=RepairAnswerRequest, responses=CaseSerializer)
class CaseRepairAnswers(CaseCommand):
    """Answers the repair that the case waits for."""

    asked = RepairAnswerRequest
    act = staticmethod(commands.answer_repair)


@extend_schema(request=ValidationRequest, responses=CaseSerializer)
class CaseValidations(CaseCommand):
    """Records the result of a test that a person ran on all GPUs of the node."""

    asked = ValidationRequest
    act = staticmethod(commands.record_validation)


@extend_schema(request=CaseMoveRequest, responses=CaseSerializer)
class CaseOverrides(CaseCommand):
    """Allows the release without a validation. The case shows it until one passes."""

    act = staticmethod(commands.override)


@extend_schema(request=CaseMoveRequest, responses=CaseSerializer)
class CaseTakeovers(CaseCommand):
    """Ends the automatic steps of a case. A running operation or repair continues."""

    act = staticmethod(commands.take_over)


COMMAND_VIEWS: dict[str, type[CaseCommand]] = {
    "closures": CaseClosures,
    "retirements": CaseRetirements,
    "repairs": CaseRepairs,
    "repair-answers": CaseRepairAnswers,
    "validations": CaseValidations,
    "overrides": CaseOverrides,
    "takeovers": CaseTakeovers,
}
