import pytest

from fleet.models import NodeEvent
from health.sources import resets
from health.telemetry.base import TelemetryReading
from health.telemetry.frame import Frame, GpuDevice
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("gpus", "anew", "kind", "says"),
    [
        (1, 1, "reload", "Its GPU counts from nothing again: its driver was loaded anew, or it was reset."),
        (2, 2, "reload", "All its 2 GPUs count from nothing again: their driver was loaded anew, or all were reset."),
        (2, 1, "reset", "GPU 0 counts from nothing again: it was reset."),
    ],
)
def test_only_where_others_of_its_node_go_on_it_was_a_reset(gpus, anew, kind, says):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1")
    devices = tuple(GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(gpus))
    taken = TelemetryReading(Frame(NOON.timestamp(), devices), frozenset(), {}, anew=devices[:anew])

    assert resets.write(cluster.pk, taken, now=NOON.timestamp()) == 1
    assert NodeEvent.objects.values_list("kind", "sentence").get() == (kind, says)
