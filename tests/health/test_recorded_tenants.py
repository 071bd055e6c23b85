"""What is said of tenants' pods, and of operands that are Ready and do nothing, on clusters that people posted."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.models import Node, Pod
from health.stack import OperandOnNode, read_stack
from health.stack.causes import Weight
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, unread
from tests.health.logs import logged

pytestmark = pytest.mark.django_db
OPERATED = ("ClusterPolicy", "NVIDIADriver")
CLUSTERS = (
    Recorded("tenants"),
    Recorded("host-driver", OPERATED),
    Recorded("driver-stuck", OPERATED),
    Recorded("fragmented"),
)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def operand(node: Node, operand: str) -> OperandOnNode:
    return next(row for row in read_stack(node, now=timezone.now()).operands if row.operand == operand and row.pod)


def with_log(node: Node, operand: str, log: str) -> Pod:
    pod = node.pods.get(operand=operand)
    make.a_crash_log(pod, *logged(log))
    return pod


@pytest.mark.parametrize(
    ("name", "of", "log", "key", "said"),
    [
        ("p19", "dcgm-exporter", "exporter-loses-engine", "dcgm_unreachable", "level=fatal"),
        ("q09", "compute-domain-daemon", "imex-in-use", "imex_in_use", "NV_ERR_IN_USE"),
        ("q12", "amd-dra-driver", "amd-dra-semver", "dra_version_refused", "semver.org"),
        ("q13", "operator-validator", "cuda-insufficient", "cuda_driver_not_mounted", "insufficient"),
        ("q14", "operator-validator", "smi-exits-14", "smi_inforom", "infoROM is corrupted"),
        ("q25", "mig-manager", "mig-reset-unsupported", "mig_needs_reboot", "is not supported"),
    ],
)  # fmt: skip
def test_the_line_of_a_log_that_tells_is_found(name, of, log, key, said):
    node = seen(name)
    with_log(node, of, log)
    cause = operand(node, of).cause

    assert cause is not None
    assert cause.key == key
    assert said in cause.said
    assert cause.action


def test_drivers_of_dynamic_resources_are_operands_with_their_versions():
    found = {
        name: operand(seen(name), of) for name, of in (("q12", "amd-dra-driver"), ("q09", "compute-domain-daemon"))
    }

    assert (found["q12"].version, found["q12"].is_ready) == ("v1.0.0", True)
    assert (found["q09"].version, found["q09"].is_ready) == ("v25.8.1", False)


def test_a_driver_that_publishes_nothing_is_no_well_being_without_its_log():
    cause = operand(seen("q12"), "amd-dra-driver").cause

    assert (cause.key, cause.weight) == ("dra_publishes_nothing", Weight.WRONG)


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
