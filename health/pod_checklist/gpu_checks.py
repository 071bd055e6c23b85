"""Checks of the GPUs that a pod has: other pods on them, and Xids and memory errors in its time."""

from collections.abc import Sequence

from health.pod_checklist.facts import GpuFault, PodCheckFacts, PodGpu
from health.pod_checklist.replies import NO_NODE, Reply, no, unknown_reply, yes
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import count

NOT_IDENTIFIED = "Nothing reports which GPUs the pod has."
COVERED = 0.9  # share of the pod's time with telemetry; with less, nothing passes
DRAIN = "Read the findings of the GPU. They say whether to restart the program or to drain the node."
EXPORT_ECC = "Add DCGM_FI_DEV_ECC_DBE_VOL_TOTAL to the metrics of the DCGM exporter."


def check_neighbours(facts: PodCheckFacts) -> Reply:
    if facts.is_over:
        return unknown_reply("The pod has ended. Pods that shared its GPU are not checked.")
    with_others = [gpu for gpu in facts.gpus if gpu.neighbours and not gpu.profile]
    if with_others:
        return no(
            " ".join(_neighbours_of(gpu) for gpu in with_others) + " They share its memory without a limit.",
            "Use a MIG slice or a whole GPU if the program needs its memory for itself.",
            at=facts.sampled_at,
        )
    if facts.is_shared and not facts.gpus:
        others = f" Pods with shares of the node's GPUs: {names(facts.sharers)}." if facts.sharers else ""
        return unknown_reply(f"The pod has a share of a GPU. {NOT_IDENTIFIED}{others}")
    if any(gpu.profile for gpu in facts.gpus):
        return yes("The pod has MIG slices, whose memory no other pod uses.")
    if facts.gpus:
        return yes(f"No other pod has {names([gpu.name for gpu in facts.gpus])}.{_memory(facts.gpus)}")
    if not facts.pod.node_name:
        return unknown_reply(NO_NODE)
    if facts.pod.gpus and not facts.is_shared:
        return yes(f"The pod requests whole GPUs, and the node does not share them. {NOT_IDENTIFIED}")
    return unknown_reply(NOT_IDENTIFIED)


def check_xids(facts: PodCheckFacts) -> Reply:
    if (gap := _reply_without_gpus(facts)) is not None:
        return gap
    faults = [(gpu, fault) for gpu in facts.gpus for fault in gpu.faults if fault.is_xid]
    if faults:
        return _fault(faults)
    seen = [gpu for gpu in facts.gpus if gpu.xids.number]
    if seen:
        parts = [f"{gpu.name} had at least {count(gpu.xids.number or 0, 'Xid')} in the pod's time." for gpu in seen]
        last = max((gpu.xids.last_at for gpu in seen if gpu.xids.last_at), default=None)
        return no(" ".join(parts), DRAIN, at=last)
    if any(gpu.xids.number is None for gpu in facts.gpus):
        return unknown_reply("The Xids of its GPUs are not exported, or no hour of the pod is recorded yet.")
    covered = min(gpu.xids.covered for gpu in facts.gpus)
    if covered < COVERED:
        return unknown_reply(f"No Xid is recorded, but telemetry covers only {covered:.0%} of the pod's time.")
    return yes(f"No Xid is recorded since {to_the_minute(facts.since)}.", at=facts.sampled_at)


def check_memory_errors(facts: PodCheckFacts) -> Reply:
    if (gap := _reply_without_gpus(facts)) is not None:
        return gap
    faults = [(gpu, fault) for gpu in facts.gpus for fault in gpu.faults if fault.is_memory_error]
    if faults:
        return _fault(faults)
    if any(gpu.ecc_uncorrected is None for gpu in facts.gpus):
        return unknown_reply(
            "The ECC counters of its GPUs are not exported. No finding names a memory error.", EXPORT_ECC
        )
    counted = [gpu for gpu in facts.gpus if gpu.ecc_uncorrected]
    if counted:
        parts = names([f"{gpu.name}: {gpu.ecc_uncorrected:.0f}" for gpu in counted])
        return unknown_reply(
            f"Uncorrected errors since the driver was loaded: {parts}. It is unknown whether the pod had the GPU then.",
            DRAIN,
            at=facts.sampled_at,
        )
    return yes("No uncorrected ECC error since the driver was loaded.", at=facts.sampled_at)


def _reply_without_gpus(facts: PodCheckFacts) -> Reply | None:
    """Returns why its GPUs are unknown. None: they are known."""
    if not facts.pod.node_name:
        return unknown_reply(NO_NODE)
    if not facts.gpus:
        return unknown_reply(f"{NOT_IDENTIFIED} Read the findings of the node.")
    return unknown_reply(facts.telemetry_gap) if facts.telemetry_gap else None


def _fault(faults: Sequence[tuple[PodGpu, GpuFault]]) -> Reply:
    newest = max(fault.at for _, fault in faults)
    return no(" ".join(f"{fault.title}." for _, fault in faults[:3]), DRAIN, at=newest)


def _neighbours_of(gpu: PodGpu) -> str:
    return f"{gpu.name} is shared with {names(gpu.neighbours)}.{_memory([gpu])}"


def _memory(gpus: Sequence[PodGpu]) -> str:
    known = [f"{gpu.name} {gpu.memory_in_use}" for gpu in gpus if gpu.memory_in_use]
    return f" Memory in use: {names(known)}." if known else ""
