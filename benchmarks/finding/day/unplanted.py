"""The rules that nothing planted in a day is about, each with why not. What is not here is planted."""

NO_PLANS = "a day has no plans: those and what they hold are tried by the flows and by `bin/bench crash`"
OF_OURS = "it is about Quarterdeck's own processes, and a day has none: one process does what they would"

UNPLANTED = {
    "cluster-unwatched": OF_OURS,
    "followed-failing": NO_PLANS,
    "gate-passed-over": NO_PLANS,
    "gpu-called-unhealthy": "AMD's exporter alone says it, and a day's fleet is NVIDIA's",
    "gpu-memory-nearly-full": "a note, which tells nobody: inference has its memory full from the start, in every day",
    "gpu-power-near-limit": "a note, which tells nobody, and no exporter of a day says what the limit is",
    "hold-left-behind": NO_PLANS,
    "inference-on-time-slices": "a note, which tells nobody, of a fleet that shares its GPUs: that of a day does not",
    "mig-change-stuck": "no GPU of a day's fleet is cut",
    "observer-behind": OF_OURS,
    "opt-out-left-behind": NO_PLANS,
    "plan-halted": NO_PLANS,
    "plan-still": NO_PLANS,
    "plan-unlooked": NO_PLANS,
    "pods-rejected": "no namespace of a day has a quota, and nobody starts new work there",
}
