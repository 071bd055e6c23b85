from simulator.kinds import Kind

CLUSTER_POLICY = Kind(
    "nvidia.com",
    "v1",
    "clusterpolicies",
    "ClusterPolicy",
    namespaced=False,
    has_status=True,
    has_generation=True,
    is_custom=True,
)
GPU_CLUSTER = Kind(
    "nvidia.com",
    "v1alpha1",
    "gpuclusters",
    "GPUCluster",
    namespaced=False,
    has_status=True,
    has_generation=True,
    is_custom=True,
)
NVIDIA_DRIVER = Kind(
    "nvidia.com",
    "v1alpha1",
    "nvidiadrivers",
    "NVIDIADriver",
    namespaced=False,
    short=("nvd", "nvdriver", "nvdrivers"),
    has_status=True,
    has_generation=True,
    is_custom=True,
)
