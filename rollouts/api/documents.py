import json
from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.response import Response

from edges.documents import LARGEST_BYTES
from people.rights import Permission, require_somewhere
from rollouts.api.base import PlanEdge
from rollouts.api.previews import PreviewSerializer
from rollouts.commands.documents import (
    Applied,
    Applying,
    apply,
    content_of,
    parse_plan_document,
    preview_document,
)
from rollouts.commands.documents.serializer import as_yaml
from rollouts.evidence.export import evidence_of

DRY_RUN = OpenApiParameter("dry_run", bool, description="true: only return what would change. Nothing is written.")
EITHER = {(200, "application/json"): OpenApiTypes.OBJECT, (200, "application/yaml"): OpenApiTypes.OBJECT}
SWITCH = {"": False, "false": False, "true": True}


class YamlDocument(BaseParser):
    """Reads the body as bytes, up to one more than the limit; `parse_plan_document` checks the limits."""

    media_type = "application/yaml"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return bytes(stream.read(LARGEST_BYTES + 1))


class JsonDocument(YamlDocument):
    media_type = "application/json"


class YamlRenderer(BaseRenderer):
    media_type = "application/yaml"
    format = "yaml"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Renders YAML; problems stay JSON."""
        refused = renderer_context and renderer_context["response"].status_code >= 400
        return (json.dumps(data) if refused else as_yaml(data)).encode()


class DifferenceSerializer(serializers.Serializer):
    field = serializers.CharField(help_text="Path of the field, such as stages[1].gates.soak.duration.")
    drafted = serializers.JSONField(allow_null=True, help_text="Value in the draft. Null: the field is absent.")
    document = serializers.JSONField(allow_null=True, help_text="Value in the document. Null: the field is absent.")


class AppliedSerializer(serializers.Serializer):
    outcome = serializers.ChoiceField(choices=[(each.value, each.value) for each in Applying])
    is_done = serializers.BooleanField(help_text="False: dry run.")
    plan = serializers.IntegerField(source="plan.pk", allow_null=True, help_text="Plan id. Null: no draft exists yet.")
    title = serializers.CharField(source="plan.title")
    revision = serializers.IntegerField(source="plan.revision")
    differences = DifferenceSerializer(many=True, help_text="Differences between the previous draft and the document.")
    mark = serializers.CharField(help_text="Mark of what would change, also in the ETag of a dry run. For `If-Match`.")
    preview = PreviewSerializer(allow_null=True, help_text="Preview of the plan; only for a dry run.")


class PlanDocuments(PlanEdge):
    """Creates a draft from a document, or edits the draft of an earlier application. Starts nothing."""

    mark_field = "mark"
    parser_classes: ClassVar[list[type[BaseParser]]] = [JsonDocument, YamlDocument]  # type: ignore[misc]

    @extend_schema(
        parameters=[DRY_RUN],
        request={"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR},
        responses={200: AppliedSerializer, 201: AppliedSerializer},
    )
    def post(self, request) -> Response:
        """Applies a document. Repeating it changes nothing. A draft that was edited otherwise is not overwritten."""
        require_somewhere(self.user, Permission.DRAFT)
        dry_run = SWITCH.get(request.query_params.get("dry_run", ""))
        if dry_run is None:
            raise ValidationError({"dry_run": "Say true or false."})
        document = parse_plan_document(request.data if isinstance(request.data, bytes) else b"")
        if dry_run:
            shown = preview_document(document, actor=self.user, now=timezone.now())
            return Response(_shown(shown, is_done=False))
        done = apply(document, actor=self.user, now=timezone.now(), seen=self.was())
        return Response(_shown(done, is_done=True), status=201 if done.outcome is Applying.DRAFTED else 200)


class PlanEvidence(PlanEdge):
    """The evidence file of a plan, which `bin/manage verify_evidence` verifies without a database."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request, plan_id: int) -> HttpResponse:
        """Returns sealed content, decisions, gate results and audit chain, each with its hash, as canonical bytes."""
        return HttpResponse(evidence_of(self.plan(plan_id)), content_type="application/json")


class DocumentOfPlan(PlanEdge):
    renderer_classes: ClassVar[list[type[BaseRenderer]]] = [JSONRenderer, YamlRenderer]  # type: ignore[misc]

    @extend_schema(responses=EITHER)
    def get(self, request, plan_id: int) -> Response:
        """Returns the plan as a document; applying it yields the same draft."""
        return Response(content_of(self.plan(plan_id)))


def _shown(done: Applied, *, is_done: bool) -> dict[str, Any]:
    said = {name: getattr(done, name) for name in ("outcome", "plan", "differences", "preview", "mark")}
    return dict(AppliedSerializer({**said, "is_done": is_done}).data)
