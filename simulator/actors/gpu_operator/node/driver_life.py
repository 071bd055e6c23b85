"""A driver pod: k8s-driver-manager clears the node of the old modules, nvidia-driver-ctr loads the new ones."""

from collections.abc import Callable
from contextlib import suppress

from simulator.actors.apps import GATES
from simulator.actors.dra.holding import holds_devices
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.acts import Acts
from simulator.actors.gpu_operator.node import ailing, last_words
from simulator.actors.gpu_operator.node.pausing import to_pause, to_resume
from simulator.actors.gpu_operator.template import digest_of, version_of
from simulator.actors.kubelet.script import Script, Until, Wait
from simulator.actors.kubelet.ward import Ward
from simulator.actors.objects import Obj, annotations, is_finished, is_terminating, name, namespace
from simulator.faults import BadDriver, HeldDriver, UncordoningManager
from simulator.faults.bad_driver import Harm
from simulator.faults.broken_operand import Ailment
from simulator.kinds import NODE, POD
from simulator.quantities import wants_gpu
from simulator.refusals import Refused

EVICT_AGAIN_S = 5


def life(ward: Ward) -> Script:
    pod = ward.pod
    if pod is None:
        return
    version, digest = version_of(pod["spec"]), digest_of(pod["spec"])
    ward.begin()
    yield Wait(ward.durations.container_start)
    is_fast = ward.host.driver == version and ward.host.digest == digest != ""
    yield from _make_room(ward, is_fast=is_fast)
    yield from ailing.get_images(ward)
    ward.start_all()
    yield from _fail(ward, version)
    yield from ailing.die(ward)
    yield Wait(ward.durations.driver_restart if is_fast else ward.durations.driver_install)
    ward.host.load(version, digest)
    ward.become_ready()


def _fail(ward: Ward, version: str) -> Script:
    first, kernel = ward.box.containers[0], ward.host.kernel
    if ailing.has(ward, Ailment.HEADERS):
        words = last_words.driver_words(last_words.NO_HEADERS, version=version, kernel=kernel)
        yield Wait(ward.durations.crash_after)
        yield from ward.crash_loop(first, lambda: ailing.has(ward, Ailment.HEADERS), words=words)
    if _crashes(ward, version):
        words = last_words.driver_words(last_words.NO_LOAD, version=version, kernel=kernel)
        yield Wait(ward.durations.crash_after)
        yield from ward.crash_loop(first, lambda: _crashes(ward, version), words=words)


def _crashes(ward: Ward, version: str) -> bool:
    return any(
        fault.how is Harm.CRASH and fault.strikes(driver=version, kernel=ward.host.kernel, node=ward.host.name)
        for fault in ward.faults.active(BadDriver)
    )


def _make_room(ward: Ward, *, is_fast: bool) -> Script:
    """The init container. Operands always pause; modules are unloaded unless the same ones are wanted again."""
    init = ward.box.inits[0]
    ward.start(init)
    ward.report()
    yield from ward.insist(lambda: _label(ward, to_pause))
    yield Until(lambda: not any(ward.neighbours(app) for app in GATES))
    if not is_fast and ward.host.driver:
        yield from _unload(ward)
    yield from ward.insist(lambda: _label(ward, to_resume))
    if ailing.has(ward, Ailment.NOUVEAU):
        yield Wait(ward.durations.crash_after)
        yield from ward.crash_loop(init, lambda: ailing.has(ward, Ailment.NOUVEAU), words=last_words.NOUVEAU)
    init.end(ward.now(), 0, "Completed")


def _unload(ward: Ward) -> Script:
    if not _is_auto(ward):
        yield from _evict_tenants(ward)
    yield Wait(ward.durations.module_unload)
    if _is_in_use(ward):
        # cleanupOnFailure: the operands come back while the init container crashes and tries again.
        yield from ward.insist(lambda: _label(ward, to_resume))
        yield from ward.crash_loop(ward.box.inits[0], lambda: _is_in_use(ward), words=last_words.IN_USE)
        yield from ward.insist(lambda: _label(ward, to_pause))
        yield Until(lambda: not any(ward.neighbours(app) for app in GATES))
    ward.host.unload()
    if not _is_auto(ward) or _uncordons_anyway(ward):
        yield from ward.insist(lambda: _uncordon(ward))  # also where an admin had cordoned


def _is_in_use(ward: Ward) -> bool:
    return bool(_holders(ward)) or any(fault.node == ward.host.name for fault in ward.faults.active(HeldDriver))


def _uncordons_anyway(ward: Ward) -> bool:
    return any(fault.node == ward.host.name for fault in ward.faults.active(UncordoningManager))


def _evict_tenants(ward: Ward) -> Script:
    """Only where no upgrade controller has done it: the auto-upgrade annotation is absent.

    What is refused, by a budget or for a moment, is asked again.
    """
    yield from ward.insist(lambda: _cordon(ward))
    while holders := _holders(ward):
        for pod in holders:
            _evict(ward, pod)
        yield Wait(EVICT_AGAIN_S)


def _cordon(ward: Ward) -> None:
    if ward.node is not None:
        Acts(ward.world).cordon(ward.node)


def _uncordon(ward: Ward) -> None:
    if ward.node is not None:
        Acts(ward.world).uncordon(ward.node)


def _evict(ward: Ward, pod: Obj) -> None:
    if is_terminating(pod):
        return
    with suppress(Refused, OSError):
        ward.world.cluster.evict(name(pod), namespace(pod))


def _holders(ward: Ward) -> list[Obj]:
    pods = ward.world[POD].by("node", ward.host.name)
    return [pod for pod in pods if not is_finished(pod) and (wants_gpu(pod) or holds_devices(ward.world, pod))]


def _is_auto(ward: Ward) -> bool:
    return ward.node is not None and annotations(ward.node).get(keys.ENABLED) == "true"


def _label(ward: Ward, change: Callable[[Obj], dict[str, str]]) -> None:
    if ward.node is not None and (wanted := change(ward.node)):
        ward.world.patch(NODE, ward.node, {"metadata": {"labels": wanted}})
