"""Events about pods that the API server rejected, by the pods' owner, about ends by a probe, and about trouble that
Kubernetes reports with the type Normal. Pure.

kubernetes, pkg/controller; kubeflow/training-operator, pkg/controller.v1/control/pod_control.go (PyTorchJob, TFJob
and similar); ray-project/kuberay, ray-operator/controllers/ray/utils/constant.go and raycluster_controller.go.
"""

import re

FAILED_CREATE = "FailedCreate"  # by Kubernetes, and by others for any object
POD_REJECTED = frozenset({"FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod"})  # by operators
# kubernetes, pkg/kubelet/kuberuntime/kuberuntime_manager.go: a message of the reason Killing, of type Normal
ENDED_BY_PROBE = re.compile(r"^(?:Init c|C)ontainer \S+ failed (?P<probe>liveness|startup) probe\b")
# Trouble with the type Normal: kubernetes, pkg/scheduler/framework/preemption; pkg/kubelet/nodestatus/setters.go
TROUBLE = frozenset({
    "Preempted", "NodeNotReady", "NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID",
})  # fmt: skip
# kubernetes, pkg/controller/tainteviction: the same reason also says that the deletion is cancelled
DELETED_FOR_TAINT = re.compile(r"^Marking for deletion Pod ")
