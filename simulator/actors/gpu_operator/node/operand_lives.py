"""Operands wait for each other on their node: driver, then toolkit, then the rest; the validator looks at them all."""

from collections.abc import Callable

from simulator.actors import apps
from simulator.actors.gpu_operator.keys import COMPONENT, DRIVER_COMPONENT
from simulator.actors.gpu_operator.node import ailing, driver_life
from simulator.actors.gpu_operator.node.last_words import VALIDATIONS
from simulator.actors.kubelet.sandbox import Container
from simulator.actors.kubelet.script import Script, Until, Wait
from simulator.actors.kubelet.ward import Life, Ward
from simulator.actors.objects import Obj, is_true, labels, status
from simulator.faults import BadDriver
from simulator.faults.bad_driver import Harm
from simulator.kinds import POD
from simulator.quantities import amounts, is_gpu


def life(ward: Ward) -> Script:
    """Each init container waits for one thing; then the operand itself starts."""
    yield from ailing.get_sandbox(ward)
    ward.begin()
    yield Wait(ward.durations.container_start)
    for container in ward.box.inits:
        ward.start(container)
        ward.report()
        yield Until(_gate(ward, container))
        yield from _cuda_fails(ward, container)
        yield from ailing.fail_validation(ward, container)
        yield Wait(ward.durations.validation_step)
        container.end(ward.now(), 0, "Completed")
    yield from ailing.get_images(ward)
    ward.start_all()
    yield Wait(ward.durations.container_start)
    yield from ailing.die(ward)
    ward.become_ready()


def _gate(ward: Ward, container: Container) -> Callable[[], bool]:
    gates = {
        "driver-validation": lambda: is_driver_ready(ward),
        "toolkit-validation": lambda: is_driver_ready(ward) and ward.is_app_ready(apps.TOOLKIT),
        "plugin-validation": lambda: _has_gpus(ward),
    }
    return gates.get(container.name, lambda: True)


def is_driver_ready(ward: Ward) -> bool:
    if ward.host.has_own_driver:
        return True
    pods = ward.world[POD].by("node", ward.host.name)
    drivers = (pod for pod in pods if labels(pod).get(COMPONENT) == DRIVER_COMPONENT)
    return any(is_true(pod, "Ready") for pod in drivers)


def _has_gpus(ward: Ward) -> bool:
    """Whole ones, shared ones or slices of them; where DRA offers them the operator asks for none."""
    if ward.node is None:
        return False
    offers = amounts(status(ward.node).get("allocatable"))
    has_no_plugin = labels(ward.node).get(apps.GATES[apps.DEVICE_PLUGIN]) == "false"
    return has_no_plugin or any(is_gpu(resource) and count > 0 for resource, count in offers.items())


def _cuda_fails(ward: Ward, container: Container) -> Script:
    if container.name == "cuda-validation" and _is_struck(ward):
        yield Wait(ward.durations.crash_after)
        yield from ward.crash_loop(container, lambda: _is_struck(ward), words=VALIDATIONS[container.name])


def _is_struck(ward: Ward) -> bool:
    return any(
        fault.how is Harm.VALIDATOR
        and fault.strikes(driver=ward.host.driver, kernel=ward.host.kernel, node=ward.host.name)
        for fault in ward.faults.active(BadDriver)
    )


def life_of(pod: Obj) -> Life | None:
    """None: not the operator's pod."""
    if labels(pod).get(COMPONENT) == DRIVER_COMPONENT:
        return driver_life.life
    return life if labels(pod).get("app") in apps.GATES else None
