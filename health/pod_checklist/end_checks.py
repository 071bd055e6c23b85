"""Checks of how a container ended: which memory it lacked, and the CUDA error in its last words."""

from typing import Any

from health.pod_checklist.cuda_errors import cuda_error_in
from health.pod_checklist.facts import PodCheckFacts
from health.pod_checklist.out_of_memory import MemoryHolder, shortage_of
from health.pod_checklist.replies import Reply, no, unknown_reply, yes
from health.stack.causes import Cause
from health.stack.causes.entries import table

OOM_KILLED = "OOMKilled"
EVICTED = "Evicted"
OF_GPU_MEMORY = frozenset({"cuda_out_of_memory", "vgpu_memory_limit", "vgpu_count_wrong"})
OF_HOST_MEMORY = frozenset({"host_memory", "host_memory_worker", "host_memory_short", "shared_memory"})
NOT_FOR_MEMORY = frozenset({"evicted_disk", "evicted_pod_storage", "evicted_pids"})
FALLBACK = "Set terminationMessagePolicy: FallbackToLogsOnError, so that the last log lines are reported."
HELD_BY: dict[MemoryHolder, tuple[str, str]] = {
    MemoryHolder.OTHERS: (
        "Other processes held {held} of {total} GiB.",
        "Check the other pods of the GPU. Without any, look for a process that was left behind on the node.",
    ),
    MemoryHolder.FRAGMENTS: (
        "PyTorch held {held} of {total} GiB in pieces that were too small.",
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    MemoryHolder.OVERHEAD: (
        "The driver context and libraries of the program held {held} of {total} GiB.",
        "Start fewer processes per GPU, or leave them more memory.",
    ),
    MemoryHolder.PROGRAM: (
        "The program itself held {held} of {total} GiB.",
        "Reduce the batch or the model, or use a larger GPU or MIG slice.",
    ),
    MemoryHolder.UNKNOWN: (
        "The message does not name the holder of the memory.",
        "Check whether other pods have the GPU.",
    ),
}


def check_memory(facts: PodCheckFacts) -> Reply:
    ended, pod = facts.ended, facts.pod
    causes = [cause for cause in (facts.cause, facts.ended_cause) if cause is not None]
    if pod.status == EVICTED:
        return _evicted(pod.waiting_reason or "no reason reported", causes)
    if ended.get("reason") == OOM_KILLED or OOM_KILLED in pod.waiting_reason:
        return _host_memory(facts, ended)
    gpu_memory = next((cause for cause in causes if cause.key in OF_GPU_MEMORY), None)
    if gpu_memory is not None:
        return _gpu_memory(facts, gpu_memory)
    host_memory = next((cause for cause in causes if cause.key in OF_HOST_MEMORY), None)
    if host_memory is not None:
        return no(host_memory.sentence, *host_memory.steps, at=facts.ended_at)
    return _nothing_found(facts, "lack of memory")


def check_cuda_error(facts: PodCheckFacts) -> Reply:
    found = cuda_error_in(facts.words)
    if found is None:
        return _nothing_found(facts, "a CUDA error")
    # An entry of one library explains the same cause in that library's words.
    named = next(rule.entry for rule in table("tenants.program") if rule.entry.key == found.cause)
    causes = (facts.cause, facts.ended_cause)
    cause = next((each for each in causes if each is not None and each.key == found.cause), None)
    summary, steps = (cause.sentence, cause.steps) if cause else (f"{named.title}. {named.summary}", named.steps)
    sentence = f"CUDA error {found.number} ({found.name}). {summary} Who acts first: {found.who}."
    return no(sentence, *steps, at=facts.ended_at)


def _host_memory(facts: PodCheckFacts, ended: dict[str, Any] | Any) -> Reply:
    container = ended.get("container") or facts.pod.stuck_container or "A container"
    limit = ended.get("memory_limit_bytes")
    allowed = f" of {limit / 2**30:.4g} GiB" if limit else ""
    return no(
        f"{container} was killed because it exceeded its memory limit{allowed}. This is host memory, not GPU memory.",
        "Raise the memory limit of the container. Data loaders and files in /dev/shm count.",
        at=facts.ended_at,
    )


def _evicted(reported: str, causes: list[Cause]) -> Reply:
    sentence = f"The kubelet evicted the pod: {reported.rstrip('. ')}."
    if any(cause.key in NOT_FOR_MEMORY for cause in causes):
        return yes(f"{sentence} It was not for memory.")
    return no(
        sentence,
        "Compare the node's memory with the requests of its pods. This is host memory, not GPU memory.",
    )


def _gpu_memory(facts: PodCheckFacts, cause: Cause) -> Reply:
    shortage = shortage_of(facts.words)
    sentence, step = HELD_BY[shortage.holder]
    held = sentence.format(held=f"{shortage.held_mib / 1024:.1f}", total=f"{shortage.total_mib / 1024:.1f}")
    return no(f"{cause.title}. {held} Kubernetes did not kill the program.", step, *cause.steps, at=facts.ended_at)


def _nothing_found(facts: PodCheckFacts, what: str) -> Reply:
    """Returns the reply for a pod whose words name nothing. A program may hide the error in its log."""
    pod = facts.pod
    if not facts.ended and not pod.restarts and pod.phase != "Failed":
        return yes("No container has failed. Errors that the program itself handles are not visible.")
    if not facts.words:
        return unknown_reply("A container failed without a termination message. Its log is not checked.", FALLBACK)
    return unknown_reply(f"Its last message does not name {what}: “{facts.words[:200]}”", at=facts.ended_at)
