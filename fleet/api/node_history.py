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
    before = AskedInstant(help_text="For the next page: the `at` of the last line.")
    below = serializers.RegexField(
        r"\A[0-9]+-[0-9]+\Z", max_length=ID_CHARS, required=False,
        help_text="With `before`: the `id` of the last line, so that none of its instant is missed.",
    )  # fmt: skip
    most = serializers.IntegerField(required=False, min_value=1, max_value=MOST, default=MOST)


class MomentAsked(Asked):
    at = AskedInstant(help_text="Without a zone it is UTC; without any it is now.")


class TimelineLineSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Among the lines of its instant: for the next page.")
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text=f"{', '.join(LINE_KINDS)}.")
    sentence = serializers.CharField()
    who = serializers.CharField(help_text="Blank: it was seen, and nothing says whose act it was.")
    href = serializers.CharField(help_text="The page of what did it; blank: none.")
    detail = serializers.DictField()


class FactSerializer(serializers.Serializer):
    name = serializers.CharField(source="column")
    title = serializers.CharField()
    is_known = serializers.BooleanField()
    value = serializers.JSONField(allow_null=True)
    words = serializers.CharField()
    since = serializers.DateTimeField(
        allow_null=True, help_text="When it was seen to become so. Null: before anything was written down."
    )


class TrueThenSerializer(serializers.Serializer):
    kind = serializers.CharField(help_text="pod, finding, plan, or gpus: what they did in that hour.")
    sentence = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Null: it is so still, as far as anybody knows.")
    seen_until = serializers.DateTimeField(
        allow_null=True, help_text="When it was last known to be so. Null: it is, or was seen to end."
    )
    href = serializers.CharField()


class NodeMomentSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    unseen = serializers.CharField(help_text="Why nothing is known of that moment; blank: what follows is.")
    had_its_name = serializers.IntegerField(
        allow_null=True,
        help_text="With `unseen`: the node that had its name then, another machine. Null: none that you see.",
    )
    not_seen = serializers.CharField(
        help_text="That nobody saw its cluster then, and since when: `facts` are from before. Blank: nothing says so."
    )
    facts = FactSerializer(
        many=True,
        help_text="Of slices and shares where it ever had any; not of whole GPUs where only others are known.",
    )
    true_then = TrueThenSerializer(
        many=True, help_text="Findings that were open, plans that were under way, what its GPUs did in that hour."
    )
    around = TimelineLineSerializer(many=True, help_text="Within half an hour of it, the newest first.")
    around_is_cut = serializers.BooleanField(help_text="More happened then than `around` has: the timeline has all.")


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
