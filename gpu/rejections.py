"""How the Event on an owner says that the API server took none of its pods. Pure.

kubernetes, pkg/controller; kubeflow/training-operator, pkg/controller.v1/control/pod_control.go (PyTorchJob, TFJob and
the like); ray-project/kuberay, ray-operator/controllers/ray/utils/constant.go and raycluster_controller.go.
"""

FAILED_CREATE = "FailedCreate"  # Kubernetes' own, and others' of whatever they make
POD_REJECTED = frozenset({"FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod"})  # operators'
