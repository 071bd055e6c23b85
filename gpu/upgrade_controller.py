"""What the GPU operator's upgrade controller does by itself.

It wakes on changes of the labels of state and hold and of its own objects, else after `plannedRequeueInterval`
(gpu-operator, controllers/upgrade_controller.go). A driver pod that becomes Ready does not wake it: on v26.7.0 a node
was seen to stand in pod-restart-required for up to that long after its new driver was loaded.
"""

from datetime import timedelta

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
