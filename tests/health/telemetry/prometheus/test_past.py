"""What a Prometheus heard in the past, as the frames that rounds would have taken then."""

from collections.abc import Iterator
from contextlib import contextmanager

from health.telemetry.identity import Whereabouts
from health.telemetry.prometheus import past as module
from health.telemetry.prometheus.client import Address, Client
from health.telemetry.prometheus.past import MissingSteps, Past
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

    at = [each.asked.number if isinstance(each, MissingSteps) else each.snapshot.taken_at for each in told]
    assert at == [*AN_HOUR.times[:20], 20, *AN_HOUR.times[40:]]
    assert told[20].asked.times == AN_HOUR.times[20:40]


def minute(reading) -> int:
    return round((reading.snapshot.taken_at - (NOW - HOUR_S)) / 60)


def known(told: list) -> dict[tuple[str, str], list[int]]:
    """By device the minutes at which it is one of the frame's."""
    found: dict[tuple[str, str], list[int]] = {}
    for each in told:
        for device in each.snapshot.devices:
            found.setdefault(device.key, []).append(minute(each))
    return found


def test_a_device_is_known_from_its_first_sample_on():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels("GPU-0"), samples(0, 60))
    remembering.add(CELSIUS, labels("GPU-1"), samples(30, 60))

    minutes = known(read(remembering))

    assert minutes["GPU-0", ""] == [*range(1, 61)]
    assert minutes["GPU-1", ""] == [*range(30, 61)]


def test_a_slice_that_was_cut_away_goes_as_the_others_come():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels(GPU_I_ID="7"), [*samples(0, 22), (NOW - HOUR_S + 22.5 * 60, None)])
    remembering.add(CELSIUS, labels(GPU_I_ID="9"), samples(23, 60))

    minutes = known(read(remembering))

    assert minutes["GPU-0", "7"] == [*range(1, 23)]
    assert minutes["GPU-0", "9"] == [*range(23, 61)]


def test_what_is_unsaid_stays_a_slice_as_a_board():
    remembering = Remembering(NOW)
    for uuid, slice_ in (("GPU-0", "7"), ("GPU-1", "")):
        more = {"GPU_I_ID": slice_} if slice_ else {}
        remembering.add(CELSIUS, labels(uuid, **more), [*samples(0, 20), (NOW - HOUR_S + 20.5 * 60, None)])
    remembering.add(CELSIUS, labels("GPU-2"), samples(0, 60))

    minutes = known(read(remembering))

    assert minutes["GPU-0", "7"][-1] == minutes["GPU-1", ""][-1] == minutes["GPU-2", ""][-1] == 60


def test_devices_of_a_node_are_known_while_it_is_there():
    remembering, begin = Remembering(NOW), NOW - HOUR_S
    for host, uuid in (("gpu-001", "GPU-1"), ("gpu-002", "GPU-2")):
        remembering.add(CELSIUS, labels(uuid, Hostname=host), samples(0, 60))
    there = {"gpu-001": (30, 61), "gpu-002": (0, 30)}

    where = Whereabouts(frozenset(there))
    is_there = lambda node, at: there[node][0] <= (at - begin) / 60 < there[node][1]  # noqa: E731
    minutes = known(read(remembering, where=where, is_there=is_there))

    assert minutes["GPU-1", ""] == [*range(30, 61)]
    assert minutes["GPU-2", ""][-1] <= 30 + 5


def test_what_spells_its_uuid_otherwise_from_a_moment_on_is_the_same():
    remembering = Remembering(NOW)
    old = {"uuid" if key == "UUID" else key: value for key, value in labels().items()}
    remembering.add(CELSIUS, old, [*samples(0, 30, 50.0), (NOW - HOUR_S + 30.5 * 60, None)])
    remembering.add(CELSIUS, labels(), samples(31, 60, 70.0))

    told = read(remembering)

    assert [each.snapshot.columns[METRIC].values[0] for each in told] == [50.0] * 30 + [70.0] * 30
    assert all(each.snapshot.taken_at - each.snapshot.columns[METRIC].times[0] <= 60 for each in told)


def test_short_jobs_make_no_answer_longer():
    remembering = Remembering(NOW)
    for job in range(20):
        said = labels(pod="exporter-x7k2p", exported_pod=f"job-{job}", container=f"main-{job}")
        remembering.add(CELSIUS, said, samples(job * 3, job * 3 + 3))

    told = read(remembering)

    assert known(told)["GPU-0", ""] == [*range(1, 61)]
    assert max(remembering.rows) == 1


def test_a_device_is_of_the_node_on_which_its_exporter_runs():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels(Hostname="localhost", pod="exporter-x7k2p"), samples(0, 60))
    remembering.add(CELSIUS, labels("GPU-1", Hostname="localhost", pod="a-tenants"), samples(0, 60))
    where = Whereabouts(frozenset({"gpu-001"}), {"exporter-x7k2p": "gpu-001"})

    told = read(remembering, where=where)

    assert [device.node_name for device in told[0].snapshot.devices] == ["gpu-001"]
    assert list(known(told)) == [("GPU-0", "")]


def test_series_that_name_no_node_are_not_called_none():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels(Hostname="localhost", pod="exporter-aaaaa"), samples(0, 60))
    where = Whereabouts(frozenset({"gpu-001"}), {"exporter-x7k2p": "gpu-001"})

    (told,) = read(remembering, where=where)

    assert isinstance(told, MissingSteps)
    assert told.reason.startswith("The series name neither a node of this cluster nor an existing exporter pod")


ODD = "DCGM_FI_DEV_XID_ERRORS"  # of a file of counters of its own


def test_a_device_that_has_none_of_the_usual_series_is_known_beside_those_that_do():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels("GPU-0"), samples(0, 60))
    remembering.add(ODD, labels("GPU-1", gpu="1"), samples(0, 60, 79))

    told = read(remembering, metrics=("xid",))

    assert known(told)["GPU-1", ""] == [*range(1, 61)]
    column = told[-1].snapshot.columns["xid"]
    assert column.values[told[-1].snapshot.index()["GPU-1", ""]] == 79


def test_that_one_falls_silent_is_known_too():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels("GPU-0"), samples(0, 60))
    remembering.add(ODD, labels("GPU-1", gpu="1"), samples(0, 30, 0))

    last = read(remembering, metrics=())[-1].snapshot

    assert last.newest_by_device()[last.index()["GPU-1", ""]] == NOW - HOUR_S / 2


def test_series_of_devices_that_others_tell_of_are_not_asked_for_them():
    remembering = Remembering(NOW)
    remembering.add(CELSIUS, labels(), samples(0, 60))
    remembering.add(ODD, labels(), samples(0, 60, 0))

    read(remembering, metrics=("xid",))

    assert not [query for query in remembering.asked if query.startswith("group") and ODD in query]
