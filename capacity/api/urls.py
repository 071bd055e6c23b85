from django.urls import path

from capacity.api.pods import PodDetail, WhyPending

urlpatterns = [
    path("pods/<int:pod_id>", PodDetail.as_view(), name="api-pod"),
    path("pods/<int:pod_id>/why-pending", WhyPending.as_view(), name="api-why-pending"),
]
