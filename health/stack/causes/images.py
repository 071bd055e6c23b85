"""The cause of an image that is not pulled, from the answer of the container runtime. Pure.

The reasons are those of Kubernetes: https://github.com/kubernetes/kubernetes/tree/master/pkg/kubelet/images
"""

from gpu.operands import DRIVER
from gpu.versions import parse_version, tag_of
from health.stack.causes.base import Cause, CauseRule, Signs
from health.stack.causes.entries import QUOTED_IMAGE, CauseMatcher, table

PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
                     "RegistryUnavailable", "SignatureValidationFailed"})  # fmt: skip
NEEDS_SECRET = frozenset({"image_not_allowed", "image_no_such_tag", "image_pull"})
ANSWERS = table("images.rule")
NO_PRECOMPILED, NO_DRIVER_IMAGE, LOST_SECRET, OTHER = table(
    "images.precompiled", "images.driver", "images.secret", "images.other"
)


def image_pull(signs: Signs) -> Cause | None:
    """Returns the cause of a failed pull.

    Between two tries the pod only reports a back-off; its Events have the registry's answer.
    """
    pod = signs.pod
    if pod is None or pod.reason not in PULLING:
        return None
    lines = [pod.message, *(event.message for event in pod.events)]
    said, rule = next(((line, each) for line in lines for each in ANSWERS if each.match([line])), (lines[0], OTHER))
    lost = next((event.message for event in pod.events if "image pull secret" in event.message), "")
    if rule.entry.key in NEEDS_SECRET and lost:
        return LOST_SECRET.cause(signs, lost)
    if rule.entry.key == NO_DRIVER_IMAGE.entry.key and signs.operand == DRIVER:
        rule = _matcher_of_driver_image(pod.message, pod.image)
    return rule.cause(signs, said)


def _matcher_of_driver_image(message: str, image: str) -> CauseMatcher:
    quoted = QUOTED_IMAGE.search(message)
    return NO_PRECOMPILED if parse_version(tag_of(quoted[1] if quoted else image)).kernel else NO_DRIVER_IMAGE


RULES: tuple[CauseRule, ...] = (image_pull,)
