"""Operands that do not come up, as the cluster shows it: states, events, and what the containers write."""

from simulator.actors import apps
from simulator.actors.gpu_operator.keys import COMPONENT, DRIVER_COMPONENT
from simulator.actors.gpu_operator.node.last_words import CRASHES, NO_RUNTIME, PANIC, VALIDATIONS
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.pulling import pull
from simulator.actors.kubelet.sandbox import Container
from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.kubelet.ward import Ward
from simulator.actors.objects import Obj, labels
from simulator.faults import BrokenOperand
from simulator.faults.broken_operand import DRIVER, Ailment

SANDBOX_AGAIN_S = 12
NEEDS_RUNTIME = (apps.DEVICE_PLUGIN, apps.MPS, apps.GFD, apps.DCGM_EXPORTER, apps.DCGM, apps.MIG, apps.VALIDATOR)


def operand_of(pod: Obj) -> str:
    """`driver`, or the label `app`; empty for pods that are nobody's operand."""
    if labels(pod).get(COMPONENT) == DRIVER_COMPONENT:
        return DRIVER
    app = labels(pod).get("app", "")
    return app if app in apps.GATES else ""


def tag_of(pod: Obj) -> str:
    image = str(pod["spec"]["containers"][0]["image"])
    tag = image.rpartition(":")[2]
    return tag.partition("-")[0] if operand_of(pod) == DRIVER else tag


def strikes(fault: BrokenOperand, pod: Obj, host: Host) -> bool:
    app = operand_of(pod)
    if not app or (fault.how is Ailment.RUNTIME and app not in NEEDS_RUNTIME):
        return False
    return fault.strikes(app=app, node=host.name, kernel=host.kernel, version=tag_of(pod))


def ailment(ward: Ward, how: Ailment) -> BrokenOperand | None:
    pod = ward.pod
    active = ward.faults.active(BrokenOperand)
    return next((fault for fault in active if pod and fault.how is how and strikes(fault, pod, ward.host)), None)


def has(ward: Ward, how: Ailment) -> bool:
    return ailment(ward, how) is not None


def get_sandbox(ward: Ward) -> Script:
    while has(ward, Ailment.RUNTIME):
        ward.report()
        ward.warn("FailedCreatePodSandBox", NO_RUNTIME)
        yield Wait(SANDBOX_AGAIN_S)


def get_images(ward: Ward) -> Script:
    for container in ward.box.containers:
        yield from pull(ward, container, lambda: has(ward, Ailment.IMAGE))


def fail_validation(ward: Ward, container: Container) -> Script:
    def is_failing() -> bool:
        fault = ailment(ward, Ailment.VALIDATION)
        return fault is not None and fault.container == container.name

    if is_failing():
        yield Wait(ward.durations.crash_after)
        yield from ward.crash_loop(container, is_failing, words=VALIDATIONS.get(container.name, ()))


def die(ward: Ward) -> Script:
    """The operand's own container."""
    fault, pod = ailment(ward, Ailment.CRASH), ward.pod
    if fault is None or pod is None:
        return
    usual = CRASHES.get(operand_of(pod), PANIC)
    words = (*usual[:-1], fault.says) if fault.says else usual
    yield Wait(ward.durations.crash_after)
    yield from ward.crash_loop(ward.box.containers[0], lambda: has(ward, Ailment.CRASH), words=words)
