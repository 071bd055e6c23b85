"""Images as the kubelet gets them, and as it does not (k8s.io/kubernetes pkg/kubelet/images; containerd's words)."""

from collections.abc import Callable

from simulator.actors.kubelet.sandbox import Container
from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.kubelet.ward import Ward


def pull(ward: Ward, container: Container, is_missing: Callable[[], bool]) -> Script:
    """Ask the registry, and again later, until it has the image."""
    wait_s = ward.durations.crash_backoff
    while is_missing():
        words, named = not_found(container.image), f'image "{container.image}"'
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


def _wait_for(ward: Ward, container: Container, reason: str, message: str) -> None:
    container.reason, container.message = reason, message
    ward.report()
