"""Labels and annotations, formats in k8s-operator-libs pkg/upgrade/consts.go with driver name `gpu`."""

STATE = "nvidia.com/gpu-driver-upgrade-state"
SKIP = "nvidia.com/gpu-driver-upgrade.skip"
SKIP_DRAIN = "nvidia.com/gpu-driver-upgrade-drain.skip"  # on pods

ENABLED = "nvidia.com/gpu-driver-upgrade-enabled"  # an annotation, although the documents call it a label
REQUESTED = "nvidia.com/gpu-driver-upgrade-requested"
WAS_CORDONED = "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable"
JOBS_SINCE = "nvidia.com/gpu-driver-upgrade-wait-for-pod-completion-start-time"
VALIDATION_SINCE = "nvidia.com/gpu-driver-upgrade-validation-start-time"
SAFE_LOAD = "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load"

PRESENT = "nvidia.com/gpu.present"
OWNER = "nvidia.com/gpu-operator.driver.owner"
DEPLOY = "nvidia.com/gpu.deploy."
DEPLOY_DRIVER = DEPLOY + "driver"
DEPLOY_OPERANDS = DEPLOY + "operands"
PAUSED = "paused-for-driver-upgrade"

COMPONENT = "app.kubernetes.io/component"
DRIVER_COMPONENT = "nvidia-driver"
VALIDATOR_APP = "nvidia-operator-validator"
APPLIED_HASH = "nvidia.com/last-applied-hash"
DIGEST_ENV = "DRIVER_CONFIG_DIGEST"

NAMESPACE = "gpu-operator"
SOURCE = "nvidia-gpu-operator"
MANAGER = "gpu-operator"  # its program's name, with which client-go's User-Agent begins
REASON = "GPUDriverUpgrade"
