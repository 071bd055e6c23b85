"""Saved views of the GPU table."""

from health.gpus.gpu_filter import GpuFilter
from health.saved_views import ViewTable

GPU_VIEWS = ViewTable("gpus", GpuFilter.read)
