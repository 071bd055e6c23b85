"""Saved views of the list of GPU pods."""

from capacity.pods.pod_filter import PodFilter
from health.saved_views import ViewTable

POD_VIEWS = ViewTable("pods", PodFilter.read)
