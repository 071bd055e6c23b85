"""The rules that nothing planted in a day is about, each with why not. What is not here is planted."""

NO_PLANS = "a day has no plans: those and what they hold are tried by the flows and by `bin/bench crash`"
OFF = "no exporter has it by default, and those of a day's fleet have what they have by default"
OF_OURS = "what a worker cannot write in time takes time of a clock, and a day has none that runs by itself"
NO_DRA = "a day's fleet has a device plugin: no claims, slices or ComputeDomains"
OPERATOR_IDLE = "every NVIDIADriver and ClusterPolicy of a day is ready: its operator is not played"

UNPLANTED = {
    "case-waits": "nobody opens a case in a day",
    "cluster-policy-stuck": OPERATOR_IDLE,
    "driver-object-stuck": OPERATOR_IDLE,
    "drivers-conflict": OPERATOR_IDLE,
    "external-rollout-failing": NO_PLANS,
    "gate-overridden": NO_PLANS,
    "gpu-called-unhealthy": "AMD's exporter alone says it, and a day's fleet is NVIDIA's",
    "gpu-fabric": OFF,
    "gpu-recovery-action": OFF,
    "gpus-never-offered": "every node of a day has offered its GPUs before the day begins",
    "hold-left-behind": NO_PLANS,
    "observer-behind": OF_OURS,
    "exclusion-left-behind": NO_PLANS,
    "claims-waiting": NO_DRA,
    "compute-domain-down": NO_DRA,
    "cordon-left-behind": NO_PLANS,
    "cordon-stale": "nobody but the operator and people cordon in a day",
    "notification-undelivered": "a day has no receivers: `bin/bench notify` tries them",
    "quarantine-removed": "nobody quarantines a node in a day",
    "new-node-not-held": "no pool of a day has a gate of new nodes",
    "operation-stalled": "nobody starts an operation in a day",
    "operation-waits": "nobody starts an operation in a day",
    "plan-cordon-removed": NO_PLANS,
    "device-unhealthy": "what is called unhealthy in a day is taken off what can be allocated",
    "plan-halted": NO_PLANS,
    "plan-still": NO_PLANS,
    "plan-unlooked": NO_PLANS,
    "pods-pending-long": "every pod of a day has a node",
    "pods-not-starting": "every pod of a day starts: what fails there fails once it runs",
    "xid-of-unknown-gpu": "an exporter of a day's fleet names the GPU of each series",
}
