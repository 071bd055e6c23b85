"""The history of a node, and its state at a moment, as on its history page."""

from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from edges.rest import KEY, Asked, AskedInstant, Edge
from fleet.history import notes
from fleet.history.lines import ID_CHARS, LINE_KINDS, LONG_AGO, MOST, NodeKept, Span, lines_of, position_of
from fleet.history.moment import moment_of
from fleet.models import Gpu
from fleet.queries import kept_node


class TimelineAsked(Asked):
    kind = serializers.MultipleChoiceField(
        choices=[(key, title) for key, (title, _) in LINE_KINDS.items()], required=False, help_text="May be repeated."
    )
    since = AskedInstant()
    before = AskedInstant(help_text="Only lines before this time. For the next page: `at` of the last line.")
    below = serializers.RegexField(
        r"\A[0-9]+-[0-9]+\Z", max_length=ID_CHARS, required=False,
        help_text="With `before`: `id` of the last line. The next page then includes all lines of the same time.",
    )  # fmt: skip
    most = serializers.IntegerField(required=False, min_value=1, max_value=MOST, default=MOST)


class MomentAsked(Asked):
    at = AskedInstant(help_text="A time without a time zone is in UTC. Default: now.")


class TimelineLineSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Position among lines of the same time. Send it as `below` for the next page.")
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text=f"One of {', '.join(LINE_KINDS)}.")
    sentence = serializers.CharField()
    who = serializers.CharField(
        help_text="Who made the change. Blank: the change was observed, and its author is unknown."
    )
    href = serializers.CharField(help_text="Page of the cause. Blank: no page.")
    detail = serializers.DictField()


class FactSerializer(serializers.Serializer):
    name = serializers.CharField(source="column")
    title = serializers.CharField()
    is_known = serializers.BooleanField()
    value = serializers.JSONField(allow_null=True)
    words = serializers.CharField()
    since = serializers.DateTimeField(
        allow_null=True, help_text="Time at which the value was first observed. Null: before the first record."
    )


class TrueThenSerializer(serializers.Serializer):
    kind = serializers.CharField(help_text="pod, finding, plan or gpus. gpus: activity of the GPUs in that hour.")
    sentence = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Null: still true at the last observation.")
    seen_until = serializers.DateTimeField(
        allow_null=True, help_text="Time of the last confirmation. Null: still true, or the end was observed."
    )
    href = serializers.CharField()


class NodeMomentSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    unseen = serializers.CharField(
        help_text="Reason why the state at this moment is unknown. Blank: the state is known."
    )
    had_its_name = serializers.IntegerField(
        allow_null=True,
        help_text="With `unseen`: ID of another machine that had the node's name at this moment. Null: not known.",
    )
    not_seen = serializers.CharField(
        help_text="Sentence about a gap in the cluster's observation at this moment. Blank: no known gap. "
        "During a gap, `facts` are from before the gap."
    )
    facts = FactSerializer(
        many=True,
        help_text="Values at this moment. Slices and shares are omitted if the node never had any. "
        "Whole GPUs are omitted if only slices or shares are known.",
    )
    true_then = TrueThenSerializer(
        many=True, help_text="Pods on the node, open findings, active plans, and activity of the GPUs in that hour."
    )
    around = TimelineLineSerializer(
        many=True, help_text="Timeline within 30 minutes of this moment, newest first, without lines of pods."
    )
    around_is_cut = serializers.BooleanField(help_text="True: `around` is incomplete. The timeline has all lines.")


class NodeNoteRequest(Asked):
    text = serializers.CharField(max_length=notes.LONGEST)


class NoteSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    by = serializers.CharField()
    text = serializers.CharField()


class OfAKeptNode(Edge):
    """A view of a node that may have left its cluster, as long as its timeline is stored."""

    def kept(self, node_id: int) -> NodeKept:
        node = kept_node(node_id, user=self.user)
        if node is None:
            raise Http404
        return node

    def asked(self, of: type[Asked]) -> dict[str, Any]:
        return asked_in(self.request, of)


def asked_in(request: Request, of: type[Asked]) -> dict[str, Any]:
    """Returns the validated query."""
    given = request.query_params
    asked = of(data={name: given.getlist(name) if name == "kind" else given[name] for name in given})
    asked.is_valid(raise_exception=True)
    return asked.validated_data


def span_of(asked: dict[str, Any], *, gpu: Gpu | None = None) -> Span:
    """Returns the time span of a validated `TimelineAsked`."""
    kinds = frozenset(asked.get("kind", ()))
    return Span(
        kinds,
        asked.get("since", LONG_AGO),
        asked.get("before"),
        position_of(asked.get("below", "")),
        asked["most"],
        gpu,
    )


class NodeTimeline(OfAKeptNode):
    @extend_schema(parameters=[TimelineAsked], responses=TimelineLineSerializer(many=True))
    def get(self, request, node_id: int) -> Response:
        """Lists changes, findings, plans and notes on one timeline, newest first."""
        node, asked = self.kept(node_id), self.asked(TimelineAsked)
        lines = lines_of(node, self.user, span_of(asked))
        return Response(TimelineLineSerializer(lines, many=True).data)


class NodeMoments(OfAKeptNode):
    @extend_schema(parameters=[MomentAsked], responses=NodeMomentSerializer)
    def get(self, request, node_id: int) -> Response:
        """Returns the state of the node at a moment, as far as it was observed."""
        node, now = self.kept(node_id), timezone.now()
        at = self.asked(MomentAsked).get("at", now)
        return Response(NodeMomentSerializer(moment_of(node, self.user, at, now=now)).data)


class NodeNotes(OfAKeptNode):
    @extend_schema(request=NodeNoteRequest, responses={201: NoteSerializer}, parameters=[KEY])
    def post(self, request, node_id: int) -> Response:
        """Adds a note to the timeline."""
        node = self.kept(node_id)
        notes.require_note(self.user, node)
        text = self.read(NodeNoteRequest)["text"]
        note = notes.add_note(node, self.user, text, key=self.key(), now=timezone.now())
        return Response(NoteSerializer(note).data, status=201)
