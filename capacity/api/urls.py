from django.urls import path

from capacity.api.pods import PodDetail

urlpatterns = [
    path("pods/<int:pod_id>", PodDetail.as_view(), name="api-pod"),
]
