from contextlib import suppress
from types import SimpleNamespace

import pytest

from health.models.telemetry_source import ROUND_LEASE
from health.telemetry import promql
from health.telemetry.base import DeviceXid, Exploding
from health.telemetry.identity import Whereabouts
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import ANSWER_S, Address, Client
from health.telemetry.prometheus.source import LOOK_EVERY_S, Prometheus
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server, saying

NOW = 1_000_000.0
WHERE = Whereabouts(frozenset({"gpu-1"}))
A = {"UUID": "GPU-a", "Hostname": "gpu-1", "gpu": "0", "modelName": "NVIDIA H200"}
SLICE = {"UUID": "GPU-b", "GPU_I_ID": "1", "GPU_I_PROFILE": "1g.18gb", "Hostname": "gpu-1", "gpu": "1"}


@pytest.fixture
def playing():
    told = Playing(NOW)
    told.add("DCGM_FI_DEV_GPU_TEMP", A, 61)
    told.add("DCGM_FI_DEV_GPU_TEMP", SLICE, 55)
    told.add("DCGM_FI_DEV_GPU_UTIL", A, 90)
    told.add("DCGM_FI_DEV_XID_ERRORS", {**A, "err_code": "79", "err_msg": "GPU has fallen off the bus"}, 79)
    return told


@pytest.fixture
def ask(playing):
    with a_server(playing) as (url, _), Client(Address(url, may_be_loopback=True)) as client:
        yield lambda **given: Prometheus(
            client, given.pop("matchers", promql.Matchers()), given.pop("where", WHERE), lambda: playing.now, **given
        )


def column(taken, metric):
    return list(taken.snapshot.columns[metric].values)


def test_takes_a_frame(ask):
    taken = ask().take(None, now=NOW)

    assert [(device.uuid, device.gi_id, device.index) for device in taken.snapshot.devices] == [
        ("GPU-a", "", 0),
        ("GPU-b", "1", 1),
    ]
    assert column(taken, "temperature_celsius") == [61.0, 55.0]
    assert column(taken, "gpu_utilisation_ratio")[0] == pytest.approx(0.9)
    assert taken.snapshot.columns["temperature_celsius"].times[0] == pytest.approx(NOW - 5)
    assert taken.exported == {"temperature_celsius", "gpu_utilisation_ratio", "xid"}
    assert taken.xids == {("GPU-a", ""): DeviceXid(79, "GPU has fallen off the bus")}


def test_asks_of_one_instant_by_its_clock(ask, playing):
    playing.now = NOW - 120

    ask().take(None, now=NOW)

    assert playing.instants.pop("vector(time())") == ""
    assert set(playing.instants.values()) == {f"{NOW - 120:.3f}"}


def test_each_metric_has_the_times_of_its_own_samples(ask, playing):
    """Also where the metric before, or the one before that, has others."""
    playing.series = {}
    ages = {
        "DCGM_FI_DEV_FB_USED": 5,
        "DCGM_FI_DEV_GPU_TEMP": 5,
        "DCGM_FI_DEV_GPU_UTIL": 20,
        "DCGM_FI_DEV_POWER_USAGE": 5,
    }
    for name, age_s in ages.items():
        playing.add(name, SLICE, 55, age_s=age_s)
        playing.add(name, A, 50, age_s=age_s + 2)

    columns = ask().take(None, now=NOW).snapshot.columns

    named = ("memory_used_mib", "temperature_celsius", "gpu_utilisation_ratio", "power_watts")
    assert {name: [NOW - at for at in columns[name].times] for name in named} == {
        "memory_used_mib": [7, 5], "temperature_celsius": [7, 5], "gpu_utilisation_ratio": [22, 20],
        "power_watts": [7, 5],
    }  # fmt: skip


def test_what_is_not_exported_is_in_no_column(ask):
    taken = ask().take(None, now=NOW)

    assert "ecc_uncorrected" not in taken.exported
    assert "ecc_uncorrected" not in taken.snapshot.columns


def test_a_slice_that_has_no_value_has_none(ask):
    values = ask().take(None, now=NOW).snapshot.columns["gpu_utilisation_ratio"].values

    assert values[1] != values[1]


def test_remembers_what_was_last_seen_of_a_device_whose_series_went(ask, playing):
    source = ask()
    before = source.take(None, now=NOW)
    playing.now = NOW + 60
    del playing.series["DCGM_FI_DEV_GPU_TEMP"][0]

    after = source.take(before.snapshot, now=NOW + 60)

    assert column(after, "temperature_celsius")[0] == 61.0
    assert after.snapshot.columns["temperature_celsius"].times[0] == pytest.approx(NOW - 5)


def test_looks_for_new_devices_now_and_then_only(ask, playing):
    source = ask()
    source.take(None, now=NOW)
    number = sum(query.startswith("group by") for query in playing.queries)
    source.take(None, now=NOW + 15)
    assert sum(query.startswith("group by") for query in playing.queries) == number

    source.take(None, now=NOW + LOOK_EVERY_S)

    assert sum(query.startswith("group by") for query in playing.queries) == 2 * number


def test_looks_again_at_once_when_an_answer_names_a_new_device(ask, playing):
    """As when Prometheus itself has just begun: not every exporter was scraped at the first look."""
    source = ask()
    before = source.take(None, now=NOW)
    playing.add("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-new", "Hostname": "gpu-1", "gpu": "2"}, 50)
    between = source.take(before.snapshot, now=NOW + 15)
    assert len(between.snapshot.devices) == 2

    after = source.take(between.snapshot, now=NOW + 30)

    assert len(after.snapshot.devices) == 3


def test_a_gpu_that_another_node_claims_as_well_is_neithers_from_then_on(ask, playing):
    """One that was known before took what either said, and was in the frame of the node that had it."""
    source = ask(where=Whereabouts(frozenset({"gpu-1", "gpu-2"})))
    snapshot = source.take(None, now=NOW).snapshot
    playing.add("DCGM_FI_DEV_GPU_TEMP", {**A, "Hostname": "gpu-2"}, 149)

    taken = source.take(snapshot, now=NOW + LOOK_EVERY_S)

    assert [device.uuid for device in taken.snapshot.devices] == ["GPU-b"]
    assert column(taken, "temperature_celsius") == [55.0]
    assert any("GPU-a by gpu-1 and gpu-2" in note for note in taken.notes)


def test_of_two_series_of_a_gpu_the_newer_counts(ask, playing):
    """As of an exporter whose pod was made anew: a Prometheus has the old one's for five minutes more."""
    playing.series = {}
    playing.add("DCGM_FI_DEV_GPU_TEMP", {**A, "pod": "old"}, 90, age_s=200)
    playing.add("DCGM_FI_DEV_GPU_TEMP", {**A, "pod": "new"}, 40, age_s=5)

    taken = ask().take(None, now=NOW)

    assert column(taken, "temperature_celsius") == [40.0]
    assert list(taken.snapshot.columns["temperature_celsius"].times) == [NOW - 5]


def test_of_two_exporters_of_a_gpu_what_either_says_is_not_taken_back_by_the_other(ask, playing):
    """An operator's beside a cloud's, which was started after the Xid and is scraped last as often as not."""
    source, snapshot = ask(), None
    for number, (first, second) in enumerate([(5, 12), (14, 3), (7, 9)]):
        playing.now = NOW + 15 * number
        playing.series = {}
        for name, one, other in (("XID_ERRORS", 79, 0), ("TOTAL_ENERGY_CONSUMPTION", 9e9 + 6e6 * number, 8.99e9)):
            playing.add(f"DCGM_FI_DEV_{name}", {**A, "pod": "one"}, one, age_s=first)
            playing.add(f"DCGM_FI_DEV_{name}", {**A, "pod": "other"}, other, age_s=second)
        playing.add("DCGM_FI_DEV_GPU_TEMP", {**A, "pod": "one"}, 60)
        playing.add("DCGM_FI_DEV_GPU_TEMP", {**A, "pod": "other"}, 60)
        taken = source.take(snapshot, now=playing.now)
        snapshot = taken.snapshot

        assert column(taken, "xid") == [79.0]
        assert column(taken, "energy_joules") == [9e6 + 6e3 * number]
        assert taken.anew == ()


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("gpu_power_usage", {"serial_number": "s1", "gpu_id": "4", "hostname": "gpu-1"}),
        ("DCGM_FI_DEV_POWER_USAGE", {"UUID": "GPU-c", "gpu": "4", "Hostname": "gpu-1"}),
    ],
)
def test_of_two_series_the_newer_counts_whichever_exporter_has_them(ask, playing, name, device):
    """Another exporter has one of each: of another make, or with other counters in its file."""
    playing.series = {}
    playing.add("DCGM_FI_DEV_GPU_TEMP", A, 50)
    playing.add(name, {**device, "pod": "old"}, 700, age_s=200)
    playing.add(name, {**device, "pod": "new"}, 40, age_s=5)

    taken = ask().take(None, now=NOW)

    assert [value for value in column(taken, "power_watts") if value == value] == [40.0]


def test_knows_gpus_whose_exporters_lack_what_others_have(ask, playing):
    """An AMD GPU in a VM says neither power nor memory; a DCGM exporter with a file of counters says what is in it."""
    playing.add("gpu_junction_temperature", {"serial_number": "s1", "gpu_id": "0", "hostname": "gpu-1"}, 40)
    playing.add("gpu_junction_temperature", {"serial_number": "s2", "gpu_id": "1", "hostname": "gpu-1"}, 41)
    playing.add("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-t4", "Hostname": "gpu-1", "gpu": "2"}, 20)
    source, snapshot = ask(), None
    for number in range(3):
        snapshot = source.take(snapshot, now=NOW + 15 * number).snapshot
    looks = sum(query.startswith("group by") for query in playing.queries)

    snapshot = source.take(snapshot, now=NOW + LOOK_EVERY_S + 45).snapshot
    source.take(snapshot, now=NOW + LOOK_EVERY_S + 60)

    assert {device.uuid for device in snapshot.devices} == {"GPU-a", "GPU-b", "GPU-t4", "s1", "s2"}
    assert sum(query.startswith("group by") for query in playing.queries) == looks + 1


def test_does_not_look_each_time_for_devices_of_others(ask, playing):
    playing.add("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-x", "Hostname": "elsewhere"}, 50)
    playing.add("DCGM_FI_DEV_FAN", {"UUID": "GPU-y", "Hostname": "elsewhere"}, 50)
    playing.add("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-z", "Hostname": "elsewhere"}, 50)
    playing.add("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-w", "Hostname": "elsewhere"}, 50)
    source, snapshot = ask(), None
    for number in range(4):
        snapshot = source.take(snapshot, now=NOW + 15 * number).snapshot
    number = sum(query.startswith("group by") for query in playing.queries)

    source.take(snapshot, now=NOW + 75)

    assert sum(query.startswith("group by") for query in playing.queries) == number


def test_asks_for_the_cluster_of_a_shared_server_only(ask, playing):
    ask(matchers=promql.Matchers('cluster="eu-1"')).take(None, now=NOW)

    assert all('cluster="eu-1"' in query for query in playing.queries if query != "vector(time())")


def test_says_times_by_our_clock_and_names_the_skew(ask, playing):
    playing.now, playing.series = NOW - 120, {}
    playing.add("DCGM_FI_DEV_GPU_TEMP", A, 61)
    source = ask()
    source.clock = lambda: NOW

    taken = source.take(None, now=NOW)

    assert taken.snapshot.columns["temperature_celsius"].times[0] == pytest.approx(NOW - 5)
    assert "120 s behind ours" in taken.notes[0]


@pytest.mark.parametrize("said", ["NaN", "+Inf"])
def test_one_that_has_no_time_is_no_prometheus(said):
    row = f'{{"metric":{{}},"value":[1,"{said}"]}}'
    body = f'{{"status":"success","data":{{"resultType":"vector","result":[{row}]}}}}'.encode()

    with (
        a_server(saying(body)) as (url, _),
        Client(Address(url, may_be_loopback=True)) as client,
        pytest.raises(Unusable, match="The server does not report its time, so it is not a Prometheus"),
    ):
        Prometheus(client, promql.Matchers(), WHERE).take(None, now=NOW)


@pytest.mark.parametrize("xid", [float("inf"), 2147483634.0, 1e300])
def test_an_xid_that_cannot_be_is_none(ask, playing, xid):
    playing.series["DCGM_FI_DEV_XID_ERRORS"] = [(A, xid, NOW)]

    taken = ask().take(None, now=NOW)

    assert taken.xids == {}
    assert column(taken, "temperature_celsius") == [61.0, 55.0]


def test_an_xid_of_a_series_that_names_no_gpu_is_of_its_node(ask, playing):
    playing.add("DCGM_FI_DEV_XID_ERRORS", {"Hostname": "gpu-1", "err_code": "45", "err_msg": "Preemptive cleanup"}, 45)
    playing.add("DCGM_FI_DEV_XID_ERRORS", {"err_code": "62"}, 62)

    taken = ask().take(None, now=NOW)

    assert taken.unplaced_xids == {"gpu-1": [DeviceXid(45, "Preemptive cleanup")], "": [DeviceXid(62)]}
    assert taken.xids[("GPU-a", "")] == DeviceXid(79, "GPU has fallen off the bus")


def test_where_each_xid_names_its_gpu_nobody_asks_for_others(ask, playing):
    ask().take(None, now=NOW)

    assert not [query for query in playing.queries if 'UUID=""' in query]


def test_says_what_it_leaves_out(ask, playing):
    playing.series["DCGM_FI_DEV_GPU_TEMP"] = [(A, 82505, NOW), (SLICE, 55, NOW + 3600)]
    playing.series["DCGM_FI_DEV_MEMORY_TEMP"] = [(A, 0, NOW), (SLICE, float(2**63), NOW)]

    taken = ask().take(None, now=NOW)

    temperatures = "1 value of DCGM_FI_DEV_GPU_TEMP"
    assert taken.notes == (f"Left out: 1 impossible value of DCGM_FI_DEV_GPU_TEMP, {temperatures} with a future time.",)
    for metric in ("temperature_celsius", "memory_temperature_celsius"):
        assert all(value != value for value in column(taken, metric))


def test_parts_that_cannot_be_are_none(playing, ask):
    playing.add("DCGM_EXP_GPU_HEALTH_STATUS", {**A, "health_watch": "PCIE"}, 10)
    playing.add("DCGM_EXP_GPU_HEALTH_STATUS", {**A, "health_watch": "MEM"}, 9e18)

    assert ask().take(None, now=NOW).parts == {("GPU-a", ""): {"dcgm_health": {"PCIE": 10.0}}}


def test_knows_every_gpu_where_only_some_are_profiled(ask, playing):
    playing.series = {}
    playing.add("DCGM_FI_PROF_GR_ENGINE_ACTIVE", A, 0.5)
    playing.add("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-t4", "Hostname": "gpu-1", "gpu": "1"}, 20)

    assert [device.uuid for device in ask().take(None, now=NOW).snapshot.devices] == ["GPU-a", "GPU-t4"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([({}, 3.0)], "The series have no names"),
        ([({"__name__": ""}, 3.0)], "The series have no names"),
        ([({"__name__": "node_load1"}, 3.0)], "such as node_load1"),
    ],
)
def test_names_that_nobody_asked_for_are_none(ask, playing, rows, said):
    """A KeyError ended the round: the source stayed as it was, and nothing said why it was heard no more."""
    source, names = ask(), playing.result
    playing.result = lambda query: (
        [playing.row(*row) for row in rows] if query.startswith("count by (__name__) ") else names(query)
    )

    with pytest.raises(Unusable, match=said):
        source.take(None, now=NOW)


def test_a_name_beside_those_that_were_asked_for_costs_no_other(ask, playing):
    source, names = ask(), playing.result
    playing.result = lambda query: (
        names(query)
        + ([playing.row({"__name__": "node_load1"}, 3)] if query.startswith("count by (__name__) ") else [])
    )

    assert column(source.take(None, now=NOW), "temperature_celsius") == [61.0, 55.0]


def test_says_what_to_look_at_where_there_are_no_series(ask, playing):
    playing.series = {"up": [({}, 1, NOW)]}

    with pytest.raises(Unusable, match="no series of a GPU exporter with cluster"):
        ask(matchers=promql.Matchers('cluster="eu-1"')).take(None, now=NOW)


@pytest.mark.parametrize(
    "name", ["nvidia_smi_temperature_gpu", "dcgm_enc_utilization", "nvidia_gpu_duty_cycle", "DCGM_FI_DEV_FAN"]
)
def test_an_exporter_that_is_not_read_is_named(ask, playing, name):
    playing.series = {name: [({"uuid": "GPU-a"}, 61, NOW)], "up": [({}, 1, NOW)]}

    with pytest.raises(Unusable, match=f", such as {name}"):
        ask().take(None, now=NOW)


def test_knows_amd_and_gaudi_by_what_their_exporters_call_them(ask, playing):
    playing.series = {}
    playing.add("amd_gpu_junction_temperature", {"serial_number": "s1", "gpu_id": "4", "hostname": "gpu-1"}, 70)
    playing.add("amd_gpu_power_usage", {"serial_number": "s1", "gpu_id": "4", "hostname": "gpu-1"}, 500)
    playing.add("habanalabs_power_mW", {"UUID": "01P0", "hostname": "gpu-1"}, 350_000)
    playing.add("habanalabs_temperature_onchip", {"UUID": "01P0", "hostname": "gpu-1"}, 45)

    taken = ask().take(TelemetrySnapshot(NOW, ()), now=NOW)

    assert set(taken.snapshot.devices) == {GpuDevice("gpu-1", 4, "s1", serial="s1"), GpuDevice("gpu-1", None, "01P0")}
    assert sorted(column(taken, "power_watts")) == [350.0, 500.0]
    assert sorted(column(taken, "temperature_celsius")) == [45.0, 70.0]


def test_labels_in_capitals_are_an_older_exporter_of_amds(ask, playing):
    playing.series = {}
    labels = {"SERIAL_NUMBER": "s1", "GPU_ID": "4", "HOSTNAME": "gpu-1", "CARD_MODEL": "102-G30211-0C"}
    playing.add("gpu_power_usage", {**labels, "GPU_PARTITION_ID": "0", "GPU_COMPUTE_PARTITION_TYPE": "SPX"}, 500)

    taken = ask().take(TelemetrySnapshot(NOW, ()), now=NOW)

    assert taken.snapshot.devices == (GpuDevice("gpu-1", 4, "s1", product="102-G30211-0C", serial="s1"),)
    assert column(taken, "power_watts") == [500.0]


def test_an_amd_gpu_that_is_not_partitioned_is_a_board(ask, playing):
    """As it is exported: with a partition of it all the same, and in a VM without a serial number."""
    labels = {"gpu_partition_id": "0", "gpu_compute_partition_type": "spx", "gpu_uuid": "a8ff", "hostname": "gpu-1"}
    parts = {"gpu_compute_partition_type": "dpx", "serial_number": "s2", "hostname": "gpu-1"}
    playing.series = {}
    playing.add("gpu_power_usage", {**labels, "serial_number": "s1", "gpu_id": "0"}, 140)
    playing.add("gpu_power_usage", {**labels, "serial_number": "", "gpu_id": "1"}, 150)
    playing.add("gpu_power_usage", {**parts, "gpu_partition_id": "0", "gpu_id": "2"}, 160)
    playing.add("gpu_power_usage", {**parts, "gpu_partition_id": "1", "gpu_id": "3"}, 170)

    taken = ask().take(TelemetrySnapshot(NOW, ()), now=NOW)

    assert {device.key: column(taken, "power_watts")[at] for at, device in enumerate(taken.snapshot.devices)} == {
        ("s1", ""): 140.0, ("a8ff", ""): 150.0, ("s2", "0"): 160.0, ("s2", "1"): 170.0,
    }  # fmt: skip


def test_series_that_a_label_tells_apart_come_with_their_parts(playing, ask):
    for watch, result in (("PCIE", 20), ("MEM", 0)):
        playing.add("DCGM_EXP_GPU_HEALTH_STATUS", {**A, "health_watch": watch}, result)
    playing.add("DCGM_EXP_CLOCK_EVENTS_COUNT", {**A, "clock_event": "power_cap"}, 300)
    playing.add("DCGM_EXP_CLOCK_EVENTS_COUNT", {**A, "clock_event": "hw_thermal"}, 2)

    taken = ask().take(None, now=NOW)

    assert column(taken, "dcgm_health")[0] == 20.0
    assert column(taken, "clock_events")[0] == 2.0
    assert taken.parts == {("GPU-a", ""): {"dcgm_health": {"PCIE": 20.0}, "clock_events": {"hw_thermal": 2.0}}}


def test_an_exporter_with_more_series_of_a_name_than_gpus_can_have_is_named(playing, ask):
    for number in range(2_001):
        playing.add("DCGM_EXP_REQUEST_SECONDS", {"instance": "10.0.0.7:9400", "request": f"{number}"}, 1)
    for number in range(1_999):
        playing.add("DCGM_EXP_OTHER", {"instance": "10.0.0.8:9400", "request": f"{number}"}, 1)

    for number in range(2_001):  # many exporters' of a Prometheus that drops the label
        playing.add("DCGM_EXP_ALL", {"UUID": f"GPU-{number}"}, 1)

    taken = ask().take(None, now=NOW)

    assert taken.exploding == (Exploding("DCGM_EXP_REQUEST_SECONDS", "10.0.0.7:9400", 2_001),)


def counts_series(query: str) -> bool:
    return query.startswith("count by (__name__, instance)")


@pytest.fixture
def scraped(playing):
    """Two exporters as a Prometheus tells of them, the second with more samples than GPUs can have."""
    playing.series = {}
    for instance, uuid in (("10.0.0.7:9400", "GPU-a"), ("10.0.0.8:9400", "GPU-b")):
        playing.add("DCGM_FI_DEV_GPU_TEMP", {**A, "UUID": uuid, "instance": instance}, 50)
    return playing


def explode(playing, instance: str, number: int = 2_001) -> None:
    for each in range(number):
        playing.add("DCGM_EXP_REQUEST_SECONDS", {"instance": instance, "request": f"{each}"}, 1)


def test_no_series_are_counted_where_no_exporter_gave_so_many_samples(scraped, ask):
    """To count all of a pattern takes the longest where there are the most: then nobody would see a GPU."""
    taken = ask().take(None, now=NOW)

    assert taken.exploding == ()
    assert not any(map(counts_series, scraped.queries))


def test_series_are_counted_of_the_exporters_that_gave_so_many_samples(scraped, ask):
    explode(scraped, "10.0.0.8:9400")

    taken = ask().take(None, now=NOW)

    assert taken.exploding == (Exploding("DCGM_EXP_REQUEST_SECONDS", "10.0.0.8:9400", 2_001),)
    (counted,) = filter(counts_series, scraped.queries)
    assert 'instance=~"10[.]0[.]0[.]8:9400"' in counted


@pytest.mark.parametrize("instance", ["[fd00::7]:9400", 'it"}', "a|b"])
def test_an_exporter_whose_name_is_no_plain_one_is_counted_with_all(scraped, ask, instance):
    scraped.add("DCGM_FI_DEV_GPU_TEMP", {**A, "UUID": "GPU-c", "instance": instance}, 50)
    explode(scraped, instance)

    taken = ask().take(None, now=NOW)

    assert [one.instance for one in taken.exploding] == [instance]
    assert not any("instance=~" in query for query in scraped.queries)


def test_where_nothing_is_written_down_of_scrapes_the_series_of_all_are_counted(scraped, ask):
    scraped.writes_down_scrapes = False
    explode(scraped, "10.0.0.8:9400")

    assert [one.instance for one in ask().take(None, now=NOW).exploding] == ["10.0.0.8:9400"]


def test_gpus_are_seen_where_the_count_of_series_does_not_come(scraped, ask, monkeypatch):
    explode(scraped, "10.0.0.8:9400")
    source = ask()
    before = source.take(None, now=NOW)
    result = scraped.result
    odd = {"error": "expired"}
    monkeypatch.setattr(scraped, "result", lambda query: odd if counts_series(query) else result(query))

    after = source.take(before.snapshot, now=NOW + LOOK_EVERY_S)

    assert column(after, "temperature_celsius") == [50.0, 50.0]
    assert after.exploding == before.exploding
    assert "It is unknown whether an exporter has too many series: " in after.notes[-1]


@pytest.mark.parametrize("slow", ["vector", "count", "group", "max", "> 0"])
def test_a_round_ends_within_its_lease_whichever_answers_are_slow(ask, playing, monkeypatch, slow):
    """What is asked last, of the few GPUs that have any, was not held to the time of a round."""
    for name, label in (("CLOCK_EVENTS_COUNT", "clock_event"), ("XID_ERRORS_COUNT", "xid")):
        playing.add(f"DCGM_EXP_{name}", {**A, label: "hw_thermal"}, 1)
    playing.add("DCGM_EXP_GPU_HEALTH_STATUS", {**A, "health_watch": "MEM"}, 10)
    took, answered, source = [0.0], playing.result, ask()

    def result(query):
        took[0] += ANSWER_S if slow in query else 2.5
        return answered(query)

    playing.result = result
    monkeypatch.setattr("health.telemetry.prometheus.source.time", SimpleNamespace(monotonic=lambda: took[0]))
    with suppress(Unusable):
        source.take(None, now=NOW)

    assert took[0] < ROUND_LEASE.total_seconds()


def test_what_is_exported_is_asked_for_by_name(scraped, ask):
    explode(scraped, "10.0.0.8:9400")

    ask().take(None, now=NOW)

    (asked,) = (query for query in scraped.queries if query.startswith("count by (__name__) "))
    assert "DCGM_FI_DEV_GPU_TEMP|" in asked
    assert "REQUEST" not in asked
    assert ".+" not in asked
