"""A finding of which nobody sees now whether it is still so says so, and since when: pages and REST alike."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, ExportersState
from health.models import Finding
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
AGO = NOON - timedelta(minutes=10)
THEN, SINCE = "2026-11-21T11:50:00Z", "It is unknown since 2026-11-21 11:50:00 UTC whether the fault still exists."


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster("prod"), "gpu-001")
    make.a_pool(row.cluster, "h100").nodes.add(row)
    make.an_exporter_round(row.cluster, read_at=NOON - timedelta(seconds=20), exporters=1, answered=1)
    return row


@pytest.fixture
def hot(node):
    return make.a_finding(node.cluster, "GPU 3 of gpu-001", node=node, rule="gpu-hot", title="It is hot.")


def too_many(node):
    node.cluster.exporter_round.delete()
    make.an_exporter_round(node.cluster, state=ExportersState.TOO_MANY, exporters=300, read_at=AGO)


def forbidden(node):
    node.cluster.exporter_round.delete()
    make.an_exporter_round(node.cluster, state=ExportersState.FORBIDDEN, exporters=1, answered=0, read_at=AGO)


def source_silent(node):
    make.a_source(node.cluster, state="silent", state_since=AGO)


def node_silent(node):
    since = AGO + timedelta(seconds=90)  # its last sample is too old then
    make.a_finding(node.cluster, node=node, rule="exporter-silent", fingerprint="silent", title="Silent.", since=since)


def cluster_stale(node):
    Bookmark.objects.filter(cluster=node.cluster).update(last_seen_at=AGO)


OF_ITS_GPUS = (too_many, forbidden, source_silent, node_silent)


@pytest.mark.parametrize("happens", [*OF_ITS_GPUS, cluster_stale])
def test_what_nobody_sees_now_says_since_when(node, hot, happens):
    happens(node)
    root = make.a_user(role="admin")

    rest, seen = calling(root), page(visiting(root), f"/findings?finding={hot.pk}").text
    told = rest.get(f"/api/v1/findings/{hot.pk}").json()

    assert "as of 11:50:00" in seen
    assert SINCE in seen
    assert f"- {SINCE}" in told["markdown"]
    (row,) = rest.get("/api/v1/findings?rule=gpu-hot").json()["results"]
    for each in (row, told["finding"]):
        assert (each["is_seen"], each["seen_until"]) == (False, THEN)


@pytest.mark.parametrize("happens", OF_ITS_GPUS)
def test_so_do_the_pages_of_its_node_its_pool_its_cluster_and_the_fleet(node, hot, happens):
    happens(node)
    root = visiting(make.a_user(role="admin"))

    for path in (f"nodes/{node.pk}/findings", f"pools/{node.pools.get().pk}/findings", "findings/strip"):
        assert "as of 11:50:00" in page(root, f"/parts/{path}").text
    assert "as of 11:50:00" in page(root, f"/parts/clusters/{node.cluster_id}/findings").text
    assert "as of 11:50:00" in page(root, f"/parts/nodes/{node.pk}/gpus/3/findings").text


def test_what_serves_all_nodes_of_a_cluster_is_not_seen_with_it(node):
    root = make.a_user(role="admin")
    for rule in ("operator-down", "unsupported-combination", "cluster-not-seen", "telemetry-silent"):
        make.a_finding(node.cluster, f"of {rule}", rule=rule)
    make.a_finding(node.cluster, "node gpu-002", rule="node-not-ready")  # its node left
    cluster_stale(node)

    found = calling(root).get("/api/v1/findings").json()["results"]

    assert {one["rule"] for one in found if one["seen_until"] == THEN and not one["is_seen"]} == {
        "operator-down", "unsupported-combination", "node-not-ready",
    }  # fmt: skip
    assert page(visiting(root), "/findings").text.count("as of 11:50:00") == 3


def test_what_a_rule_reads_and_nobody_sees_is_not_seen_though_its_cluster_is(node):
    make.a_finding(node.cluster, node=node, rule="pods-failing", title="Pods fail.")
    make.a_finding(node.cluster, node=node, rule="node-not-ready", subject="node", title="It is not ready.")
    Bookmark.objects.filter(cluster=node.cluster).update(listed_at=AGO)
    Bookmark.objects.filter(cluster=node.cluster, kind="pods").update(last_seen_at=AGO)

    found = calling(make.a_user(role="admin")).get("/api/v1/findings").json()["results"]

    seen = {one["rule"]: (one["is_seen"], one["seen_until"]) for one in found}
    assert seen == {"pods-failing": (False, THEN), "node-not-ready": (True, None)}
    for one in found:
        assert one["impact"]["seen_until"] == THEN
        assert one["impact"]["sentence"].endswith(" Its pods were last seen at 2026-11-21 11:50:00 UTC.")
    Bookmark.objects.update(last_seen_at=NOON)
    (one, _) = calling(make.a_user(role="admin")).get("/api/v1/findings").json()["results"]
    assert (one["impact"]["sentence"], one["impact"]["seen_until"]) == ("No pod has GPUs there.", None)


def test_what_is_seen_or_over_or_not_of_gpus_does_not(node, hot):
    caller = calling(make.a_user(role="admin"))

    def said():
        return [(one["is_seen"], one["seen_until"]) for one in caller.get("/api/v1/findings").json()["results"]]

    assert said() == [(True, None)]
    too_many(node)
    Finding.objects.update(rule="node-conditions")
    assert said() == [(True, None)]
    Finding.objects.update(rule="gpu-hot", state="resolved", resolved_at=NOON)
    assert said() == [(True, None)]


def test_that_a_node_is_silent_is_seen_while_others_are_heard(node):
    node_silent(node)

    assert "as of" not in page(visiting(make.a_user(role="admin")), "/findings").text
