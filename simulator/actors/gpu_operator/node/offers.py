"""What a device plugin offers of a machine's GPUs, as extended resources (k8s-device-plugin internal/rm)."""

from simulator.actors import mig
from simulator.actors.mig import Layout
from simulator.actors.sharing import MigStrategy, PluginConfig

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"


def offered(cut: Layout, config: PluginConfig) -> dict[str, int]:
    """A layout that the strategy `single` does not accept offers nothing."""
    found = {GPU: _plain(cut, config)}
    if config.mig_strategy is MigStrategy.MIXED:
        found |= {MIG_PREFIX + profile: count for profile, count in sorted(mig.instances(cut).items())}
    if config.is_shared:
        shared = found.pop(GPU) * config.replicas
        found[SHARED if config.is_renamed else GPU] = shared
    return found


def _plain(cut: Layout, config: PluginConfig) -> int:
    """How many `nvidia.com/gpu` there are, before anybody shares them."""
    match config.mig_strategy:
        case MigStrategy.NONE:
            return len(cut)
        case MigStrategy.MIXED:
            return mig.whole_gpus(cut)
    if mig.whole_gpus(cut) == len(cut):
        return len(cut)
    return mig.instances(cut).total() if mig.is_single(cut) else 0
