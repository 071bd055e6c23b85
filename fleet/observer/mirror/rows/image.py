"""The image that identifies a pod: the first container's, unless that only pauses."""

import re

from fleet.observer.mirror.rows.text import fitted
from kube.structs.daemonset import TemplateSpec
from kube.structs.pod import PodSpec

# Google's driver installer works in an init container, beside a container that pauses
# (GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer).
PAUSE = re.compile(r"(?:^|/)pause(?:-[a-z0-9]+)?(?:[:@]|$)")


def image_of(spec: PodSpec | TemplateSpec) -> str:
    images = [each.image or "" for each in (*(spec.containers or ()), *(spec.init_containers or ()))]
    return fitted(next((image for image in images if not PAUSE.search(image)), images[0] if images else ""), 500)
