"""What is left to say of a pod that is not ready when nothing more particular is known: its own last line. Pure."""

from gpu.operands import DRIVER
from health.stack.causes.base import Cause, CauseRule, PodSigns, Signs, Weight, words
from kube.log_lines import LineWeight, telling, weight

CRASHES = frozenset({"CrashLoopBackOff", "Error", "ContainerCannotRun", "RunContainerError", "StartError"})

# What a container ends with that never ran: the runtime's words are its termination message, and there is no log.
NEVER_RAN = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError")

OF_THE_RUNTIME = (
    "It has no log, as it never ran: the line is the runtime's. Most often the image lacks the command, or the node a "
    "file or a device."
)
# Go's runtime, panic.go and signal_unix.go, and the C library's words.
BY_ITSELF = words(r"\bpanic: ", r"^sig(segv|bus|abrt|ill)\b", r"segmentation (fault|violation)", "^fatal error: ",
                  "^fatal: morestack")  # fmt: skip


def has_no_log(pod: PodSigns) -> bool:
    """Whether its container never ran, so that `kubectl logs` has nothing, with `--previous` or without."""
    said = (pod.reason, pod.status.removeprefix("Init:"))
    return any(word in NEVER_RAN for word in said) or any(f"ended with {word}" in pod.message for word in NEVER_RAN)


def describe(pod: PodSigns) -> str:
    """What helps where a container never ran and no word of the runtime was seen."""
    namespace, _, name = pod.name.partition("/")
    return f"It has no log, as it never ran. kubectl -n {namespace} describe pod {name} has the runtime's words."


def out_of_memory(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or not (pod.reason == "OOMKilled" or "OOMKilled" in pod.message):
        return None
    return Cause(
        "out_of_memory",
        Weight.WRONG,
        f"{pod.of_it} was killed: it used more memory than its limit.",
        signs.advice("Raise the operand's memory limit in the ClusterPolicy.", "Raise the limit in its DaemonSet."),
    )


def evicted(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or pod.reason not in ("Evicted", "NodeLost", "Preempting", "UnexpectedAdmissionError"):
        return None
    return Cause(
        "evicted",
        Weight.WRONG,
        f"The kubelet ended the pod: {pod.reason}.",
        "Look at the node's disk, memory and devices; its DaemonSet makes a new one.",
        pod.message,
    )


def crashed(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or pod.reason not in CRASHES:
        return None
    line = pod.telling
    said = line or pod.told_by_event
    namespace, _, name = pod.name.partition("/")
    log = f"kubectl -n {namespace} logs {name} -c {pod.container or 'CONTAINER'} --previous"
    times = f", {pod.restarts} restarts so far" if pod.restarts else ""
    if has_no_log(pod):
        return Cause("crashed", Weight.WRONG, f"{pod.of_it} cannot be started ({pod.reason}{times}).",
                     OF_THE_RUNTIME if said else describe(pod), said or pod.message)  # fmt: skip
    if not line:
        last, action = ("An Event says:" if said else "It left no word of why."), log
    elif BY_ITSELF.search(line):
        last = "It says:"
        action = (
            f"Its program fails by itself: take a newer release of it, or the one that ran before. All it says: {log}"
        )
    elif weight(line) <= LineWeight.PLAIN:
        last, action = "It names no error. Its last line:", f"What it says before that: {log}"
    else:
        last, action = "It says:", f"What it says around that: {log}"
    return Cause(
        "crashed",
        Weight.WRONG,
        f"{pod.of_it} keeps crashing ({pod.reason}{times}). {last}",
        action,
        said or pod.message,
    )


def ended(signs: Signs) -> Cause | None:
    """Any other reason that the cluster gives, in its own words."""
    pod = signs.pod
    if pod is None or not (pod.reason or pod.message):
        return None
    return Cause("stuck", Weight.WRONG, f"{pod.reason or 'It is stuck'}: {pod.message}".rstrip(": ") + ".")


def not_ready_yet(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or pod.phase != "Running":
        return None
    said = next((event.message for event in pod.events if event.reason == "Unhealthy"), "")
    said = said or telling(pod.log)
    if pod.is_overdue:
        action = "" if said else "kubectl describe of the pod shows what its probes answer."
        return Cause("never_ready", Weight.WRONG, "It runs and does not become ready.", action, said)
    action = "A driver compiles and loads for minutes." if signs.operand == DRIVER else ""
    return Cause("not_ready_yet", Weight.WAITING, "It runs and is not ready yet.", action, said)


def starting(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None:
        return None
    if pod.container:
        return _at_work(pod)
    phase = pod.phase or "in no phase that was seen"
    weight = Weight.WRONG if pod.is_overdue else Weight.WAITING
    return Cause("starting", weight, f"The pod is {phase} and not ready yet.")


def _at_work(pod: PodSigns) -> Cause:
    """One of its init containers runs, and nothing says that it should not."""
    said = telling(pod.log) if pod.is_overdue else "".join(pod.log[-1:])
    if pod.is_overdue:
        sentence = f"Its init container {pod.container} does not come to an end."
        return Cause("init_never_ends", Weight.WRONG, sentence, "Its log says what it waits for.", said)
    if pod.container == "k8s-driver-manager":
        sentence = "The driver manager is at work: it stops what uses the GPUs and unloads the old driver."
        return Cause("starting", Weight.WAITING, sentence, "", said)
    return Cause("starting", Weight.WAITING, f"Its init container {pod.container} is at work.", "", said)


BEFORE: tuple[CauseRule, ...] = (out_of_memory, evicted)
RULES: tuple[CauseRule, ...] = (crashed,)
LAST: tuple[CauseRule, ...] = (ended, not_ready_yet, starting)
