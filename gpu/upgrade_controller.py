"""What the GPU operator's upgrade controller does by itself.

It wakes on changes of the labels of state and hold and of its own objects, else after `plannedRequeueInterval`
(gpu-operator, controllers/upgrade_controller.go). A driver pod that becomes Ready does not wake it: on v26.7.0 a node
was seen to stand in pod-restart-required for up to that long after its new driver was loaded.
"""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeGuard

# States of a node, as its label says them (NVIDIA/k8s-operator-libs, pkg/upgrade/consts.go).
UPGRADE_REQUIRED = "upgrade-required"
UPGRADE_DONE = "upgrade-done"
UPGRADE_FAILED = "upgrade-failed"
CORDON_REQUIRED = "cordon-required"
WAIT_FOR_JOBS = "wait-for-jobs-required"
POD_DELETION_REQUIRED = "pod-deletion-required"
DRAIN_REQUIRED = "drain-required"
# From here on the new driver's pod, and with it the driver manager, may have run on the node.
DRIVER_RESTARTED = frozenset({"pod-restart-required", "validation-required", "uncordon-required"})

LOOKS_EVERY = timedelta(minutes=2)
LOOKS_AGAIN = "the operator looks again within two minutes"


def parallel_of(policy: Mapping[str, Any]) -> int:
    """How many nodes it takes on at once; 0: as many as there are. What cannot be read is what is not said: one."""
    amount = policy.get("maxParallelUpgrades")
    return amount if _is_whole(amount) and amount >= 0 else 1


def unavailable_of(policy: Mapping[str, Any], nodes: int) -> int | None:
    """How many of its nodes may be unavailable; None: all. Percentages are rounded up, as it does (upgrade_spec.go).

    What cannot be read is none: it changes nothing then.
    """
    amount = policy.get("maxUnavailable", "25%")
    if amount is None:
        return None
    if _is_whole(amount):
        return max(0, amount)
    try:
        said = math.ceil(nodes * int(amount[:-1]) / 100) if amount.endswith("%") else int(amount)
    except (AttributeError, OverflowError, ValueError):
        return 0
    return max(0, said)


def _is_whole(amount: object) -> TypeGuard[int]:
    return isinstance(amount, int) and not isinstance(amount, bool)
