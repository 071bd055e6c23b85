import json
from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH
from edges.documents import LARGEST_BYTES
from people.rights import Permission, require_somewhere
from rollouts.api.base import PlanEdge
from rollouts.api.previews import PreviewSerializer
from rollouts.commands.documents import (
    Applied,
    Applying,
    NotAsShown,
    apply,
    content_of,
    parse_plan_document,
    preview_document,
)
from rollouts.commands.documents.serializer import as_yaml
from rollouts.evidence.export import evidence_of

DRY_RUN = OpenApiParameter("dry_run", bool, description="true: only return what would change. Nothing is written.")
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="The ETag of a dry run. 412 if it would change other things."
)
EITHER = {(200, "application/json"): OpenApiTypes.OBJECT, (200, "application/yaml"): OpenApiTypes.OBJECT}
SWITCH = {"": False, "false": False, "true": True}


class PreconditionFailed(APIException):
    """The refusal of a document whose effect has changed since the caller saw it (RFC 9110, 13.1.1)."""

    status_code = 412
    default_code = "precondition_failed"


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

    parser_classes: ClassVar[list[type[BaseParser]]] = [JsonDocument, YamlDocument]  # type: ignore[misc]

    @extend_schema(
        parameters=[DRY_RUN, IF_MATCH],
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
            return Response(_shown(shown, is_done=False), headers={"ETag": f'"{shown.mark}"'})
        seen = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')[:LENGTH]
        try:
            done = apply(document, actor=self.user, now=timezone.now(), seen="" if seen == "*" else seen)
        except NotAsShown as refusal:
            raise PreconditionFailed(str(refusal)) from refusal
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
