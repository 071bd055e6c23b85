"""Images as the kubelet gets them, and as it does not (k8s.io/kubernetes pkg/kubelet/images; containerd's words)."""

from collections.abc import Callable
from itertools import count

from simulator.actors.kubelet.sandbox import Container
from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.kubelet.ward import Ward
from simulator.actors.objects import Obj, namespace
from simulator.faults import BadImage
from simulator.faults.bad_image import Answer
from simulator.kinds import SECRET
from simulator.refusals import Refused


def pull(ward: Ward, container: Container, is_missing: Callable[[], bool] = lambda: False) -> Script:
    """Ask the registry, and again later, until it has the image."""
    wait_s = ward.durations.crash_backoff
    for _ in count():
        words = not_found(container.image) if is_missing() else _refusal(ward, container.image)
        if not words:
            break
        named = f'image "{container.image}"'
        _wait_for(ward, container, "ErrImagePull", words)
        ward.warn("Failed", f"Failed to pull {named}: {words}")
        ward.warn("Failed", "Error: ErrImagePull")
        yield Wait(ward.durations.image_pull)
        _wait_for(ward, container, "ImagePullBackOff", f"Back-off pulling {named}: ErrImagePull: {words}")
        ward.tell("BackOff", f"Back-off pulling {named}")
        ward.warn("Failed", "Error: ImagePullBackOff")
        yield Wait(wait_s)
        wait_s = min(wait_s * 2, ward.durations.crash_backoff_max)
    container.reason, container.message = "PodInitializing", ""


def not_found(image: str) -> str:
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": failed to resolve reference '
        f'"{image}": {image}: not found'
    )


def not_allowed(image: str) -> str:
    return (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
        "failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized"
    )


def no_answer(image: str) -> str:
    host = image.partition("/")[0]
    return (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": failed to do request: '
        f'Head "https://{host}/v2/": dial tcp 203.0.113.7:443: i/o timeout'
    )


def _refusal(ward: Ward, image: str) -> str:
    """What the registry says no with. Blank: it has the image, for this pod."""
    faults = [each for each in ward.faults.active(BadImage) if each.strikes(image=image, node=ward.host.name)]
    has_secret = _tell_lost_secrets(ward)
    for fault in faults:
        if fault.how is Answer.MISSING:
            return not_found(image)
        if fault.how is Answer.AWAY:
            return no_answer(image)
        if not has_secret:
            return not_allowed(image)
    return ""


def _tell_lost_secrets(ward: Ward) -> bool:
    """Whether the pod names a pull secret that is there. Of those that are not it is told, and they are passed over."""
    pod = ward.pod
    if pod is None:
        return False
    named = [str(each.get("name", "")) for each in pod["spec"].get("imagePullSecrets") or ()]
    lost = [name for name in named if not _is_there(ward, pod, name)]
    if lost:
        listed = ", ".join(lost)
        words = f"Unable to retrieve some image pull secrets ({listed}); attempting to pull the image may not succeed."
        ward.warn("FailedToRetrieveImagePullSecret", words)
    return len(lost) < len(named)


def _is_there(ward: Ward, pod: Obj, name: str) -> bool:
    try:
        ward.world.cluster.get(SECRET, name, namespace(pod))
    except Refused:
        return False
    return True


def _wait_for(ward: Ward, container: Container, reason: str, message: str) -> None:
    container.reason, container.message = reason, message
    ward.report()
