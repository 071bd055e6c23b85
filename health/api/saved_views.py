"""The caller's saved views of a table, as on its page."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Listing, RowSerializer
from health.gpus.views import GPU_VIEWS
from health.models import SavedView
from health.saved_views import LONGEST_NAME, LONGEST_QUERY, BadView, ViewTable, address_of


class SavedViewSerializer(RowSerializer):
    query = serializers.CharField(help_text="The query string of the table. Blank: all rows, in the default order.")
    page = serializers.SerializerMethodField(help_text="Address of the page with this view.")

    class Meta:
        model = SavedView
        fields = ("id", "name", "query", "page", "saved_at")

    @extend_schema_field(serializers.CharField())
    def get_page(self, view: SavedView) -> str:
        return address_of(view.table, view.query)


class SavedViewRequest(Asked):
    name = serializers.CharField(max_length=LONGEST_NAME, help_text="The caller's view with this name is replaced.")
    query = serializers.CharField(
        max_length=LONGEST_QUERY, required=False, allow_blank=True, default="",
        help_text="The query string of the table's address. Unknown parameters are removed.",
    )  # fmt: skip


class SavedViewList(Listing):
    table: ClassVar[ViewTable[Any]]
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()

    def get_queryset(self) -> QuerySet[SavedView]:
        return self.table.of(self.user)

    @extend_schema(request=SavedViewRequest, responses={201: SavedViewSerializer})
    def post(self, request) -> Response:
        """Saves a view. It replaces the caller's view of that name."""
        asked = self.read(SavedViewRequest)
        try:
            view = self.table.save(self.user, **asked, now=timezone.now())
        except BadView as refusal:
            raise serializers.ValidationError({"name": [str(refusal)]}) from refusal
        return Response(SavedViewSerializer(view).data, status=201)


class SavedViewDetail(Edge):
    table: ClassVar[ViewTable[Any]]

    @extend_schema(responses={204: None})
    def delete(self, request, view_id: int) -> Response:
        """Deletes the view."""
        self.load(self.table.of(self.user), view_id).delete()
        return Response(status=204)


class GpuViewList(SavedViewList):
    """Lists the caller's saved views of the GPU table by name."""

    table = GPU_VIEWS


class GpuViewDetail(SavedViewDetail):
    table = GPU_VIEWS
