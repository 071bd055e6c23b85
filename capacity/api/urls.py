from django.urls import path

from capacity.api.pod_views import PodViewDetail, PodViewList
from capacity.api.pods import PodDetail, WhyPending
from capacity.api.usage import Usage

urlpatterns = [
    path("pod-views", PodViewList.as_view()),
    path("pod-views/<int:view_id>", PodViewDetail.as_view()),
    path("usage", Usage.as_view(), name="api-usage"),
    path("pods/<int:pod_id>", PodDetail.as_view(), name="api-pod"),
    path("pods/<int:pod_id>/why-pending", WhyPending.as_view(), name="api-why-pending"),
]
