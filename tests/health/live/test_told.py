"""What people do, and what a worker writes down, is told to who looks at that cluster: no page asks by the clock."""

import pytest
from asgiref.sync import sync_to_async

from fleet.history.notes import add_note
from fleet.pools.approval_rules import set_approval
from fleet.pools.changes import change_pool, create_pool, delete_pool
from health.inbox import acts
from health.sources import hours
from health.telemetry.hours import HourTally
from tests import make
from tests.fleet.live.test_consumer import Browser, a_cluster_at
from tests.health.telemetry.test_hours import BEGUN, BOARD, said
from tests.make import NOON

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def acknowledged(cluster):
    acts.acknowledge(make.a_finding(cluster, node=make.a_node(cluster)), actor="ada", now=NOON)


def made(cluster):
    create_pool(cluster=cluster, name="h200", selector="", actor="ada", now=NOON)


def changed(cluster):
    change_pool(make.a_pool(cluster), name="renamed", actor="ada", now=NOON)


def deleted(cluster):
    delete_pool(make.a_pool(cluster), actor="ada", now=NOON)


def asked_for(cluster):
    set_approval(cluster, "required", actor="ada", reason="", now=NOON)


def noted(cluster):
    add_note(make.a_node(cluster, "gpu-1"), make.a_user("grace", role="operator"), "Its fan.", now=NOON)


def written_down(cluster):
    for at in (BEGUN, BEGUN + 60, BEGUN + 3600):
        hours.count(cluster.pk, said(at, BOARD, temperature_celsius=50.0), now=at)


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (acknowledged, "findings"),
        (made, "pools"),
        (changed, "pools"),
        (deleted, "pools"),
        (asked_for, "pools"),
        (noted, "notes"),
        (written_down, "hours"),
    ],
)
async def test_who_looks_at_the_cluster_is_told(act, kind):
    cluster = await sync_to_async(a_cluster_at)(7)
    viewer = await sync_to_async(make.a_user)(role="viewer")

    async with Browser(viewer, f"cluster-{cluster.pk}") as browser:
        await browser.hears()
        await sync_to_async(act)(cluster)
        told = await browser.hears()

    assert (told["topic"], told["seq"], told["prev"], told["kinds"]) == (f"cluster-{cluster.pk}", 7, 7, [kind])


async def test_a_note_is_told_of_with_its_node():
    cluster = await sync_to_async(a_cluster_at)(7)
    viewer = await sync_to_async(make.a_user)(role="viewer")

    async with Browser(viewer, f"cluster-{cluster.pk}") as browser:
        await browser.hears()
        await sync_to_async(noted)(cluster)
        told = await browser.hears()

    node = await sync_to_async(cluster.nodes.get)()
    assert [key for key, *_ in told["nodes"]] == [node.pk]


def test_an_hour_of_which_nothing_is_written_is_not_told_of(monkeypatch):
    told = []
    monkeypatch.setattr(hours.announce, "cluster_changed", lambda *_, **given: told.append(given))
    cluster = make.a_cluster()

    hours._write_or_log(cluster.pk, HourTally.begun(said(BEGUN), now=BEGUN), now=BEGUN + 3600)

    assert told == []
