"""What was counted or said a while ago is dated and never green, on every page that shows it."""

import re
from datetime import timedelta

import pytest

from fleet.models import Bookmark, GoneNode, Observer, Operand
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def a_pool_seen(ago):
    cluster = make.a_cluster(seen_at=NOON - ago)
    pool = make.a_pool(cluster)
    make.a_node(cluster, pool=pool)
    return pool


@pytest.mark.parametrize("address", ["/", "/pools", "/clusters/{}"])
def test_a_pool_of_a_cluster_that_is_not_seen_says_when_it_was_counted(viewer, address):
    old, new = a_pool_seen(timedelta(minutes=3)), a_pool_seen(timedelta(seconds=3))

    assert "as of 11:57:00" in page(viewer, address.format(old.cluster_id)).text
    assert f'<tr id="pool-{old.pk}" class="is-stale">' in viewer.get("/parts/fleet/overview").content.decode()
    assert "as of 11:57:00" not in page(viewer, f"/clusters/{new.cluster_id}").text


@pytest.mark.parametrize("address", ["/", "/pools", "/clusters/{}"])
def test_nodes_in_no_pool_or_in_several_say_when_they_were_counted(viewer, address):
    cluster = make.a_cluster(seen_at=NOON - timedelta(minutes=3))
    make.a_node(cluster)
    make.a_node(cluster).pools.set([make.a_pool(cluster, "first"), make.a_pool(cluster, "second")])

    text = page(viewer, address.format(cluster.pk)).text

    assert "in no pool as of 11:57:00" in text
    assert "in several pools as of 11:57:00" in text


def test_nodes_in_no_pool_of_clusters_that_are_seen_have_no_date(viewer):
    make.a_pool(make.a_node(make.a_cluster()).cluster)
    assert "in no pool 1" in page(viewer, "/pools").text

    make.a_node(make.a_cluster(seen_at=NOON - timedelta(minutes=3)))
    assert "in no pool as of 11:57:00 or later 2" in page(viewer, "/pools").text


@pytest.mark.parametrize("address", ["/", "/pools", "/clusters/{}"])
def test_what_was_counted_on_another_day_names_it(viewer, address):
    pool = a_pool_seen(timedelta(days=3))

    assert "as of 2026-11-18 12:00:00" in page(viewer, address.format(pool.cluster_id)).text


def test_the_summary_says_when_it_was_counted(viewer):
    a_pool_seen(timedelta(seconds=3))
    assert "counted as of" not in page(viewer, "/parts/fleet/overview").text

    a_pool_seen(timedelta(minutes=3))
    assert "1 of 2 clusters not seen, counted as of 11:57:00" in page(viewer, "/parts/fleet/overview").text
    assert "sum is-stale" in viewer.get("/parts/fleet/overview").content.decode()

    a_pool_seen(timedelta(minutes=5))
    assert "2 of 3 clusters not seen, counted as of 11:55:00 or later" in page(viewer, "/parts/fleet/overview").text


def test_no_operand_of_a_node_that_is_not_seen_is_green(viewer):
    node = make.a_node(make.a_cluster(seen_at=NOON - timedelta(minutes=3)))
    make.a_pod(
        node, "driver", namespace="gpu-operator", gpus=0, operand="driver", ready_since=NOON - timedelta(days=20)
    )

    seen = page(viewer, f"/parts/nodes/{node.pk}").text
    stack = seen.partition("GPU stack")[2]

    assert "was ready, as of 11:57:00" in stack
    assert "20 d" not in stack.partition("Driver")[2][:60]
    assert seen.count("as of 11:57:00") == 5  # the operand, and the heads of stack, checklist, driver and GPUs
    assert "is-ok" not in viewer.get(f"/parts/nodes/{node.pk}").content.decode()


def test_a_first_list_is_called_loading_and_not_unseen(viewer):
    cluster = make.a_cluster("north")
    Observer.objects.create(cluster=cluster, epoch=1, lease_until=NOON + timedelta(minutes=1))
    first = {"state": "listing", "listed_at": None, "last_seen_at": None, "state_since": NOON - timedelta(seconds=12)}
    Bookmark.objects.update(**first)
    addresses = (
        f"/parts/clusters/{cluster.pk}",
        "/parts/fleet/overview",
        "/parts/fleet/clusters",
        "/parts/findings/strip",
    )

    shown = [page(viewer, address).text for address in addresses]

    assert ["loading: nodes, pods (12 s)" in text for text in (shown[0], *shown[1:])] == [True] * 4
    assert not any(word in text for text in shown for word in ("not seen", "Not seen", "need attention"))


def test_a_cluster_that_fails_is_not_watched_in_green(viewer):
    cluster = make.a_cluster(seen_at=NOON - timedelta(seconds=30))
    Observer.objects.create(cluster=cluster, epoch=4, lease_until=NOON + timedelta(minutes=1), batch=2, batch_at=NOON)
    assert "watched, but not observed" not in page(viewer, f"/parts/clusters/{cluster.pk}").text

    Bookmark.objects.update(state="failing")

    text = page(viewer, f"/parts/clusters/{cluster.pk}").text
    assert "watched, but not observed" in text
    assert "as of 11:59:30" in text.partition("Lag of the last flush")[2].partition("UID")[0]


def test_what_a_cluster_counts_it_lists(viewer):
    node = make.a_node(make.a_cluster(), "gpu-001")
    make.a_finding(node.cluster, "cluster", title="Of the cluster.", severity="note")
    make.a_finding(node.cluster, node=node, title="Of a node.", severity="note")
    make.a_finding(node.cluster, "later", title="Being confirmed.", opened_at=None)

    text = page(viewer, f"/parts/clusters/{node.cluster_id}").text

    assert "2 open findings, 1 being confirmed" in text
    assert all(each in text for each in ("Of the cluster.", "Of a node.", "Being confirmed."))


def test_many_open_findings_hide_no_new_one_on_the_fleet_page(viewer):
    cluster = make.a_cluster()
    for number in range(7):
        make.a_finding(cluster, f"s{number}", severity="critical", title="Old.")
    make.a_finding(cluster, "cluster", title="Just begun.", opened_at=None)

    text = page(viewer, "/").text

    assert "Just begun." in text
    assert "all: 7 open, 1 being confirmed" in text


def test_the_tombstone_on_an_open_page_leaves_nothing_of_the_node_below_but_its_timeline(viewer):
    node = make.a_node(make.a_cluster())
    row = {"cluster": node.cluster, "uid": node.uid, "name": node.name}
    GoneNode.objects.create(node_id=node.pk, gone_at=NOON, was={}, **row)
    make.a_node_event(node, "The driver is 570.172.08.")
    pk, beside = node.pk, page(viewer, f"/nodes/{node.pk}").text.partition("Timeline")[2]
    node.delete()

    assert "kubectl" not in beside
    assert "label" not in beside
    assert "The driver is" not in page(viewer, f"/parts/nodes/{pk}").text  # the page has it once
    assert "The driver is 570.172.08." in page(viewer, f"/parts/nodes/{pk}/timeline").text
    assert f"/parts/nodes/{pk}/timeline" in viewer.get(f"/nodes/{pk}").content.decode()


def test_the_legend_of_the_map_names_every_border(viewer):
    make.a_node(make.a_cluster())

    text = page(viewer, "/").text

    assert "not ready, not reporting or upgrade failed" in text
    assert "cordoned, or has a finding" in text


@pytest.mark.parametrize("address", ["/", "/findings", "/clusters/{}"])
def test_what_was_found_on_a_node_that_is_not_seen_says_when_that_was(viewer, address):
    node = make.a_node(make.a_cluster(seen_at=NOON - timedelta(minutes=3)))
    make.a_finding(node.cluster, node=node, title="A pod fails.", since=NOON - timedelta(minutes=9))

    assert "for 9 min as of 11:57:00" in page(viewer, address.format(node.cluster_id)).text
    Bookmark.objects.update(last_seen_at=NOON)
    assert "for 9 min as of" not in page(viewer, address.format(node.cluster_id)).text


def test_no_driver_object_of_a_cluster_that_is_not_seen_is_green(viewer):
    cluster = make.a_fleet(nodes=0)
    cluster.driver_objects.update(state="ready")
    assert "ready" in page(viewer, f"/clusters/{cluster.pk}").text

    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=NOON - timedelta(minutes=3))

    panel = (
        viewer.get(f"/clusters/{cluster.pk}")
        .content.decode()
        .partition('id="driver-title"')[2]
        .partition("</section>")[0]
    )
    assert re.search("ready, as of <time[^>]*>11:57:00<", panel)
    assert "is-ok" not in panel


def test_a_cluster_that_waits_for_its_next_turn_is_not_said_to_have_no_worker(viewer):
    cluster = make.a_cluster(seen_at=NOON - timedelta(minutes=3))
    just_over = NOON - timedelta(seconds=3)
    Observer.objects.create(cluster=cluster, epoch=4, lease_until=just_over, next_look_at=just_over, failures=2)

    text = page(viewer, f"/parts/clusters/{cluster.pk}").text

    assert "2 times without an answer" in text
    assert "No worker" not in text


@pytest.mark.parametrize("state", ["forbidden", "failing", "listing"])
def test_no_operand_of_a_node_whose_pods_are_not_read_any_more_is_green(viewer, state):
    node = make.a_node(make.a_cluster())
    make.a_pod(node, "driver", namespace="gpu-operator", gpus=0, operand="driver")
    assert "is-ok" in viewer.get(f"/parts/nodes/{node.pk}/stack").content.decode()

    Bookmark.objects.filter(kind="pods").update(state=state, last_seen_at=NOON - timedelta(minutes=3))

    assert "is-ok" not in viewer.get(f"/parts/nodes/{node.pk}/stack").content.decode()


@pytest.mark.parametrize("kinds", [("nodes", "pods"), ("pods",)])
def test_no_tenant_of_a_node_and_no_holder_of_a_gpu_is_shown_as_there_now_that_is_not_seen(viewer, kinds):
    node = make.a_node(make.a_cluster())
    make.a_pod(node, "train-0", gpus=8, status="Running")
    of_node, of_gpu = f"/parts/nodes/{node.pk}", f"/parts/nodes/{node.pk}/gpus/0"
    assert "was Running" not in page(viewer, of_node).text
    assert "Pods with this GPU now team-a/train-0" in page(viewer, of_gpu).text

    Bookmark.objects.filter(kind__in=kinds).update(state="failing", last_seen_at=NOON - timedelta(minutes=3))

    pods = viewer.get(of_node).content.decode().partition('id="pods-title"')[2].partition("</section>")[0]
    assert "was Running, as of 11:57:00" in pods
    assert "is-ok" not in pods
    assert "Pods with this GPU as of 11:57:00 team-a/train-0" in page(viewer, of_gpu).text


def test_what_was_last_seen_on_another_day_names_that_day(viewer):
    cluster, day = make.a_fleet(nodes=1), "2026-11-18 12:00:00"
    Operand.objects.update(desired=1, ready=1, updated=1)
    node = cluster.nodes.get()
    make.a_pod(node, "train-0", gpus=8, status="Running")
    Bookmark.objects.update(state="failing", last_seen_at=NOON - timedelta(days=3))

    of_node, of_cluster = (page(viewer, at).text for at in (f"/nodes/{node.pk}", f"/clusters/{cluster.pk}"))

    assert f"stale since {day}" in of_cluster
    assert f"rolled out, as of {day}" in of_cluster
    assert f"was Running, as of {day}" in of_node
    assert re.search(f"was [a-z ]+, as of {day}", of_node.partition("GPU stack")[2])


@pytest.mark.parametrize("state", ["forbidden", "failing", "listing"])
def test_operands_and_driver_objects_that_are_not_read_any_more_are_not_green(viewer, state):
    cluster = make.a_fleet(nodes=0)
    cluster.driver_objects.update(state="ready")
    Operand.objects.update(desired=1, ready=1, updated=1)
    text = page(viewer, f"/clusters/{cluster.pk}").text
    assert "rolled out" in text
    assert "rolled out, as of" not in text

    kinds = Bookmark.objects.exclude(kind__in=("nodes", "pods"))
    kinds.update(state=state, last_seen_at=NOON - timedelta(minutes=3))

    text = page(viewer, f"/clusters/{cluster.pk}").text
    assert "rolled out, as of 11:57:00" in text
    assert "ready, as of 11:57:00" in text
