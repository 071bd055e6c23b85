"""Checks of the pod's own settings: CUDA of its image, security context, and device lists in its environment."""

from dataclasses import replace

from gpu.compatibility import Facts, Support, evaluate
from gpu.images import cuda_of
from gpu.resources.names import Vendor
from health.pod_checklist.device_lists import DeviceList, GotGpus, difference
from health.pod_checklist.facts import PodCheckFacts
from health.pod_checklist.replies import NO_NODE, Reply, no, unknown_reply, yes
from wording.lists import names
from wording.numbers import are, either

NOT_STATED = (
    "Neither the image's name nor NVIDIA_REQUIRE_CUDA of the pod states a CUDA version. The image itself is not "
    "checked."
)


def check_cuda_version(facts: PodCheckFacts) -> Reply:
    if facts.node is None:
        return unknown_reply(NO_NODE)
    if facts.node.gpu_vendor not in ("", Vendor.NVIDIA):
        return unknown_reply("Only CUDA and NVIDIA's drivers are compared.")
    version, driver = cuda_of(facts.pod.image, facts.pod.required_cuda), facts.node.reported_driver
    if not version:
        return unknown_reply(
            NOT_STATED, "Run nvidia-smi in the container, and compare with the CUDA version of the image."
        )
    at = facts.node_seen_at
    if not driver:
        return unknown_reply(
            f"The image needs CUDA {version}. Nothing reports the driver of {facts.node.name} now.", at=at
        )
    found = evaluate(Facts(cuda=version, driver=driver), today=facts.now.date())
    verdict = next((each for each in found if each.rule == "cuda"), None)
    if verdict is None or verdict.answer is Support.UNKNOWN:
        return unknown_reply(f"The driver that CUDA {version} needs is not known.", at=at)
    if verdict.answer is Support.UNSUPPORTED:
        return no(verdict.sentence, "Use an image with an older CUDA.", "Or install a newer driver.", at=at)
    return yes(verdict.sentence, at=at)


def check_security(facts: PodCheckFacts) -> Reply:
    privileged = facts.settings.get("privileged", [])
    if privileged:
        return no(
            f"{names(privileged)} {are(len(privileged))} privileged, and can use every GPU of the node.",
            "Remove securityContext.privileged, so that the container gets its own GPUs only.",
        )
    return yes("No container is privileged. Seccomp, SELinux and AppArmor are not checked.")


def check_environment(facts: PodCheckFacts) -> Reply:
    lists = [DeviceList(**each) for each in facts.settings.get("visible", [])]
    if not lists:
        return yes("The pod sets no list of devices. The environment of its image is not checked.")
    compared = [(each, difference(each, _gpus_of_container(facts, each.container))) for each in lists]
    wrong = next(((each, how) for each, how in compared if how), None)
    if wrong is not None:
        each, how = wrong
        value = f"“{each.devices}”" if each.devices != "" else "an empty value"
        return no(
            f"{each.container} sets {each.variable} to {value}: {how}.",
            f"Remove {each.variable} from container {each.container}. The device plugin selects its GPUs.",
        )
    if open_ones := [each for each, how in compared if how is None]:
        each = open_ones[0]
        why = (
            "It comes from a reference, which is not read."
            if each.devices is None
            else "The GPUs of the pod are unknown."
        )
        return unknown_reply(f"{each.container} sets {each.variable}. {why}", "Run nvidia-smi -L in the container.")
    shown = names([f"{each.variable} of {each.container}" for each in lists])
    return yes(f"{shown} {either(len(lists), 'names', 'name')} the GPUs that the pod got.")


def _gpus_of_container(facts: PodCheckFacts, container: str) -> GotGpus:
    """Returns the GPUs of a container. With slices or shares nothing tells which of them CUDA numbers."""
    if container in facts.settings.get("without_gpus", []):
        return GotGpus(0)
    number = facts.pod.gpus or None
    got = GotGpus(number, [gpu.uuid for gpu in facts.gpus] if not facts.unplaced else ())
    is_plain = not facts.is_shared and not any(gpu.profile for gpu in facts.gpus)
    return got if is_plain else replace(got, number=None, uuids=())
