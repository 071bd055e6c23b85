"""The checklist of a GPU pod: its checks, from the request to the end of the program. No queries.

Each answer is yes, no with the cause and steps, or unknown with its reason. Facts that are not mirrored never pass.
"""

from collections.abc import Callable

from health.pod_checklist.allocation_checks import (
    check_allocation,
    check_events,
    check_node,
    check_requests,
    check_runtime,
)
from health.pod_checklist.end_checks import check_cuda_error, check_memory
from health.pod_checklist.facts import PodCheckFacts
from health.pod_checklist.gpu_checks import check_memory_errors, check_neighbours, check_xids
from health.pod_checklist.replies import Reply
from health.pod_checklist.setting_checks import check_cuda_version, check_environment, check_security
from health.stack import ChecklistItem

CHECKS: dict[str, tuple[str, Callable[[PodCheckFacts], Reply]]] = {
    "requests": ("GPU requested", check_requests),
    "node": ("On a GPU node", check_node),
    "allocation": ("GPU allocated", check_allocation),
    "events": ("Device plugin and kubelet", check_events),
    "runtime": ("Runtime class and toolkit", check_runtime),
    "cuda-version": ("Driver new enough for the image", check_cuda_version),
    "security": ("Security context", check_security),
    "environment": ("Device lists in the environment", check_environment),
    "neighbours": ("GPU not shared", check_neighbours),
    "xids": ("No Xid in its time", check_xids),
    "memory-errors": ("No memory error of the GPU", check_memory_errors),
    "memory": ("Memory was enough", check_memory),
    "cuda-error": ("No CUDA error", check_cuda_error),
}


def check_pod(facts: PodCheckFacts) -> list[ChecklistItem]:
    """Returns the answers, in the order from the request to the end of the program."""
    items = []
    for key, (title, check) in CHECKS.items():
        answer, sentence, steps, at = check(facts)
        items.append(ChecklistItem(key, title, answer, sentence, steps, at or facts.seen_at))
    return items
