"""Redis is emptied: how much counters grew is then told anew, and what was found of it is not over by that."""

import pytest

from health.models import Finding
from health.telemetry.snapshot import TelemetrySnapshot
from tests.health.evaluation.saying import DEVICES, MINUTE
from tests.make import NOON

pytestmark = pytest.mark.django_db


def lose(say) -> None:
    say.snapshot = TelemetrySnapshot(NOON.timestamp(), DEVICES)


@pytest.mark.parametrize(
    ("metric", "rule"),
    [
        ("pcie_replays", "gpu-pcie-replays"),
        ("ecc_corrected", "gpu-ecc-corrected"),
        ("nvlink_data_errors", "gpu-nvlink-errors"),
        ("rows_remapped_uncorrected", "gpu-ecc-uncorrected"),
    ],
)
def test_what_grew_is_over_once_it_is_known_not_to(say, metric, rule):
    for minutes, value in ((0, 0), (1, 200), (7, 200)):
        say(NOON + minutes * MINUTE, **{metric: {2: value}})
    assert list(Finding.objects.open().values_list("rule", flat=True)) == [rule]

    lose(say)
    for minutes in (8, 20, 37):
        say(NOON + minutes * MINUTE, **{metric: {2: 200}})
        assert Finding.objects.get().state == "open"
    say(NOON + 39 * MINUTE, **{metric: {2: 200}})

    assert Finding.objects.get().state == "resolved"


@pytest.mark.nightly
def test_who_is_slowed_down_is_so_until_two_samples_say_otherwise(say):
    for minutes in range(12):
        say(NOON + minutes * MINUTE, throttled_board={2: minutes * 60e9})
    assert Finding.objects.get().state == "open"

    lose(say)
    say(NOON + 12 * MINUTE, throttled_board={2: 12 * 60e9})
    assert Finding.objects.get().state == "open"
    say(NOON + 13 * MINUTE, throttled_board={2: 13 * 60e9})
    say(NOON + 14 * MINUTE, throttled_board={2: 14 * 60e9})

    assert Finding.objects.get().state == "open"
    assert Finding.objects.get().times == 1
