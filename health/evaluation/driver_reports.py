"""The driver version that each source reports for each node of a cluster."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from functools import cache

from django.db.models import F

from fleet.drivers.cluster_drivers import read_drivers
from fleet.models import Bookmark, Cluster, Pod, ResourceSlice
from gpu.compatibility import Support
from gpu.labels import DRIVER_VERSION
from gpu.operands import DRIVER
from gpu.versions import is_vgpu, parse_version, tag_of
from health.rules.base import BadCombination
from health.stack.combinations import compare, surroundings

DRA = "gpu.nvidia.com"
OLDEST = (100,)  # driver branches have three digits; other tags count images, or are “latest”
LABEL, IMAGE, SLICE = f"the label {DRIVER_VERSION}", "the image of its driver pod", "its ResourceSlice"


def reported_drivers(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Returns NVIDIA driver versions by node name and source, beside the node's label, with two queries.

    A driver pod that is not ready has not loaded its driver. A vGPU image's tag may be the version of its software. The
    first device of a ResourceSlice stands for all.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    pods = Pod.objects.filter(cluster=cluster, operand=DRIVER, is_ready=True, deleted_at=None).not_done()
    driver = cache(_driver_in)  # most have one image
    for node, image in pods.exclude(node_name="").order_by("pk").values_list("node_name", "image"):
        if tag := driver(image):
            found[node][IMAGE] = tag
    slices = ResourceSlice.objects.filter(cluster=cluster, driver=DRA).exclude(node_name="")
    said = slices.order_by("pool_generation", "pk").values_list("node_name", F("devices__0__driver_version"))
    for node, version in said:  # the newest generation of its pool last
        if version:
            found[node][SLICE] = str(version)
    return found


def _driver_in(image: str) -> str:
    """Returns the driver version of the image's tag; empty if it has none."""
    tag = tag_of(image)
    return tag if parse_version(tag).numbers >= OLDEST and not is_vgpu(image) else ""


def bad_combinations(cluster: Cluster, bookmarks: Iterable[Bookmark], *, now: datetime) -> tuple[BadCombination, ...]:
    """Returns bad combinations, the worst first, with six queries; none for a cluster without NVIDIA GPU nodes."""
    compared = compare(cluster, surroundings(read_drivers(cluster, bookmarks)), user=None, today=now.date())
    if not compared.nodes:
        return ()
    return tuple(
        BadCombination(
            line.verdict.answer is Support.KNOWN_BAD,
            line.verdict.subject,
            line.verdict.sentence,
            line.verdict.action,
            line.verdict.source,
            line.nodes,
        )
        for line in compared.lines
        if line.verdict.answer in (Support.KNOWN_BAD, Support.UNSUPPORTED)
    )
