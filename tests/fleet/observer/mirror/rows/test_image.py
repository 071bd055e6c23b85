import msgspec
import pytest

from fleet.observer.mirror.rows.image import image_of
from kube.structs.pod import PodSpec

INSTALLER, PAUSE = "cos-nvidia-installer:fixed", "gcr.io/google-containers/pause:2.0"


@pytest.mark.parametrize(
    ("inits", "containers", "image"),
    [
        ([], ["driver:580", "openshift-driver-toolkit:1"], "driver:580"),
        (["k8s-driver-manager:1"], ["driver:580"], "driver:580"),
        ([INSTALLER], [PAUSE], INSTALLER),
        ([INSTALLER], ["registry.k8s.io/pause@sha256:ee"], INSTALLER),
        ([INSTALLER], ["gke.gcr.io/pause-amd64:3.1"], INSTALLER),
        ([], [PAUSE], PAUSE),
        ([], ["team/pause-and-resume:1"], "team/pause-and-resume:1"),
        ([], [None], ""),
        ([], [], ""),
    ],
)
def test_the_image_of_a_pod_is_of_what_works_in_it(inits, containers, image):
    document = {
        "initContainers": [{"name": "i", "image": each} for each in inits],
        "containers": [{"name": "c", "image": each} for each in containers],
    }

    assert image_of(msgspec.convert(document, PodSpec)) == image
