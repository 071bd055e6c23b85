"""The caller's saved views of the GPU table, as on the page."""

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Listing, RowSerializer
from health.gpus.views import LONGEST_NAME, LONGEST_QUERY, BadView, save_view, views_of
from health.models import GpuView


class GpuViewSerializer(RowSerializer):
    query = serializers.CharField(help_text="The filter, as the table spells it. Blank: all of it, as it usually is.")
    page = serializers.SerializerMethodField(help_text="Where the table shows it.")

    class Meta:
        model = GpuView
        fields = ("id", "name", "query", "page", "saved_at")

    @extend_schema_field(serializers.CharField())
    def get_page(self, view: GpuView) -> str:
        return f"{reverse('gpus')}?{view.query}" if view.query else reverse("gpus")


class GpuViewRequest(Asked):
    name = serializers.CharField(max_length=LONGEST_NAME, help_text="A view of the caller's of this name is replaced.")
    query = serializers.CharField(
        max_length=LONGEST_QUERY, required=False, allow_blank=True, default="",
        help_text="As behind the ? of the table's address; what the table does not know is left out.",
    )  # fmt: skip


class GpuViewList(Listing):
    """Lists the caller's saved views of the GPU table by name."""

    serializer_class = GpuViewSerializer
    queryset = GpuView.objects.none()

    def get_queryset(self) -> QuerySet[GpuView]:
        return views_of(self.user)

    @extend_schema(request=GpuViewRequest, responses={201: GpuViewSerializer})
    def post(self, request) -> Response:
        """Saves a view. It replaces the caller's view of that name."""
        asked = self.read(GpuViewRequest)
        try:
            view = save_view(self.user, **asked, now=timezone.now())
        except BadView as refusal:
            raise serializers.ValidationError({"name": [str(refusal)]}) from refusal
        return Response(GpuViewSerializer(view).data, status=201)


class GpuViewDetail(Edge):
    @extend_schema(responses={204: None})
    def delete(self, request, view_id: int) -> Response:
        """Deletes the view."""
        self.load(views_of(self.user), view_id).delete()
        return Response(status=204)
