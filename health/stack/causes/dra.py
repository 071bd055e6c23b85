"""Why a DRA driver does not come up, or publishes nothing. Pure.

dra-driver-nvidia-gpu: cmd/compute-domain-kubelet-plugin/nvlib.go ("empty cluster UUID, refusing to start": #864, mended
by #865; the fabric's state at boot: #1264, CrashOnNVLinkFabricErrors), hack/kubelet-plugin-prestart.sh ("Check failed.
Has the NVIDIA GPU driver been set up?"), a ResourceSlice without devices (#1008). "create resource slice: … is invalid:
…" of k8s.io/dynamic-resource-allocation, resourceslice/resourceslicecontroller.go: ROCm/gpu-operator #609 and
ROCm/k8s-gpu-dra-driver #56, mended by its #68. nvidia-imex: "Failed to allocate Imex session with error NV_ERR_IN_USE"
(dra-driver-nvidia-gpu #524), "No matching network interface found for any IP addresses" (#289). "checkpoint is
corrupted" (#1080, #1100), after a downgrade, too (#1066).
"""

from gpu.operands import AMD_DRA, COMPUTE_DOMAIN, DRA_DRIVER, INTEL_DRA
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words

PUBLISHES = {DRA_DRIVER: "gpu.nvidia.com", AMD_DRA: "gpu.amd.com", INTEL_DRA: "gpu.intel.com"}
DRIVERS = {driver: operand for operand, driver in PUBLISHES.items()}  # by what claims call them
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
CHECKPOINT = Saying(
    "dra_checkpoint",
    words("checkpoint is corrupted", "corrupt ?checkpoint", "unable to (get|sync|read) checkpoint"),
    "It does not start: its record of prepared claims on this node is damaged, or of another release of the driver.",
    "Drain the pods that have claims from the node. On the node, remove checkpoint.json in the driver's folder below "
    "/var/lib/kubelet/plugins (gpu.nvidia.com, compute-domain.nvidia.com). Then delete this pod.",
    OF_DRA,
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
VERSION_REFUSED = Saying(
    "dra_version_refused",
    words(r"resource ?slice.*is invalid.*invalid value: \\?\"(?P<version>[^\"\\]+)\\?\": must be a string compatible "
          r"with semver", r"must be a string compatible with semver\.org.*resource ?slice"),
    "The API server rejects its ResourceSlice: the driver version {version} is no semantic version.",
    "Take a release of the DRA driver that writes it in three numbers (AMD's k8s-gpu-dra-driver: 1.0.1 or newer), or a "
    "GPU driver whose version has three. Until then nothing can be claimed here.",
    OF_DRA,
)  # fmt: skip
SLICE_REFUSED = Saying(
    "dra_slice_refused",
    words(r"(create|update) resource ?slice.*(is invalid|is forbidden|denied)"),
    "The API server rejects its ResourceSlice: nothing can be claimed here.",
    "The line names the field or the right that is refused. Driver, chart and API server must be of releases that fit.",
    OF_DRA,
)
OF_IMEX = frozenset({COMPUTE_DOMAIN})
IMEX_IN_USE = Saying(
    "imex_in_use",
    words(r"failed to allocate imex session.*(nv_err_in_use|in use)", r"imex.*nv_err_in_use"),
    "The GPU driver has one IMEX session, and another nvidia-imex on this node has it: most often the host's service.",
    "On the node: systemctl disable --now nvidia-imex.service && systemctl mask nvidia-imex.service. Then delete this "
    "pod. IMEX of the host and ComputeDomains exclude each other.",
    OF_IMEX,
)
IMEX_NO_ADDRESS = Saying(
    "imex_no_address",
    words("no matching network interface found for any ip addresses"),
    "nvidia-imex finds none of this node's addresses in its list of peers, and does not start.",
    "Look at the pod's address and at the ComputeDomain's status.nodes. On the host's network, nvidia-imex of the host "
    "must be off.",
    OF_IMEX,
)
IMEX_FAILED = Saying(
    "imex_failed",
    words(r"\[ERROR\] \[tid \d+\]", r"imex.{0,60}(fail|error|exited|mismatch)"),
    "nvidia-imex does not become ready on this node.",
    "The line names the reason. IMEX on all nodes of the domain must be of the driver's version, and reach the others "
    "at port 50000.",
    OF_IMEX,
    is_normal_at_first=True,
)


def publishes_nothing(signs: Signs) -> Cause | None:
    """It is ready, and the node's GPUs are in no ResourceSlice: the list is empty, or the API server refuses it.

    NVIDIA's may be installed for ComputeDomains alone: without a slice it may publish no GPU on purpose.
    """
    pod = signs.pod
    if pod is None or signs.operand not in OF_DRA:
        return None
    has_none = signs.slice_devices is None and signs.operand != DRA_DRIVER and pod.is_overdue and signs.sees_slices
    if signs.slice_devices and not has_none:
        return None
    if known := next((cause for rule in (VERSION_REFUSED, SLICE_REFUSED) if (cause := rule(signs))), None):
        return known
    if signs.slice_devices != 0 and not has_none:
        return None
    namespace, _, name = pod.name.partition("/")
    what = "there is no ResourceSlice of it for this node" if has_none else "its ResourceSlice of this node is empty"
    return Cause(
        "dra_publishes_nothing",
        Weight.WRONG,
        f"It is ready, but {what}: nothing can be claimed here.",
        f"kubectl -n {namespace} logs {name} --all-containers says what it found. Most often the driver was not there "
        "when it started, or its root is another one: then delete this pod.",
        pod.telling,
    )


RULES: tuple[CauseRule, ...] = (
    EMPTY_UUID,
    FABRIC,
    NO_DRIVER,
    CHECKPOINT,
    NO_API,
    VERSION_REFUSED,
    SLICE_REFUSED,
    IMEX_IN_USE,
    IMEX_NO_ADDRESS,
    IMEX_FAILED,
)
WHEN_READY: tuple[CauseRule, ...] = (publishes_nothing,)
