"""URLs under /api/v1/."""

from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.docs import Docs
from config.version import VERSION


class UnknownPath(APIView):
    """A view for unknown paths, so that their 404 is problem+json too."""

    schema = None

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound


class RunningVersionSerializer(serializers.Serializer):
    version = serializers.CharField(help_text="Version of Quarterdeck, such as `0.1.0` (semver.org).")


class RunningVersion(APIView):
    """The version of Quarterdeck that answers."""

    @extend_schema(responses=RunningVersionSerializer)
    def get(self, _: Request) -> Response:
        return Response({"version": VERSION})


urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/", include("people.api.urls")),
    path("v1/", include("fleet.api.urls")),
    path("v1/", include("health.api.urls")),
    path("v1/", include("capacity.api.urls")),
    path("v1/", include("operations.api.urls")),
    path("v1/", include("maintenance.api.urls")),
    path("v1/", include("rollouts.api.urls")),
    path("v1/", include("notifications.api.urls")),
    path("v1/version", RunningVersion.as_view(), name="version"),
    path("v1/schema", SpectacularAPIView.as_view(), name="schema"),
    path("v1/docs", Docs.as_view(url_name="schema"), name="api-docs"),
    re_path("", UnknownPath.as_view()),
]
