"""The labels of GPU Feature Discovery (k8s-device-plugin internal/lm: nvml.go, resource.go, mig-strategy.go)."""

from simulator.actors import mig
from simulator.actors.cuda import cuda_of
from simulator.actors.mig import Layout
from simulator.actors.sharing import MigStrategy, PluginConfig, Strategy
from simulator.actors.skus import Sku

TIMESTAMP = "nvidia.com/gfd.timestamp"
CLIQUE = "nvidia.com/gpu.clique"
DRIVER_LABELS = ("nvidia.com/cuda.", TIMESTAMP)
GPU_LABELS = (
    "nvidia.com/gpu.clique",
    "nvidia.com/gpu.compute.",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.engines.",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.mode",
    "nvidia.com/gpu.multiprocessors",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/gpu.slices.",
    "nvidia.com/mig-",
    "nvidia.com/mig.capable",
    "nvidia.com/mig.strategy",
    "nvidia.com/mps.capable",
    "nvidia.com/vgpu.present",
)


def driver_labels(version: str) -> dict[str, str]:
    major, minor, revision = ([*version.split("."), "", ""])[:3]
    cuda = cuda_of(version)
    cuda_major, _, cuda_minor = cuda.partition(".")
    return {
        "nvidia.com/cuda.driver-version.full": version,
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.driver.major": major,
        "nvidia.com/cuda.driver.minor": minor,
        "nvidia.com/cuda.driver.rev": revision,
        "nvidia.com/cuda.runtime-version.full": cuda,
        "nvidia.com/cuda.runtime-version.major": cuda_major,
        "nvidia.com/cuda.runtime-version.minor": cuda_minor,
        "nvidia.com/cuda.runtime.major": cuda_major,
        "nvidia.com/cuda.runtime.minor": cuda_minor,
    }


def gpu_labels(sku: Sku, cut: Layout, config: PluginConfig, *, clique: str = "") -> dict[str, str]:
    labels = {
        "nvidia.com/gpu.family": sku.family,
        "nvidia.com/gpu.machine": sku.machine,
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.compute.major": str(sku.compute[0]),
        "nvidia.com/gpu.compute.minor": str(sku.compute[1]),
        "nvidia.com/mig.capable": str(sku.family in mig.CAPABLE).lower(),
        "nvidia.com/mps.capable": str(config.strategy is Strategy.MPS and mig.whole_gpus(cut) == len(cut)).lower(),
        "nvidia.com/vgpu.present": "false",
    }
    if clique:
        labels[CLIQUE] = clique
    if config.mig_strategy is not MigStrategy.NONE:
        labels["nvidia.com/mig.strategy"] = config.mig_strategy
    return labels | _resources(sku, cut, config)


def _resources(sku: Sku, cut: Layout, config: PluginConfig) -> dict[str, str]:
    """Whole GPUs first; what MIG says comes on top of it."""
    labels = _of_gpus(sku, cut, config)
    if config.mig_strategy is MigStrategy.MIXED:
        for profile in sorted(mig.instances(cut)):
            labels |= _of_instances(f"nvidia.com/mig-{profile}", sku, profile, cut, PluginConfig())
    elif config.mig_strategy is MigStrategy.SINGLE and mig.whole_gpus(cut) < len(cut):
        labels |= _of_one_profile(sku, cut, config)
    return labels


def _of_gpus(sku: Sku, cut: Layout, config: PluginConfig) -> dict[str, str]:
    has_whole = mig.whole_gpus(cut) > 0
    labels = _base("nvidia.com/gpu", (sku.product,), len(cut), config if has_whole else PluginConfig())
    if not has_whole:
        labels["nvidia.com/gpu.replicas"] = "0"  # GPUs that MIG has cut are not offered whole
    return labels | {"nvidia.com/gpu.memory": str(sku.memory_mib)}


def _of_one_profile(sku: Sku, cut: Layout, config: PluginConfig) -> dict[str, str]:
    if not mig.is_single(cut):
        return {
            "nvidia.com/gpu.product": f"{sku.product}-MIG-INVALID",
            "nvidia.com/gpu.count": "0",
            "nvidia.com/gpu.replicas": "0",
            "nvidia.com/gpu.memory": "0",
        }
    (profile,) = mig.instances(cut)
    return _of_instances("nvidia.com/gpu", sku, profile, cut, config)


def _of_instances(resource: str, sku: Sku, profile: str, cut: Layout, config: PluginConfig) -> dict[str, str]:
    attributes = mig.PROFILES[sku.family][profile].attributes
    base = _base(resource, (sku.product, "MIG", profile), mig.instances(cut)[profile], config)
    return base | {f"{resource}.{part}": str(value) for part, value in attributes.items()}


def _base(resource: str, parts: tuple[str, ...], count: int, config: PluginConfig) -> dict[str, str]:
    suffix = ("SHARED",) if config.is_shared and not config.is_renamed else ()
    return {
        f"{resource}.product": "-".join((*parts, *suffix)),
        f"{resource}.count": str(count),
        f"{resource}.replicas": str(config.replicas),
        f"{resource}.sharing-strategy": str(config.strategy),
    }
