from django.urls import URLPattern, URLResolver, include, path

from config.gallery import gallery
from config.health import healthz, readyz, readyz_of
from config.metrics import Metrics
from config.status_page import status, status_part

handler400 = "config.errors.bad_request"
handler403 = "config.errors.forbidden"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/", include("config.api")),
    path("", include("fleet.web.urls")),
    path("", include("health.web.urls")),
    path("", include("capacity.web.urls")),
    path("", include("operations.web.urls")),
    path("", include("maintenance.web.urls")),
    path("", include("rollouts.web.urls")),
    path("", include("notifications.web.urls")),
    path("", include("people.web.urls")),
    path("gallery", gallery, name="gallery"),
    path("status", status, name="status"),
    path("parts/status", status_part, name="status-part"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("readyz/<slug:part>", readyz_of, name="readyz-of"),
    path("metrics", Metrics.as_view(), name="metrics"),
]
