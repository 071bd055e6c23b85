"""The GPU operator's upgrade controller: its states and limits.

It reacts to changes of state and hold labels and of its own objects, else every `plannedRequeueInterval`
(gpu-operator, controllers/upgrade_controller.go). A driver pod that becomes Ready does not wake it: with v26.7.0 a
node stayed in pod-restart-required for up to that long after its new driver was loaded.
"""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeGuard

# Node states in its label (NVIDIA/k8s-operator-libs, pkg/upgrade/consts.go).
UPGRADE_REQUIRED = "upgrade-required"
UPGRADE_DONE = "upgrade-done"
UPGRADE_FAILED = "upgrade-failed"
CORDON_REQUIRED = "cordon-required"
WAIT_FOR_JOBS = "wait-for-jobs-required"
POD_DELETION_REQUIRED = "pod-deletion-required"
DRAIN_REQUIRED = "drain-required"
# From here on the pod of the new driver, and with it the driver manager, may have run on the node.
DRIVER_RESTARTED = frozenset({"pod-restart-required", "validation-required", "uncordon-required"})

# In every other state the operator works on the node.
NOT_AT_WORK = frozenset({"", UPGRADE_REQUIRED, UPGRADE_DONE, UPGRADE_FAILED})

LOOKS_EVERY = timedelta(minutes=2)
LOOKS_AGAIN = "the operator checks again within two minutes"


def parallel_of(policy: Mapping[str, Any]) -> int:
    """Returns how many nodes it upgrades at once; 0: all. A missing or invalid value means one."""
    amount = policy.get("maxParallelUpgrades")
    return amount if _is_whole(amount) and amount >= 0 else 1


def unavailable_of(policy: Mapping[str, Any], nodes: int) -> int | None:
    """Returns how many nodes may be unavailable; None: all. Percentages round up, as in upgrade_spec.go.

    An invalid value means zero: the operator then changes no node.
    """
    amount = policy.get("maxUnavailable", "25%")
    if amount is None:
        return None
    if _is_whole(amount):
        return max(0, amount)
    try:
        limit = math.ceil(nodes * int(amount[:-1]) / 100) if amount.endswith("%") else int(amount)
    except (AttributeError, OverflowError, ValueError):
        return 0
    return max(0, limit)


def _is_whole(amount: object) -> TypeGuard[int]:
    return isinstance(amount, int) and not isinstance(amount, bool)
