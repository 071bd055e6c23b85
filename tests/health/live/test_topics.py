"""Who hears that there is newer telemetry, and by which numbers."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer

from fleet.models import ExporterRound
from health.announce import number_of
from health.live.topics import TelemetryTopics
from tests import make
from tests.fleet.live.test_consumer import Browser
from tests.make import NOON

pytestmark = pytest.mark.django_db


def exporters_read(cluster, at) -> None:
    ExporterRound.objects.create(cluster=cluster, lease_until=NOON, next_look_at=NOON, state_since=NOON, read_at=at)


def test_telemetry_of_a_cluster_is_heard_of_by_who_sees_it_or_a_pool_of_it():
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
    by_prometheus, by_exporters, off, unheard = (make.a_cluster() for _ in range(4))
    make.a_source(by_prometheus, answered_at=NOON)
    make.a_source(off, is_on=False, state="off", answered_at=NOON)
    make.a_source(unheard, answered_at=None)
    for cluster in (by_prometheus, by_exporters, off, unheard):
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
