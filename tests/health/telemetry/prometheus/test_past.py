"""What a Prometheus heard in the past, as the frames that rounds would have taken then."""

from collections.abc import Iterator
from contextlib import contextmanager

from health.telemetry.identity import Whereabouts
from health.telemetry.prometheus import past as module
from health.telemetry.prometheus.client import Address, Client
from health.telemetry.prometheus.past import NotTold, Past
from health.telemetry.prometheus.ranges import Steps
from health.telemetry.promql import Matchers
from tests.health.telemetry.prometheus.a_past import Remembering
from tests.health.telemetry.prometheus.a_server import a_server

NOW, HOUR_S = 1_800_000_000.0, 3600
CELSIUS, METRIC = "DCGM_FI_DEV_GPU_TEMP", "temperature_celsius"
AN_HOUR = Steps(NOW - HOUR_S + 60, 60, 60)


def labels(uuid: str = "GPU-0", **more: str) -> dict[str, str]:
    return {"UUID": uuid, "gpu": "0", "Hostname": "gpu-001", **more}


def samples(first_min: float, last_min: float, value: float = 60.0) -> list[tuple[float, float]]:
    """Each half minute, by the minutes of the hour."""
    begin = NOW - HOUR_S
    return [(begin + at, value) for at in range(int(first_min * 60), int(last_min * 60) + 1, 30)]


@contextmanager
def a_past(remembering: Remembering, **given) -> Iterator[Past]:
    where = given.pop("where", Whereabouts(frozenset({"gpu-001"})))
    with a_server(remembering) as (url, _), Client(Address(url, may_be_loopback=True)) as client:
        yield Past(client, Matchers(), where, given.pop("metrics", (METRIC,)), **given)


def read(remembering: Remembering, asked: Steps = AN_HOUR, **given) -> list:
    with a_past(remembering, **given) as past:
        return list(past.readings(asked))


def test_a_piece_that_is_refused_is_the_gap_and_no_other_is(monkeypatch):
    monkeypatch.setattr(module, "POINTS_AT_ONCE", 20)
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels(), samples(0, 60))
    remembering.refuses = lambda at: 20 * 60 < at - (NOW - HOUR_S) <= 40 * 60

    told = read(remembering)

    at = [each.asked.number if isinstance(each, NotTold) else each.frame.taken_at for each in told]
    assert at == [*AN_HOUR.times[:20], 20, *AN_HOUR.times[40:]]
    assert told[20].asked.times == AN_HOUR.times[20:40]
