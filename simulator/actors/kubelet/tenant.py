"""The life of a pod that is nobody's operand: pull, start, become ready; or finish, where it is meant to."""

from simulator.actors.kubelet.pulling import pull
from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.kubelet.ward import Ward
from simulator.actors.objects import Obj, annotations, name
from simulator.faults import BadDriver, FailingWorkload
from simulator.faults.bad_driver import Harm
from simulator.quantities import wants_gpu

RUNTIME_ANNOTATION = "hardware.example.com/runtime-seconds"
JOB_RUNTIME_S = 60.0
CUDA_FAILED = 134  # abort() after a CUDA error
CUDA_WORDS = ("RuntimeError: CUDA error: an illegal memory access was encountered",)


def is_struck(ward: Ward, pod: Obj) -> bool:
    """Does the loaded driver break the tenants' GPU work on this node, or the node itself?"""
    return is_broken_by_driver(ward, pod) or failing(ward, pod) is not None


def is_broken_by_driver(ward: Ward, pod: Obj) -> bool:
    return wants_gpu(pod) and any(
        fault.how is Harm.WORKLOADS
        and fault.strikes(driver=ward.host.driver, kernel=ward.host.kernel, node=ward.host.name)
        for fault in ward.faults.active(BadDriver)
    )


def failing(ward: Ward, pod: Obj) -> FailingWorkload | None:
    """The fault of this node that the pod meets, by its name and its GPUs."""
    found = [fault for fault in ward.faults.active(FailingWorkload) if fault.node == ward.host.name]
    if not found or not wants_gpu(pod):
        return None
    gpus = ward.gpus_of(pod)
    mine = (fault for fault in found if name(pod).startswith(fault.pods) and any(fault.has(gpu) for gpu in gpus))
    return next(mine, None)


def life(ward: Ward) -> Script:
    pod = ward.pod
    if pod is None:
        return
    ward.begin()
    if asks_registry(pod):
        ward.report()
    for container in ward.box.containers:
        yield from pull(ward, container)
    yield Wait(ward.durations.image_pull)
    for container in ward.box.inits:
        yield from ward.run_init(container, ward.durations.container_start)
    if does_nothing(pod):
        end_at_once(ward)
        return
    ward.start_all()
    yield Wait(ward.durations.tenant_ready_after)
    if is_struck(ward, pod):
        yield from crash(ward)
        if ward.box.phase == "Failed":
            return
    ward.become_ready()
    if pod["spec"].get("restartPolicy") in ("Never", "OnFailure"):
        yield from finish(ward, pod)


def asks_registry(pod: Obj) -> bool:
    return bool(pod["spec"]["containers"][0].get("imagePullPolicy") == "Always")


def does_nothing(pod: Obj) -> bool:
    """Whether its first container is told to run a program that only ends."""
    return (pod["spec"]["containers"][0].get("command") or [""])[0] in ("true", "/bin/true", "/usr/bin/true")


def end_at_once(ward: Ward) -> None:
    for container in ward.box.containers:
        ward.start(container)
        container.end(ward.now(), 0, "Completed")
    ward.box.phase = "Succeeded"
    ward.report()


def crash(ward: Ward) -> Script:
    pod = ward.pod
    if pod is None:
        return
    first, fault = ward.box.containers[0], failing(ward, pod)
    if fault is None:
        yield from ward.crash_loop(first, lambda: is_struck(ward, pod), exit_code=CUDA_FAILED, words=CUDA_WORDS)
    elif pod["spec"].get("restartPolicy") == "Never":
        yield from fail(ward, fault)
        return
    else:
        words, code = (fault.says,), fault.exit_code
        yield from ward.crash_loop(first, lambda: is_struck(ward, pod), exit_code=code, words=words)
    ward.become_ready()


def fail(ward: Ward, fault: FailingWorkload) -> Script:
    """For good: whoever made it makes another one."""
    ward.become_ready()
    yield Wait(fault.after_s)
    for container in ward.box.containers:
        container.end(ward.now(), fault.exit_code, "Error")
        ward.world.journal.note(ward.box.uid, container.name, (fault.says,))
    ward.box.phase = "Failed"
    ward.report()


def finish(ward: Ward, pod: Obj) -> Script:
    yield Wait(float(annotations(pod).get(RUNTIME_ANNOTATION, JOB_RUNTIME_S)))
    for container in ward.box.containers:
        container.end(ward.now(), 0, "Completed")
    ward.box.phase = "Succeeded"
    ward.report()
