"""What is left to say of a pod that is not ready when nothing more particular is known: its own last line. Pure."""

from gpu.operands import DRIVER
from health.stack.causes.base import Cause, CauseRule, PodSigns, Signs, Weight
from kube.log_lines import telling

CRASHES = frozenset({"CrashLoopBackOff", "Error", "ContainerCannotRun", "RunContainerError", "StartError"})

# What a container ends with that never ran: the runtime's words are its termination message, and there is no log.
NEVER_RAN = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError")


def has_no_log(pod: PodSigns) -> bool:
    """Whether its container never ran, so that `kubectl logs` has nothing, with `--previous` or without."""
    said = (pod.reason, pod.status.removeprefix("Init:"))
    return any(word in NEVER_RAN for word in said) or any(f"ended with {word}" in pod.message for word in NEVER_RAN)


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
    said = pod.telling
    last = "It says:" if said else "It left no word of why."
    namespace, _, name = pod.name.partition("/")
    times = f", {pod.restarts} restarts so far" if pod.restarts else ""
    if not said and has_no_log(pod):
        action = f"It has no log, as it never ran. kubectl -n {namespace} describe pod {name} has the runtime's words."
        return Cause("crashed", Weight.WRONG, f"{pod.of_it} cannot be started ({pod.reason}{times}).", action,
                     pod.message)  # fmt: skip
    return Cause(
        "crashed",
        Weight.WRONG,
        f"{pod.of_it} keeps crashing ({pod.reason}{times}). {last}",
        "" if said else f"kubectl -n {namespace} logs {name} -c {pod.container or 'CONTAINER'} --previous",
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
