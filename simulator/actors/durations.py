"""How long things take on a node, in seconds of cluster time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Durations:
    retry: float = 1
    container_start: float = 1
    image_pull: float = 2
    tenant_ready_after: float = 8
    tenant_stop: float = 6
    operand_stop: float = 3
    driver_stop: float = 4
    module_unload: float = 4
    driver_install: float = 40
    driver_restart: float = 6  # the modules are loaded already: the fast path
    validation_step: float = 2
    mig_apply: float = 15
    reboot: float = 120
    gfd_labels: float = 2
    crash_after: float = 4
    crash_backoff: float = 10
    # KubeletConfiguration crashLoopBackOff.maxContainerRestartPeriod; the default of 300 s is for patient people.
    crash_backoff_max: float = 30
    slices_wiped: float = 30  # kubelet DRA manager: after the plugin has deregistered
    capacity_forgotten: float = 300  # kubelet device manager: endpointStopGracePeriod
