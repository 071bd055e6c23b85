import pytest

from fleet.models import NodeEvent
from health.sources import resets
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("gpus", "anew", "kind", "says"),
    [
        (1, 1, "reload", "The counters of its GPU restarted at zero: the driver was reloaded, or the GPU was reset."),
        (
            2,
            2,
            "reload",
            "The counters of all 2 GPUs restarted at zero: the driver was reloaded, or all GPUs were reset.",
        ),
        (2, 1, "reset", "The counters of GPU 0 restarted at zero: the GPU was reset."),
    ],
)
def test_only_where_others_of_its_node_go_on_it_was_a_reset(gpus, anew, kind, says):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1")

    assert resets.write(cluster.pk, taken(gpus, anew), now=NOON.timestamp()) == 1
    assert NodeEvent.objects.values_list("kind", "sentence").get() == (kind, says)


def test_a_board_that_is_silent_does_not_go_on():
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1")

    resets.write(cluster.pk, taken(3, 2, silent=2), now=NOON.timestamp())

    assert NodeEvent.objects.get().kind == "reload"


@pytest.mark.parametrize(("is_overdue", "lines"), [(False, 0), (True, 1)])
def test_what_the_mig_manager_resets_is_nobodys_trouble(is_overdue, lines):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", mig_config_state="pending", mig_is_overdue=is_overdue)

    assert resets.write(cluster.pk, taken(2, 1), now=NOON.timestamp()) == lines


def taken(gpus: int, anew: int, *, silent: int | None = None) -> TelemetryReading:
    """The first ones count from nothing again."""
    devices = tuple(GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(gpus))
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices)
    column = snapshot.columns["energy_joules"] = MetricColumn.empty(gpus)
    for place in range(gpus):
        column.values[place], column.times[place] = 5.0, snapshot.taken_at - (3600 if place == silent else 0)
    return TelemetryReading(snapshot, frozenset(), {}, anew=devices[:anew])
