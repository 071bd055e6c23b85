"""The audit trail: readable for admins of the fleet."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer

from edges.rest import Listing, RowSerializer
from people.audit_trail import FIELDS, AuditFilters, json_lines
from people.models import AuditEntry
from people.rights import Permission, require

LINES = 10_000  # of one answer


class AuditEntrySerializer(RowSerializer):
    """A decision. `hash` covers it and `previous_hash`, the hash of the entry before it about the same object."""

    class Meta:
        model = AuditEntry
        fields = FIELDS


class AuditList(Listing):
    """Lists decisions, the newest first."""

    serializer_class = AuditEntrySerializer
    filterset_class = AuditFilters
    queryset = AuditEntry.objects.none()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        require(self.user, Permission.ADMINISTER)
        return AuditEntry.objects.order_by("-pk")


class LinesRenderer(BaseRenderer):
    """Renders refusals only. The file itself is streamed."""

    media_type = "application/x-ndjson"
    format = "jsonl"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return bytes(JSONRenderer().render(data, None, renderer_context))


class AuditFile(AuditList):
    renderer_classes: ClassVar[list[type[BaseRenderer]]] = [LinesRenderer, JSONRenderer]  # type: ignore[misc]
    pagination_class = None

    @extend_schema(responses={(200, "application/x-ndjson"): OpenApiTypes.STR})
    def get(self, request: Any, *args: Any, **kwargs: Any) -> StreamingHttpResponse:  # type: ignore[override]
        """Returns decisions as JSON lines, the oldest first, at most 10,000.

        To continue, send the last `id` as `after`. Decisions of the last 2 minutes are left out, so that a reader that
        continues misses none.
        """
        lines = json_lines(self.filter_queryset(self.get_queryset()), most=LINES)
        response = StreamingHttpResponse(lines, content_type=LinesRenderer.media_type)
        response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
        response["Cache-Control"] = "private, no-store"
        return response
