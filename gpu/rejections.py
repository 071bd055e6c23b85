"""Event reasons for pods that the API server rejected, by the pods' owner. Pure.

kubernetes, pkg/controller; kubeflow/training-operator, pkg/controller.v1/control/pod_control.go (PyTorchJob, TFJob
and similar); ray-project/kuberay, ray-operator/controllers/ray/utils/constant.go and raycluster_controller.go.
"""

FAILED_CREATE = "FailedCreate"  # by Kubernetes, and by others for any object
POD_REJECTED = frozenset({"FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod"})  # by operators
