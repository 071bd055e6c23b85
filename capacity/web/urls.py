from django.urls import path

from capacity.web import pod_page, pods_page, usage_page

urlpatterns = [
    path("pods", pods_page.pods, name="pods"),
    path("parts/pods", pods_page.pods_part, name="pods-part"),
    path("pods.csv", pods_page.csv_file, name="pods-csv"),
    path("pods/views", pods_page.save, name="save-pod-view"),
    path("pods/views/<int:view_id>/forget", pods_page.forget, name="forget-pod-view"),
    path("pods/<int:pod_id>", pod_page.pod, name="pod"),
    path("parts/pods/<int:pod_id>", pod_page.pod_part, name="pod-part"),
    path("usage", usage_page.usage, name="usage"),
    path("parts/usage", usage_page.usage_part, name="usage-part"),
    path("usage.csv", usage_page.csv_file, name="usage-csv"),
]
