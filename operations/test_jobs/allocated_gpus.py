"""The GPUs of a test Job: its request where they are partitioned or shared, and their UUIDs for series of results."""

from datetime import datetime

from fleet.allocation.gpu_holders import allocated_indices
from fleet.models import Gpu, Node
from gpu.labels import GPU
from gpu.resources import Layout
from operations.test_jobs.device_requests import TestedDevices, request_of, why_not_all, why_untestable

# Columns that a request is made of.
REQUESTED_BY = (
    "slices_expected", "shares_expected", "layout", "gpu_product", "allocatable", "expected", "physical_gpus",
)  # fmt: skip


def device_request_of(node: Node) -> TestedDevices | str | None:
    """Returns the request of all devices of a node, or why there is none. None: it has whole GPUs, or none yet."""
    if not (node.slices_expected or node.shares_expected):
        return None
    layout, product = Layout.read(node.layout), node.gpu_product
    return request_of(node.allocatable, node.expected, layout, physical_gpus=node.physical_gpus, product=product)


def why_not_testable_yet(node: Node) -> str:
    """Returns which devices a test would miss now, such as before the driver is up after a boot. Blank: none.

    Devices that no test can have are not waited for.
    """
    request = device_request_of(node)
    if request is None:
        return why_not_all(node.gpu_allocatable or 0, node.gpu_expected or 0)
    return request if isinstance(request, str) and not why_never_testable(node) else ""


def why_never_testable(node: Node) -> str:
    """Returns why no test has all devices of a node, whatever it offers later. Blank: one may."""
    if not (node.slices_expected or node.shares_expected):
        return ""
    layout = Layout.read(node.layout)
    return why_untestable(node.allocatable, node.expected, layout, physical_gpus=node.physical_gpus)


def uuids_of_whole_node(node: Node, resource: str, amount: int) -> list[str] | None:
    """Returns the UUIDs of all GPUs of the node if the Job requests each of them; None if it does not, or unknown."""
    if resource != GPU:
        return None
    found = [uuid for uuid in Gpu.objects.filter(node=node).order_by("index").values_list("uuid", flat=True) if uuid]
    return found if found and len(found) == amount else None


def uuids_of_pod(node_uid: str, pod_uid: str, *, now: datetime) -> list[str] | None:
    """Returns the UUIDs of the GPUs of a pod that runs; None if no source names them. Six queries, and some for DRA."""
    node = Node.objects.filter(uid=node_uid).first()
    indices = allocated_indices([node], now=now).get(pod_uid, []) if node else []
    found = Gpu.objects.filter(node=node, index__in=indices).order_by("index").values_list("uuid", flat=True)
    return [uuid for uuid in found if uuid] or None if indices else None
