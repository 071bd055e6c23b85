"""What the observer makes of containers that do not run."""

import msgspec
import pytest

from fleet.messages import listeners
from fleet.models import Pod
from kube.structs import PodSeen
from tests.fleet.documents import a_pod_seen, pod_document

pytestmark = pytest.mark.sqlite

OPERAND = {"app": "nvidia-operator-validator"}
DONE = {"terminated": {"exitCode": 0}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}


@pytest.fixture
def woken(monkeypatch) -> list[int]:
    clusters: list[int] = []
    monkeypatch.setattr(listeners, "CRASHED", [clusters.append])
    return clusters


def a_validator(*inits, volumes=()):
    """A pod of the validator; `volumes`: something that we do not keep."""
    seen = pod_document("validator", labels=OPERAND, phase="Pending", gpus=0, statuses=[], volumes=list(volumes))
    seen["status"]["initContainerStatuses"] = [
        {"name": name, "ready": "terminated" in state, "state": state} for name, state in inits
    ]
    return msgspec.convert(seen, PodSeen, strict=False)


def test_an_init_container_that_never_ends_is_the_one_that_holds_up(mirror, woken):
    mirror.list("pods", [a_validator(("driver-validation", DONE), ("toolkit-validation", {"running": {}}))])

    pod = Pod.objects.get()
    assert (pod.stuck_container, pod.waiting_reason) == ("toolkit-validation", "")
    assert woken == []


def test_one_that_waits_for_its_turn_holds_up_nobody(mirror, woken):
    waiting = {"waiting": {"reason": "PodInitializing"}}
    mirror.list("pods", [a_validator(("driver-validation", waiting))])

    assert Pod.objects.get().stuck_container == ""


def test_an_operand_that_crashes_has_its_log_read(mirror, woken):
    mirror.list("pods", [a_validator(("driver-validation", {"running": {}}))])
    mirror.see("pods", a_validator(("driver-validation", BACK_OFF)))
    mirror.flush()

    assert Pod.objects.get().stuck_container == "driver-validation"
    assert woken == [mirror.cluster.pk]


def test_the_same_crash_seen_again_is_no_news(mirror, woken):
    mirror.list("pods", [a_validator(("driver-validation", BACK_OFF))])
    mirror.see("pods", a_validator(("driver-validation", BACK_OFF), volumes=[{"name": "a"}]))
    mirror.flush()

    assert len(woken) == 1


def test_a_tenant_that_crashes_is_its_owners_to_read(mirror, woken):
    mirror.list("pods", [a_pod_seen(gpus=1, statuses=[{"name": "main", "state": BACK_OFF}])])

    assert Pod.objects.get().stuck_container == "main"
    assert woken == []


def test_the_two_daemon_sets_of_the_device_plugins_chart_are_told_apart(mirror):
    labels = {"app.kubernetes.io/name": "nvidia-device-plugin"}
    names = ("nvdp-nvidia-device-plugin-x7jbk", "nvdp-nvidia-device-plugin-gpu-feature-discovery-w2x9d")

    mirror.list("pods", [a_pod_seen(name, labels=labels, gpus=0) for name in names])

    assert set(Pod.objects.values_list("operand", flat=True)) == {"device-plugin", "gpu-feature-discovery"}


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ({"reason": "OOMKilled", "exitCode": 137}, " (it ended with OOMKilled, exit code 137)"),
        ({"reason": "StartError", "exitCode": 128}, " (it ended with StartError, exit code 128)"),
        ({"reason": "Error", "exitCode": 139}, " (it ended with Error, exit code 139)"),
        ({"exitCode": 139}, " (it ended with Error, exit code 139)"),
        ({"reason": "Error", "exitCode": 1}, ""),
        ({"exitCode": 1}, ""),
        ({"reason": "Completed", "exitCode": 0}, ""),
    ],
)
def test_a_back_off_tells_how_the_container_ended_where_that_says_more(mirror, woken, ended, reason):
    seen = pod_document("exporter", labels=OPERAND, gpus=0, statuses=[])
    seen["status"]["containerStatuses"] = [{"name": "ctr", "state": BACK_OFF, "lastState": {"terminated": ended}}]
    mirror.list("pods", [msgspec.convert(seen, PodSeen, strict=False)])

    assert Pod.objects.get().waiting_reason == f"CrashLoopBackOff: back-off 5m0s{reason}"


def test_a_container_that_waits_for_no_reason_is_told_by_how_it_ended(mirror, woken):
    seen = pod_document("exporter", labels=OPERAND, gpus=0, statuses=[])
    state = {"waiting": {"reason": ""}, "terminated": {"reason": "Melted", "exitCode": -1}}
    seen["status"]["containerStatuses"] = [{"name": "ctr", "state": state}]
    mirror.list("pods", [msgspec.convert(seen, PodSeen, strict=False)])

    assert Pod.objects.get().waiting_reason == "Melted: exit code -1, 0 restarts"


def test_of_a_long_message_the_end_is_kept_where_the_cause_is(mirror, woken):
    image = f"registry.example.com/{'mirror/' * 20}nvidia/driver:580.126.20-ubuntu24.04"
    told = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {image}: not found'
    seen = pod_document("driver", labels=OPERAND, gpus=0, statuses=[])
    state = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}": {told}'}}
    seen["status"]["containerStatuses"] = [{"name": "ctr", "state": state}]
    mirror.list("pods", [msgspec.convert(seen, PodSeen, strict=False)])

    reason = Pod.objects.get().waiting_reason

    assert reason.startswith('ImagePullBackOff: Back-off pulling image "registry.example.com/')
    assert reason.endswith(": not found")
    assert len(reason) <= 500
