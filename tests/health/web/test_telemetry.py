"""The telemetry of a cluster's source and of a node's GPUs, on their pages."""

import math
import re
from array import array
from datetime import timedelta

import pytest

from health.inbox.telemetry_sources import put_source, remove_source
from health.models import TelemetrySource
from health.sources import snapshots
from health.telemetry.base import DeviceXid, TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from people.models import AuditEntry
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
AT = NOON.timestamp()


@pytest.fixture
def cluster():
    return make.a_cluster("eu-1")


@pytest.fixture
def admin():
    return visiting(make.a_user("root", role="admin"))


def card(client, cluster) -> str:
    return page(client, f"/parts/clusters/{cluster.pk}/telemetry").text


def table(client, node) -> str:
    return page(client, f"/parts/nodes/{node.pk}/telemetry").text


def test_without_a_source_it_says_what_to_do(admin, cluster):
    said = card(admin, cluster)

    assert "Add a Prometheus" in said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"state": "waiting", "answered_at": None}, "Waiting for its first answer"),
        ({"state": "off", "is_on": False}, "Switched off"),
        ({}, "answering"),
        ({"answered_at": NOON - timedelta(minutes=2)}, "It answered 2 min ago , and is due every 15 s"),
        (
            {"state": "silent", "message": "The server cannot be reached"},
            "Silent for 0 s : The server cannot be reached",
        ),
        ({"devices": 0}, "no series is of a node of this cluster"),
        ({"notes": [HOSTILE]}, "alert(1)"),
    ],
)
def test_each_of_its_states_is_said(admin, cluster, given, words):
    make.a_source(cluster, **given)

    assert words in card(admin, cluster)


def test_while_redis_is_away_nothing_is_said_of_what_the_source_has(admin, cluster, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    node = make.a_node(cluster, gpus=2)
    make.a_source(cluster)

    said = table(admin, node)

    assert "Redis does not answer" in said
    assert "The cluster's Prometheus has no series of" not in said


def test_of_a_silent_source_of_which_nothing_is_kept_nobody_says_what_it_never_had(admin, cluster, redis):
    node = make.a_node(cluster, gpus=2)
    snapshots.forget(cluster.pk)
    make.a_source(cluster, state="silent")

    said = table(admin, node)

    assert "No stored telemetry." in said
    assert "never had" not in said


def test_who_may_not_change_it_sees_why(cluster):
    make.a_source(cluster, secret_from="env:QUARTERDECK_SOURCE_P")
    bob = visiting(make.a_user("bob", role="viewer"))

    refused = page(bob, f"/clusters/{cluster.pk}/telemetry", status=403).text

    assert "you need the role admin on cluster eu-1" in refused
    assert "QUARTERDECK_SOURCE_P" not in refused + card(bob, cluster)
    assert bob.post(f"/clusters/{cluster.pk}/telemetry/remove").status_code == 403
    bob.post(f"/clusters/{cluster.pk}/telemetry/ask")
    assert TelemetrySource.objects.get().next_look_at > NOON


def test_who_sees_only_a_pool_sees_no_source(cluster):
    make.a_source(cluster)
    pool = make.a_pool(cluster)
    mine, other = make.a_node(cluster, pool=pool), make.a_node(cluster)
    pat = visiting(make.a_user("pat", role="viewer", on=pool))

    assert card(pat, cluster) == ""
    assert table(pat, mine)
    page(pat, f"/parts/nodes/{other.pk}/telemetry", status=404)
    page(pat, f"/clusters/{cluster.pk}/telemetry/remove", status=404)


def test_an_admin_adds_changes_asks_and_removes_it(admin, cluster):
    place = f"/clusters/{cluster.pk}/telemetry"
    given = {"url": "https://192.0.2.1", "is_on": "on"}

    assert admin.post(place, given).url == f"/clusters/{cluster.pk}"
    assert "https://192.0.2.1" in admin.get(place).content.decode()
    admin.post(place, {**given, "matchers": 'cluster="eu-1"'})
    TelemetrySource.objects.update(next_look_at=NOON + timedelta(minutes=1))
    admin.post(f"{place}/ask")
    source = TelemetrySource.objects.get()
    assert (source.matchers, source.next_look_at) == ('cluster="eu-1"', NOON)

    assert "Remove" in page(admin, f"{place}/remove").text
    admin.post(f"{place}/remove")
    assert not TelemetrySource.objects.exists()
    assert AuditEntry.objects.last().verb == "telemetry.remove"


def was_in(response) -> str:
    return re.search(r'name="was" value="(\w+)"', response.content.decode())[1]


def test_what_somebody_else_changed_meanwhile_is_not_undone_unseen(admin, cluster):
    source, place = make.a_source(cluster, url="https://192.0.2.1"), f"/clusters/{cluster.pk}/telemetry"
    asked = {"url": "https://192.0.2.1", "matchers": 'cluster="mine"', "is_on": "on", "was": was_in(admin.get(place))}
    put_source(cluster, actor="bob", now=NOON, url="https://192.0.2.2", is_on=False)

    late = admin.post(place, asked)

    source.refresh_from_db()
    assert (late.status_code, source.url, source.matchers, source.is_on) == (409, "https://192.0.2.2", "", False)
    said = late.content.decode()
    assert "Somebody changed it after you opened this form." in said
    assert "Current values: address https://192.0.2.2, label matchers empty, asked no." in said
    assert "cluster=&quot;mine&quot;" in said
    admin.post(place, {**asked, "was": was_in(late)})
    source.refresh_from_db()
    assert (source.url, source.matchers, source.is_on) == ("https://192.0.2.1", 'cluster="mine"', True)


def test_a_source_that_somebody_else_added_or_removed_meanwhile_is_not_replaced_unseen(admin, cluster):
    place, asked = f"/clusters/{cluster.pk}/telemetry", {"url": "https://192.0.2.1", "is_on": "on"}
    without = was_in(admin.get(place))
    source = put_source(cluster, actor="bob", now=NOON, url="https://192.0.2.2")
    added = admin.post(place, {**asked, "was": without})
    remove_source(source, actor="bob", now=NOON)
    removed = admin.post(place, {**asked, "was": was_in(added)})

    assert (added.status_code, removed.status_code) == (409, 409)
    assert "Somebody added it after you opened this form." in added.content.decode()
    assert "Somebody removed it after you opened this form." in removed.content.decode()
    assert not TelemetrySource.objects.exists()
    assert admin.post(place, {**asked, "was": was_in(removed)}).status_code == 302


def test_what_is_removed_is_kept_as_it_was_when_it_went(admin, cluster):
    source = make.a_source(cluster)
    put_source(cluster, actor="bob", now=NOON, url="https://192.0.2.2")

    remove_source(source, actor="ada", now=NOON)

    assert AuditEntry.objects.last().evidence["url"] == "https://192.0.2.2"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"url": ""}, "Say where it is."),
        ({"url": "http://169.254.169.254"}, "which cannot be a server"),
        ({"url": "https://192.0.2.1", "matchers": "eu"}, "” is not a label matcher"),
        ({"url": "https://192.0.2.1", "secret_from": HOSTILE}, "never the secret itself"),
    ],
)
def test_what_cannot_be_a_source_is_said_at_its_field(admin, cluster, given, sentence):
    reply = admin.post(f"/clusters/{cluster.pk}/telemetry", given)

    assert reply.status_code == 400
    assert sentence in reply.content.decode().replace("&#x27;", "'")
    assert not TelemetrySource.objects.exists()


def test_a_node_shows_values_and_why_others_are_none(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-1", gpus=3)
    keys = ["temperature_celsius", "gpu_utilisation_ratio", "xid", "power_watts", "memory_used_mib"]
    make.a_source(cluster, exported=keys)
    snapshot = TelemetrySnapshot(AT, [GpuDevice("gpu-1", 0, "GPU-a"), GpuDevice("gpu-1", 1, "GPU-b")])
    for key, values, ages in [
        ("temperature_celsius", [61.0, 55.0], [5, 300]),
        ("gpu_utilisation_ratio", [0.0, math.nan], [5, math.nan]),
        ("xid", [79.0, 0.0], [5, 300]),
    ]:
        snapshot.columns[key] = MetricColumn(array("d", values), array("d", [AT - age for age in ages]))
    snapshots.store(
        cluster.pk, TelemetryReading(snapshot, frozenset(keys), {("GPU-a", ""): DeviceXid(79, "fell off the bus")})
    )

    said = table(admin, node)

    assert "GPU 0 61 °C 0% not exported not exported Xid 79 fell off the bus" in said
    assert "GPU 1 55 °C never seen" in said
    assert "5 min ago" in said
    assert "GPU 2 never seen The source has series of other GPUs of this node" in said


def test_a_metric_that_is_not_exported_says_so(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-1", gpus=1)
    make.a_source(cluster, exported=[])
    snapshots.store(
        cluster.pk, TelemetryReading(TelemetrySnapshot(AT, [GpuDevice("gpu-1", 0, "GPU-a")]), frozenset(), {})
    )

    assert table(admin, node).count("not exported") == 5


def test_under_mig_no_utilisation_is_shown_as_zero(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-1", gpus=1)
    make.a_source(cluster, exported=["gpu_utilisation_ratio"])
    devices = [GpuDevice("gpu-1", 0, "GPU-a"), GpuDevice("gpu-1", 0, "GPU-a", "7", "1g.18gb")]
    column = MetricColumn(array("d", [0.0, 0.0]), array("d", [AT, AT]))
    snapshots.store(
        cluster.pk, TelemetryReading(TelemetrySnapshot(AT, devices, {"gpu_utilisation_ratio": column}), frozenset(), {})
    )

    said = table(admin, node)

    assert "0%" not in said
    assert "GPU 0 MIG" in said
    assert "slice 7 1g.18gb not exported" in said


def test_what_slices_say_of_their_board_stands_once_at_the_board(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-1", gpus=1)
    keys = frozenset({"temperature_celsius", "engine_active_ratio"})
    make.a_source(cluster, exported=list(keys))
    devices = [GpuDevice("gpu-1", 0, "GPU-a", gi_id, "1g.18gb") for gi_id in ("7", "8")]
    columns = {
        "temperature_celsius": MetricColumn(array("d", [61.0, 61.0]), array("d", [AT, AT])),
        "engine_active_ratio": MetricColumn(array("d", [0.0, 0.5]), array("d", [AT, AT])),
    }
    snapshots.store(cluster.pk, TelemetryReading(TelemetrySnapshot(AT, devices, columns), keys, {}))

    said = table(admin, node)

    assert "GPU 0 MIG 61 °C by slice by slice" in said
    assert said.count("61 °C") == 1
    assert "slice 7 1g.18gb 0%" in said
    assert "slice 8 1g.18gb 50%" in said


def test_the_plots_are_on_the_page_of_a_gpu_node_and_load_by_themselves(admin, cluster):
    place = f"/api/v1/nodes/{make.a_node(cluster).pk}/telemetry/history"

    assert f'data-history="{place}"' in admin.get(f"/nodes/{cluster.nodes.get().pk}").content.decode()


def test_a_source_that_is_silent_keeps_what_it_said(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-1", gpus=1)
    make.a_source(cluster, state="silent", state_since=NOON - timedelta(minutes=3))
    column = MetricColumn(array("d", [61.0]), array("d", [AT - 200]))
    snapshot = TelemetrySnapshot(AT, [GpuDevice("gpu-1", 0, "GPU-a")], {"temperature_celsius": column})
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset({"temperature_celsius"}), {}))

    said = table(admin, node)

    assert "has been silent for 3 min . These are the last values" in said
    assert "61 °C no data no data no data no data 3 min 20 s ago" in said


def test_what_the_pages_cost(admin, cluster, queries_of):
    make.a_source(cluster)
    node = make.a_node(cluster)

    assert queries_of(admin, f"/parts/clusters/{cluster.pk}/telemetry") <= 7
    assert queries_of(admin, f"/parts/nodes/{node.pk}/telemetry") <= 7


def test_without_a_prometheus_the_card_says_that_exporters_are_asked(admin, cluster):
    make.an_exporter_round(cluster, exporters=5, answered=4)

    said = card(admin, cluster)

    assert "Read from 4 exporters, one by one." in said
    assert "No answer from 1." in said
    assert "Plots: six metrics per minute, last 24 h" in said


@pytest.mark.parametrize("last_seen_at", [None, NOON])
def test_exporters_that_nobody_asks_are_said_to_be_so_where_their_values_are_missed(cluster, admin, last_seen_at):
    make.an_exporter_round(
        cluster, state="too-many", exporters=5000, read_at=last_seen_at, message="5000 are too many."
    )

    said = card(admin, cluster)

    assert "No source of telemetry." in said
    assert "5000 are too many." in said


def test_without_a_prometheus_what_an_exporter_said_is_in_the_table(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-001", gpus=1)
    make.an_exporter_round(cluster, exporters=1, answered=1)
    column = MetricColumn(array("d", [61.0]), array("d", [AT]))
    snapshot = TelemetrySnapshot(AT, (GpuDevice("gpu-001", 0, "GPU-a"),), {"temperature_celsius": column})
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset({"temperature_celsius"}), {}))

    said = table(admin, node)

    assert "61" in said
    assert "not exported" in said
    assert "no source" not in said
    assert "Prometheus" not in said


def test_of_a_node_that_no_exporter_names_it_says_where_to_look(admin, cluster, redis):
    node = make.a_node(cluster, "gpu-001", gpus=1)
    make.an_exporter_round(cluster, exporters=1, answered=1)
    snapshots.store(cluster.pk, TelemetryReading(TelemetrySnapshot(AT, ()), frozenset(), {}))

    assert "has no series of a GPU of this node. Check that its exporter runs." in table(admin, node)
    make.a_source(cluster)
    assert "Check that its exporter runs and that Prometheus scrapes it." in table(admin, node)
