"""Who hears that there is newer telemetry, and by which numbers."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer

from fleet.live.topics import ClusterTopics, pulse_of
from fleet.models import ExporterRound
from health.announce import number_of
from health.live.topics import TelemetryTopics
from health.web import gpus_page
from tests import make
from tests.fleet.live.test_consumer import Browser
from tests.make import NOON
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]
TOPICS = (ClusterTopics(), TelemetryTopics())


def exporters_read(cluster, at) -> None:
    ExporterRound.objects.create(cluster=cluster, lease_until=NOON, next_look_at=NOON, state_since=NOON, read_at=at)


def test_telemetry_of_a_cluster_has_telemetry_of_by_who_sees_it_or_a_pool_of_it():
    cluster = make.a_cluster()
    pool = make.a_pool(cluster)
    key = f"telemetry-{cluster.pk}"

    for place in (None, cluster, pool):
        opened = TelemetryTopics().open(make.a_user(role="viewer", on=place), key)

        assert (opened.groups, opened.keys) == ((key,), {key})


def test_every_cluster_is_only_those_that_one_sees():
    mine, _ = make.a_cluster(), make.a_cluster()
    viewer = make.a_user(role="viewer", on=mine)

    opened = TelemetryTopics().open(viewer, "telemetry")

    assert (opened.groups, opened.keys) == (("telemetry",), {f"telemetry-{mine.pk}"})


def test_a_stranger_opens_nothing():
    cluster = make.a_cluster()
    eve = make.a_user()

    assert TelemetryTopics().open(eve, f"telemetry-{cluster.pk}") is None
    assert TelemetryTopics().open(eve, "telemetry").keys == frozenset()


@pytest.mark.parametrize("name", ["telemetry-", "telemetry-x", "telemetry-999999", "cluster-1", "telemetries", ""])
def test_what_is_no_such_topic_is_not_opened(name):
    assert TelemetryTopics().open(make.a_user(role="viewer"), name) is None


def test_the_number_of_a_cluster_is_when_its_source_answered_and_without_one_its_exporters():
    by_prometheus, by_exporters, off, silent = (make.a_cluster() for _ in range(4))
    make.a_source(by_prometheus, answered_at=NOON)
    make.a_source(off, is_on=False, state="off", answered_at=NOON)
    make.a_source(silent, answered_at=None)
    for cluster in (by_prometheus, by_exporters, off, silent):
        exporters_read(cluster, NOON - timedelta(seconds=9))

    assert TelemetryTopics().sequences() == {
        f"telemetry-{by_prometheus.pk}": number_of(NOON),
        f"telemetry-{by_exporters.pk}": number_of(NOON - timedelta(seconds=9)),
        f"telemetry-{off.pk}": number_of(NOON - timedelta(seconds=9)),
    }


@pytest.mark.django_db(transaction=True)
async def test_the_socket_tells_of_ones_own_clusters_and_of_no_other():
    mine, theirs = await sync_to_async(make.a_cluster)(), await sync_to_async(make.a_cluster)()
    await sync_to_async(make.a_source)(mine, answered_at=NOON)
    viewer = await sync_to_async(make.a_user)(role="viewer", on=mine)

    async with Browser(viewer, "telemetry") as browser:
        hello = await browser.hears()
        for cluster in (theirs, mine):
            topic = f"telemetry-{cluster.pk}"
            message = {"type": "topic.changed", "topic": topic, "keys": [topic], "seq": number_of(NOON) + 15_000}
            await get_channel_layer().group_send("telemetry", message)
        told = await browser.hears()

    assert hello["seq"] == {f"telemetry-{mine.pk}": number_of(NOON)}
    assert told["topic"] == f"telemetry-{mine.pk}"


def test_a_page_is_made_at_the_numbers_that_its_socket_says_so_that_it_opens_without_a_second_fetch():
    cluster, other = make.a_cluster(), make.a_cluster()
    node = make.a_node(cluster, gpus=1)
    make.a_source(cluster, answered_at=NOON)
    exporters_read(other, NOON)
    person = make.a_user(role="viewer")

    for address in ("/", "/gpus", "/findings", f"/nodes/{node.pk}", f"/nodes/{node.pk}/gpus/0"):
        html = unescape(visiting(person).get(address).content.decode())
        topics, said = re.search(r"data-topics=\"([^\"]+)\" data-seq='([^']+)'", html).groups()
        keys = {
            key
            for name in topics.split(",")
            for topic in TOPICS
            if (opened := topic.open(person, name))
            for key in opened.keys
        }
        told = {key: number for key, number in pulse_of(TOPICS)["seq"].items() if key in keys}

        assert {key: json.loads(said).get(key, 0) for key in told} == told, address
        assert f"telemetry-{cluster.pk}" in told


def test_a_page_carries_no_number_of_a_cluster_that_is_not_its_readers():
    mine, theirs = make.a_cluster(), make.a_cluster()
    for cluster in (mine, theirs):
        make.a_source(cluster, answered_at=NOON)
        make.a_node(cluster, gpus=1)
    viewer = visiting(make.a_user(role="viewer", on=mine))

    for address in ("/", "/gpus", "/findings"):
        html = viewer.get(address).content.decode()
        assert f"telemetry-{mine.pk}" in html
        assert f"telemetry-{theirs.pk}" not in html


def test_the_number_of_a_page_is_from_before_what_it_shows(monkeypatch):
    """A round that is answered while the page is made is news to it."""
    cluster = make.a_cluster()
    make.a_node(cluster, gpus=1)
    source = make.a_source(cluster, answered_at=NOON)
    read = gpus_page.table_of

    def answered_meanwhile(*args, **given):
        type(source).objects.update(answered_at=NOON + timedelta(seconds=15))
        return read(*args, **given)

    monkeypatch.setattr(gpus_page, "table_of", answered_meanwhile)
    html = unescape(visiting(make.a_user(role="viewer")).get("/gpus").content.decode())

    assert f'"telemetry-{cluster.pk}": {number_of(NOON)}' in html
