"""Why a DRA driver does not come up, or publishes nothing. Pure.

dra-driver-nvidia-gpu: cmd/compute-domain-kubelet-plugin/nvlib.go ("empty cluster UUID, refusing to start": #864, mended
by #865; the fabric's state at boot: #1264, CrashOnNVLinkFabricErrors), hack/kubelet-plugin-prestart.sh ("Check failed.
Has the NVIDIA GPU driver been set up?"), a ResourceSlice without devices (#1008).
"""

from gpu.operands import AMD_DRA, DRA_DRIVER, INTEL_DRA
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words

PUBLISHES = {DRA_DRIVER: "gpu.nvidia.com", AMD_DRA: "gpu.amd.com", INTEL_DRA: "gpu.intel.com"}
OF_DRA = frozenset(PUBLISHES)

EMPTY_UUID = Saying(
    "dra_no_cluster_uuid",
    words("empty cluster uuid"),
    "Its ComputeDomain plugin takes a GPU without NVLink between nodes for a broken one, and refuses to start.",
    "Take a release with dra-driver-nvidia-gpu #865; or resources.computeDomains.enabled=false, where no ComputeDomain "
    "is used.",
    frozenset({DRA_DRIVER}),
)
FABRIC = Saying(
    "dra_fabric",
    words(r"fabric.{0,60}(state[=: ]+[12]\b|in.progress|not (ready|completed|registered))", "nvlink fabric error",
          "error getting fabric info"),
    "A GPU of this node has not joined the NVLink fabric, and its ComputeDomain plugin does not start without.",
    "Look at the fabric manager and, between nodes, IMEX. After a boot it comes by itself; where NVLink between nodes "
    "is not wanted, switch off the feature gate CrashOnNVLinkFabricErrors.",
    frozenset({DRA_DRIVER}),
)  # fmt: skip
NO_DRIVER = Saying(
    "dra_no_driver",
    words(r"has the nvidia gpu driver been set up\?.*NVIDIA_DRIVER_ROOT \(currently set to '(?P<root>[^']*)'\)"),
    "It finds no driver below {root} on this node.",
    "Look whether the driver runs here, and whether the chart's nvidiaDriverRoot is right: /run/nvidia/driver for the "
    "operator's, / for the host's.",
    frozenset({DRA_DRIVER}),
    alone="Look whether nvidia-smi runs on the node. The chart's nvidiaDriverRoot is / for a driver of the host.",
)
NO_API = Saying(
    "dra_not_served",
    words(r"resource\.k8s\.io.*(could not find the requested resource|no matches for kind|not found)",
          "could not find the requested resource.*resource(slice|claim)",
          "dynamic resource allocation.*(disabled|not)"),
    "The API server does not serve the resource.k8s.io that it speaks.",
    "Dynamic Resource Allocation is on from Kubernetes 1.34; before that it is switched on at the API server, the "
    "scheduler and the kubelets. Look which version of it the driver wants.",
    OF_DRA,
)  # fmt: skip


def publishes_nothing(signs: Signs) -> Cause | None:
    """It is ready, and what it says of the node's GPUs is an empty list."""
    pod = signs.pod
    if pod is None or signs.operand not in OF_DRA or signs.slice_devices != 0:
        return None
    namespace, _, name = pod.name.partition("/")
    return Cause(
        "dra_publishes_nothing",
        Weight.WRONG,
        "It is ready, but its ResourceSlice of this node has no device: nothing can be claimed here.",
        f"kubectl -n {namespace} logs {name} --all-containers says what it found. Most often the driver was not there "
        "when it started, or its root is another one: then delete this pod.",
    )


RULES: tuple[CauseRule, ...] = (EMPTY_UUID, FABRIC, NO_DRIVER, NO_API)
WHEN_READY: tuple[CauseRule, ...] = (publishes_nothing,)
