"""Which GPUs of a machine are gone, as faults say it."""

from simulator.actors.kubelet.host import Host
from simulator.faults import Board, FallenGpu, LostGpus, Xid


def missing_since_boot(faults: Board, host: Host) -> range:
    """They were not there when the machine started: the first so many."""
    lost = (each.gpus for each in faults.active(LostGpus) if each.node == host.name and each.is_since_boot)
    return range(min(host.gpus, max(lost, default=0)))


def fallen(faults: Board, host: Host) -> frozenset[int]:
    """They fell off the bus while everything ran, or the device plugin withdrew them."""
    lost = (each.gpus for each in faults.active(LostGpus) if each.node == host.name and not each.is_since_boot)
    first = len(missing_since_boot(faults, host))
    withdrawn = (each for each in faults.active(Xid) if each.is_withdrawn)
    off = [each for each in (*faults.active(FallenGpu), *withdrawn) if each.node == host.name]
    indexes = {gpu for gpu in range(host.gpus) if any(each.has(gpu) for each in off)}
    return frozenset(indexes.union(range(first, min(host.gpus, first + max(lost, default=0)))))
