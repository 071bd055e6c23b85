"""Whatever is wrong, every page that might say that all is well knows it: they read the same functions."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, Cluster, Node, Observer, Pod
from health.evaluation import evaluation_round
from health.models import TelemetrySource
from health.sources.exported_metrics import MISSED
from health.telemetry.metrics import METRICS
from tests import make
from tests.make import NOON
from tests.pages import page, visiting
from tests.variants import nightly_but_first

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
CALM = "No findings."
FAILING = {"status": "CrashLoopBackOff", "is_ready": False, "stuck_container": "main", "waiting_reason": "Crash"}


def missing_gpus(node):
    counts = {"nvidia.com/gpu": 6}
    Node.objects.filter(pk=node.pk).update(gpu_allocatable=6, allocatable=counts)


def not_ready(node):
    Node.objects.filter(pk=node.pk).update(is_ready=False)


def not_reporting(node):
    Node.objects.filter(pk=node.pk).update(is_ready=None)


def upgrade_failed(node):
    Node.objects.filter(pk=node.pk).update(upgrade_state="upgrade-failed")


def failing_tenant(node):
    make.a_pod(node, "infer", **FAILING)


def failing_driver(node):
    make.a_pod(node, "driver", gpus=0, operand="driver", **FAILING)


def dead_api_server(node):
    Bookmark.objects.filter(cluster=node.cluster).update(state="failing", message="Refused.")


def stale(node):
    Bookmark.objects.filter(cluster=node.cluster).update(last_seen_at=NOON - timedelta(minutes=5))


def unwatched(node):
    Observer.objects.update(lease_until=NOON - timedelta(minutes=2))


ON_A_NODE = (missing_gpus, not_ready, not_reporting, upgrade_failed, failing_tenant, failing_driver)
OF_A_CLUSTER = (dead_api_server, stale)


@pytest.fixture
def node(db):
    cluster = make.a_cluster("north")
    Observer.objects.create(cluster=cluster, epoch=3, lease_until=NOON + timedelta(hours=1))
    make.a_source(cluster)
    return make.a_node(cluster, "gpu-001")


def pages(node) -> dict[str, str]:
    viewer = visiting(make.a_user(role="viewer"))
    found = {
        "fleet": "/",
        "findings": "/findings",
        "node": f"/nodes/{node.pk}",
        "cluster": f"/clusters/{node.cluster_id}",
    }
    return {name: page(viewer, address).text for name, address in found.items()}


def test_where_nothing_is_wrong_every_page_says_so(node):
    evaluation_round.evaluate_cluster(node.cluster, now=NOON)

    seen = pages(node)

    assert CALM in seen["findings"]
    assert "0 with faults" in seen["fleet"]
    assert "ready for" in seen["node"]
    assert "live" in seen["cluster"]


@pytest.mark.parametrize("is_evaluated", nightly_but_first([True, False]))
@pytest.mark.parametrize("wrong", ON_A_NODE)
def test_what_is_wrong_on_a_node_is_wrong_on_every_page(node, wrong, is_evaluated):
    """Judged or not yet: for 66 s the findings said that all was well while the fleet said that 2 were missing."""
    wrong(node)
    if is_evaluated or Pod.objects.exists():  # what only a rule sees is seen when it has looked
        evaluation_round.evaluate_cluster(node.cluster, now=NOON)

    seen = pages(node)

    assert CALM not in seen["findings"]
    assert CALM not in seen["fleet"]
    assert "1 with faults" in seen["fleet"]
    assert "ready for" not in seen["node"].replace("not ready for", "")
    assert "1 node with faults" in seen["cluster"]


@pytest.mark.parametrize(
    "given", [{"last_seen_at": NOON - timedelta(minutes=5)}, {"state": "forbidden", "listed_at": None}]
)
def test_where_a_kind_that_rules_read_is_not_seen_no_page_is_calm(node, given):
    evaluation_round.evaluate_cluster(node.cluster, now=NOON)
    Bookmark.objects.filter(cluster=node.cluster, kind="pods").update(**given)

    seen = pages(node)

    assert CALM not in seen["findings"] + seen["fleet"]
    assert "Some data that rules read is not current: Pods of north." in seen["findings"]
    assert "Some data that rules read is not current: Pods of north." in seen["fleet"]


@pytest.mark.parametrize("wrong", OF_A_CLUSTER)
def test_a_cluster_that_is_not_seen_is_green_nowhere(node, wrong):
    wrong(node)

    seen = pages(node)

    assert CALM not in seen["findings"] + seen["fleet"]
    assert "Not seen as it is: north." in seen["findings"]
    assert "was ready" in seen["node"]
    assert "live" not in seen["cluster"].partition("GPU node")[0].partition("north")[2]


@pytest.mark.parametrize("failing", [("nodes",), ("pods", "jobs.batch"), ("nodes", "pods", "jobs.batch")])
def test_no_answer_calls_live_what_its_page_does_not(node, failing):
    """A watch that hangs is the last to tell: most kinds of the cluster fail before it."""
    make.a_bookmark(node.cluster, "jobs.batch")
    make.a_pool(node.cluster).nodes.add(node)
    make.a_pod(node)
    Bookmark.objects.filter(cluster=node.cluster, kind__in=failing).update(state="failing", message="Refused.")
    viewer = visiting(make.a_user(role="viewer"))

    (row,), (pool,), (pod,), (cluster,) = (
        viewer.get(f"/api/v1/{what}").json()["results"] for what in ("nodes", "pools", "pods", "clusters")
    )
    gpu = viewer.get(f"/api/v1/nodes/{node.pk}/gpus/0").json()

    assert "was ready" in page(viewer, f"/nodes/{node.pk}").text
    assert cluster["observation"]["state"] == "failing"
    assert {each["state"] for each in cluster["freshness"]} == {"failing"}
    assert {row["freshness"], pod["freshness"], gpu["freshness"], gpu["pods_freshness"]["state"]} == {"failing"}
    assert pool["nodes_freshness"]["state"] == "failing"
    assert pool["nodes_freshness"]["sentence"].startswith("Nodes were last observed at 2026-11-21 12:00:00 UTC")


def without_source(node):
    TelemetrySource.objects.all().delete()


def switched_off(node):
    TelemetrySource.objects.update(is_on=False, state="off")


def silent_source(node):
    TelemetrySource.objects.update(state="silent", state_since=NOON - timedelta(minutes=5))


@pytest.mark.parametrize("wrong", [without_source, switched_off, silent_source])
def test_a_cluster_whose_gpus_nobody_hears_is_green_nowhere(node, wrong):
    wrong(node)

    seen = pages(node)

    for name in ("findings", "fleet"):
        assert CALM not in seen[name], name
        assert "No GPU telemetry from north." in seen[name], name


def test_where_no_rule_has_anything_to_read_no_page_is_green(node):
    """Its source answers, and exports what exporters of these GPUs never have."""
    TelemetrySource.objects.update(exported=["called_healthy"])

    seen = pages(node)

    for name in ("findings", "fleet"):
        assert CALM not in seen[name], name
        assert "No metric that rules need is exported in north." in seen[name], name


def test_where_some_rules_have_nothing_to_read_the_green_word_says_so(node):
    """Of the temperature alone."""
    viewer = visiting(make.a_user("bob", role="viewer"))
    pool = make.a_pool(node.cluster)
    pool.nodes.add(node)
    blind = f"{len(MISSED) - 1} rules cannot check some GPUs: their metrics are not exported there."

    seen = {**pages(node), "pool": page(viewer, f"/parts/pools/{pool.pk}/findings").text}

    assert CALM in seen["findings"]
    assert "No open findings." in seen["pool"]
    for name in ("findings", "fleet", "pool"):
        assert blind in seen[name], name
    TelemetrySource.objects.update(exported=list(METRICS))
    assert "find nothing" not in page(viewer, "/").text + page(viewer, f"/parts/pools/{pool.pk}/findings").text


def test_a_cluster_without_gpus_has_none_to_be_heard(node):
    make.a_cluster("plain")
    Observer.objects.create(cluster=Cluster.objects.get(name="plain"), lease_until=NOON + timedelta(hours=1))

    assert CALM in pages(node)["findings"]


def test_a_cluster_that_nobody_watches_is_told_on_every_page(node):
    unwatched(node)
    evaluation_round.evaluate_cluster(node.cluster, now=NOON)

    for name, text in pages(node).items():
        assert "No worker watches north since 11:58:00 UTC" in text, name


@pytest.fixture
def plan(db):
    plan = make.a_stage_to_approve(make.a_plan(make.a_fleet("north"))).plan
    plan.refresh_from_db()
    Observer.objects.create(cluster=plan.cluster, epoch=3, lease_until=NOON + timedelta(hours=1))
    return plan


def pages_of_plans(plan) -> dict[str, str]:
    viewer = visiting(make.a_user(role="viewer"))
    found = {"plan": f"/plans/{plan.pk}", "plans": "/plans", "strip": "/parts/plans/strip"}
    return {name: page(viewer, address).text for name, address in found.items()}


@pytest.mark.parametrize(("wrong", "word"), [(dead_api_server, "failing, noticed at"), (stale, "stale since 11:55:00")])
def test_a_plan_of_a_cluster_that_is_not_seen_says_so_wherever_it_is_shown(plan, wrong, word):
    for name, text in pages_of_plans(plan).items():
        assert word not in text, name

    wrong(plan.cluster.nodes.first())

    for name, text in pages_of_plans(plan).items():
        assert word in text, name


def test_a_plan_of_a_cluster_that_nobody_watches_says_so(plan):
    unwatched(plan.cluster.nodes.first())

    assert "No worker watches the cluster since" in pages_of_plans(plan)["plan"]


def test_a_halted_plan_is_as_bad_on_every_page(plan):
    plan.move("halted", now=NOON, actor="engine", reason="A pod does not run.")
    evaluation_round.evaluate_cluster(plan.cluster, now=NOON)
    node = plan.cluster.nodes.first()
    viewer = visiting(make.a_user(role="viewer"))

    seen = pages(node)

    assert CALM not in seen["findings"] + seen["fleet"]
    assert "1 open finding" in seen["cluster"]
    for address in ("/", "/findings", f"/plans/{plan.pk}", "/plans"):
        html = viewer.get(address).content.decode()
        assert 'class="glyph is-stopped"' in html or 'class="glyph is-bad"' in html, address
