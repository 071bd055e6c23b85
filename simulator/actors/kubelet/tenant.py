"""The life of a pod that is nobody's operand: pull, start, become ready; or finish, where it is meant to."""

from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.kubelet.ward import Ward
from simulator.actors.objects import Obj, annotations
from simulator.faults import BadDriver
from simulator.faults.bad_driver import Harm
from simulator.quantities import wants_gpu

RUNTIME_ANNOTATION = "hardware.example.com/runtime-seconds"
JOB_RUNTIME_S = 60.0
CUDA_FAILED = 134  # abort() after a CUDA error
CUDA_WORDS = ("RuntimeError: CUDA error: an illegal memory access was encountered",)


def is_struck(ward: Ward, pod: Obj) -> bool:
    """Does the loaded driver break the tenants' GPU work on this node?"""
    if not wants_gpu(pod):
        return False
    return any(
        fault.how is Harm.WORKLOADS and fault.strikes(driver=ward.host.driver, kernel=ward.host.kernel)
        for fault in ward.faults.active(BadDriver)
    )


def life(ward: Ward) -> Script:
    pod = ward.pod
    if pod is None:
        return
    ward.begin()
    yield Wait(ward.durations.image_pull)
    for container in ward.box.inits:
        yield from ward.run_init(container, ward.durations.container_start)
    ward.start_all()
    yield Wait(ward.durations.tenant_ready_after)
    if is_struck(ward, pod):
        yield from crash(ward)
    ward.become_ready()
    if pod["spec"].get("restartPolicy") in ("Never", "OnFailure"):
        yield from finish(ward, pod)


def crash(ward: Ward) -> Script:
    pod = ward.pod
    if pod is None:
        return
    first = ward.box.containers[0]
    yield from ward.crash_loop(first, lambda: is_struck(ward, pod), exit_code=CUDA_FAILED, words=CUDA_WORDS)
    ward.become_ready()


def finish(ward: Ward, pod: Obj) -> Script:
    yield Wait(float(annotations(pod).get(RUNTIME_ANNOTATION, JOB_RUNTIME_S)))
    for container in ward.box.containers:
        container.end(ward.now(), 0, "Completed")
    ward.box.phase = "Succeeded"
    ward.report()
