"""Operations on many nodes: their impact, and input that starts nothing."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from fleet.models import Cluster, DisruptionBudget, Node, PriorityClass
from fleet.web import fleet_page
from kube.resources import DISRUPTION_BUDGETS
from operations import commands
from operations.impact import UNKNOWN
from operations.kinds import KINDS
from operations.models import DomainBudget, ExternalWork, Operation, Quarantine
from people.models import User
from tests.callers import calling
from tests.make import NOON, a_bookmark, a_cluster, a_node, a_pod, a_pool, a_user, an_operation
from tests.operations.test_pages import form
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(mode="operate")


def previewed(cluster: Cluster, kind: str, *nodes: Node, **given: str) -> dict:
    asked = {"cluster": cluster.pk, "kind": kind, "nodes": [node.uid for node in nodes]} | given
    with time_machine.travel(NOON, tick=False):
        ada = User.objects.filter(username="ada").first() or a_user("ada", role="operator")
        return calling(ada).post("/api/v1/operations/previews", asked, format="json").json()


def test_the_impact_names_whole_jobs_services_pools_and_losses(cluster):
    """lifecycle R45, R46."""

    pool = a_pool(cluster, "h200")
    one, two, three = (a_node(cluster, f"gpu-{number}", pool=pool) for number in range(3))
    job = {"owner_kind": "Job", "owner_name": "llama", "gpus": 8, "started_at": NOON - timedelta(hours=2)}
    a_pod(one, "llama-0", **job)
    a_pod(three, "llama-1", **job)
    a_pod(two, "lone", owner_kind="", owner_name="")
    for node in (one, two, three):
        service = {"owner_kind": "ReplicaSet", "owner_name": "web", "labels": {"app": "web"}}
        a_pod(node, f"web-{node.name}", **service)
    DisruptionBudget.objects.create(
        cluster=cluster, namespace="team-a", name="web", uid="pdb", changed_at=NOON, disruptions_allowed=0,
        selector={"matchLabels": {"app": "web"}}, current_healthy=3, desired_healthy=3, expected_pods=3,
    )  # fmt: skip
    impact = previewed(cluster, "drain", one, two)

    assert impact["sentence"].startswith(
        "2 nodes, 16 GPUs, 4 GPU pods evicted. ReplicaSet team-a/web is Ready on 3 nodes, 1 without these. "
        "Costs 32 GPU-hours at most: "
    )
    assert "Job team-a/llama (16 GPUs on 2 nodes), 1 node of them not chosen" in impact["jobs"]
    assert impact["services"] == ["ReplicaSet team-a/web is Ready on 3 nodes, 1 without these."]
    assert impact["pools"] == [
        "Pool h200: 2 of 3 nodes chosen. 3 of the pool are in service now, 1 without the chosen nodes."
    ]
    assert "2 jobs end completely." in impact["losses"]
    assert "1 pod without a controller will not start again." in impact["losses"]
    assert impact["budgets"][0].startswith("team-a/web allows no eviction now")
    assert impact["needs_typed_count"] is True


def test_the_impact_of_a_pod_past_its_budget_is_what_that_pod_loses(cluster):
    """Z12: the approver decides about it."""
    node = a_node(cluster, "gpu-0")
    lone = a_pod(node, "lone", owner_kind="", owner_name="", has_empty_dir=True)
    owned = a_pod(node, "owned")
    losses = ["1 pod without a controller will not start again.", "1 pod with emptyDir data, which is lost."]

    assert previewed(cluster, "delete-pod", node, pod_uid=lone.uid)["losses"] == losses
    assert previewed(cluster, "delete-pod", node, pod_uid=owned.uid)["losses"] == []
    assert previewed(cluster, "delete-pod", node, pod_uid="uid-of-another")["losses"] == [UNKNOWN]
    proposed = an_operation(
        cluster, node.name, steps=("delete_pod",), state="proposed", options={"pod_uid": lone.uid}, preview={}
    )
    proposed.nodes.update(node_uid=node.uid)
    shown = page(visiting(a_user("ben", role="approver")), f"/operations/{proposed.pk}").text
    assert [loss for loss in losses if f"Cannot be undone: {loss}" not in shown] == []
    asked = f"/operations/new?kind=delete-pod&node={node.pk}&pod_uid={lone.uid}"
    assert losses[0] in page(visiting(User.objects.get(username="ada")), asked).text


def test_a_quarantine_of_many_loses_nothing_and_says_how_many_serve(cluster):
    pool = a_pool(cluster, "h200")
    nodes = [a_node(cluster, f"gpu-{number}", pool=pool) for number in range(3)]
    impact = previewed(cluster, "quarantine", *nodes[:1])

    assert (impact["sentence"], impact["losses"]) == ("1 node, 8 GPUs. Running pods stay.", [])
    assert impact["needs_typed_count"] is False


def test_the_impact_counts_each_failure_domain_before_and_after_the_emptiest_first(cluster):
    """lifecycle R45. A cordoned node is not in service; an unknown domain is said to be."""
    DomainBudget.objects.create(
        cluster=cluster, kind="rack", label="example.com/rack", max_unavailable=2, by="root", at=NOON
    )
    for number, zone in enumerate("aaab"):
        a_node(cluster, f"gpu-{number}", zone=zone, nvlink_domain="x.1", labels={"example.com/rack": "r1"})
    Node.objects.filter(name="gpu-0").update(is_unschedulable=True)
    lone = a_node(cluster, "gpu-9", zone="")
    nodes = [Node.objects.get(name=f"gpu-{number}") for number in (1, 3)]

    assert previewed(cluster, "quarantine", *nodes, lone)["domains"] == [
        "Zone b: 1 of 1 node chosen. 1 in service now, 0 without the chosen nodes.",
        "NVLink domain x.1: 2 of 4 nodes chosen. 3 in service now, 1 without the chosen nodes.",
        "Rack r1: 2 of 4 nodes chosen. 3 in service now, 1 without the chosen nodes. At most 2 may be unavailable.",
        "Zone a: 1 of 3 nodes chosen. 2 in service now, 1 without the chosen nodes.",
        "Zone unknown of 1 chosen node: no label names it.",
        "Rack unknown of 1 chosen node: no label names it.",
    ]


def test_racks_without_a_label_are_unknown_and_a_release_takes_none_away(cluster):
    node = a_node(cluster, "gpu-1", zone="a")

    assert previewed(cluster, "drain", node)["domains"][-1].startswith("Racks are unknown: no node label")
    assert previewed(cluster, "note", node)["domains"] == []


@pytest.mark.parametrize("method", ["get", "post"])
def test_5000_nodes_get_a_sentence(cluster, method: str, django_assert_max_num_queries):
    a_node(cluster, "gpu-1")
    ada = visiting(a_user("ada", role="operator"))
    sent = {"kind": "drain", "nodes": ",".join(str(number) for number in range(1, 5001)), "reason": "x"}
    with django_assert_max_num_queries(12):
        answer = getattr(ada, method)("/operations/new", sent)

    assert answer.url == "/#nodes"
    assert "At most 1,000 nodes at once. You chose 5,000: choose fewer." in page(ada, "/").text
    asked = {
        "cluster": cluster.pk,
        "kind": "drain",
        "nodes": [f"uid-{number}" for number in range(5000)],
        "reason": "x",
    }
    refused = calling(a_user("bob", role="operator")).post("/api/v1/operations", asked, format="json")
    assert (refused.status_code, Operation.objects.exists()) == (400, False)


def test_nodes_of_two_clusters_get_a_sentence(cluster):
    nodes = a_node(cluster, "gpu-1"), a_node(a_cluster(), "gpu-2")
    ada = visiting(a_user("ada", role="operator"))

    ada.get("/operations/new", {"kind": "drain", "node": [node.pk for node in nodes]})
    assert "Choose nodes of one cluster." in page(ada, "/").text


def test_a_node_that_leaves_after_the_preview_starts_nothing_and_loses_no_text(cluster):
    one, two = a_node(cluster, "gpu-1"), a_node(cluster, "gpu-2")
    ada = visiting(a_user("ada", role="operator"))
    sent = form("quarantine", one, two, typed_count=2)
    two.delete()
    answer = ada.post("/operations/new", sent)

    text = answer.content.decode()
    assert (answer.status_code, Operation.objects.exists()) == (409, False)
    assert "1 chosen node left since the preview. Check the impact, then start again." in text
    assert "Xid 79." in text
    assert ada.post("/operations/new", form("quarantine", one)).status_code == 302


def test_an_old_preview_is_shown_again_if_the_impact_changed(cluster):
    """lifecycle R49."""
    node = a_node(cluster, "gpu-1")
    ada = visiting(a_user("ada", role="operator"))
    old = (datetime.now(UTC) - timedelta(minutes=3)).timestamp()
    sent = form("quarantine", node, seen="1 node, 4 GPUs. Running pods stay.", seen_at=old)

    answer = ada.post("/operations/new", sent)
    assert (answer.status_code, Operation.objects.exists()) == (409, False)
    assert "It was: 1 node, 4 GPUs." in answer.content.decode()
    assert ada.post("/operations/new", sent | {"seen": "1 node, 8 GPUs. Running pods stay."}).status_code == 302


def test_a_control_plane_node_bars_the_start_and_can_be_left_out(cluster):
    one = a_node(cluster, "gpu-1")
    two = a_node(cluster, "gpu-2", labels={"node-role.kubernetes.io/control-plane": ""})
    ada = visiting(a_user("ada", role="operator"))

    shown = page(ada, f"/operations/new?kind=drain&nodes={one.pk},{two.pk}")
    assert "gpu-2 is a control-plane node." in shown.text
    assert "Leave 1 node out" in shown.text
    assert ada.post("/operations/new", form("drain", one, two, typed_count=2)).status_code == 409
    assert not Operation.objects.exists()


def test_who_may_act_gets_ticks(cluster):
    a_node(cluster, "gpu-1")

    assert "Select gpu-1" in visiting(a_user("ada", role="operator")).get("/").content.decode()
    assert "Select gpu-1" not in visiting(a_user("bob", role="viewer")).get("/").content.decode()


def test_the_fleet_page_offers_acts_that_there_are_on_as_many_nodes_as_an_operation_takes():
    assert fleet_page.MOST_ACTED == commands.MOST_NODES
    assert {kind for kind, _ in fleet_page.NODE_ACTS} <= set(KINDS)


def test_an_impact_from_rows_that_are_not_current_is_no_impact_of_now(cluster):
    """“0 GPU pods evicted” was shown as of now where pods may not be read, or the cluster had been away for hours."""
    one = a_node(cluster, "gpu-0")
    a_bookmark(cluster, DISRUPTION_BUDGETS.name)
    assert previewed(cluster, "drain", one)["warnings"] == [
        "The work of remediators and machine controllers has not been checked yet."
    ]
    ExternalWork.objects.create(cluster=cluster, looked_at=datetime.now(UTC))
    assert previewed(cluster, "drain", one)["warnings"] == []

    cluster.bookmarks.filter(kind="pods").update(state="forbidden", last_seen_at=NOON - timedelta(hours=2))
    (pods,) = previewed(cluster, "drain", one)["warnings"]
    cluster.bookmarks.update(last_seen_at=NOON - timedelta(hours=2))

    assert pods.startswith("The impact may differ: Pods ")
    assert len(previewed(cluster, "drain", one)["warnings"]) == 3
    assert len(previewed(cluster, "quarantine", one)["warnings"]) == 1


def test_a_node_that_is_held_by_another_is_named_in_preview_and_page(cluster):
    one = a_node(cluster, "gpu-0", taints=[{"key": "medik8s.io/drain", "value": "", "effect": "NoSchedule"}])
    held = "is held by another: The Node Maintenance Operator maintains the node (medik8s.io/drain)."

    assert any(held in each for each in previewed(cluster, "drain", one)["warnings"])
    ada = visiting(User.objects.get(username="ada"))
    assert (
        "Held by another: The Node Maintenance Operator"
        in ada.get(f"/parts/nodes/{one.pk}/operations").content.decode()
    )


def test_the_life_cycle_conditions_of_a_node_are_shown_and_name_who_works_on_it(cluster):
    """Kubernetes 1.37. They were read before a repair, and no page had them."""
    since = "2026-01-08T11:50:00+00:00"
    drains = {"type": "DrainInProgress", "reason": "KubectlDrainStarted", "message": "", "since": since}
    one = a_node(cluster, "gpu-0", lifecycle=[drains])

    assert any("DrainInProgress" in each for each in previewed(cluster, "quarantine", one)["warnings"])
    shown = page(visiting(User.objects.get(username="ada")), f"/parts/nodes/{one.pk}/operations").text
    assert "DrainInProgress (condition of Kubernetes) since 2026-01-08T11:50:00 UTC: KubectlDrainStarted" in shown


def a_drain(cluster: Cluster, minutes: int, *, state: str = "done") -> None:
    operation = an_operation(cluster, steps=("cordon", "drain"), state="finished")
    began = NOON - timedelta(days=1)
    operation.nodes.update(state=state, step=1, step_since=began, state_since=began + timedelta(minutes=minutes))


def test_the_preview_of_a_drain_has_measured_times_headroom_and_products(cluster):
    """lifecycle R45."""
    one, two = (a_node(cluster, f"gpu-{number}", gpu_product="NVIDIA-H200") for number in range(2))
    other = a_node(cluster, "gpu-2", gpu_product="NVIDIA-A100")
    for number in range(2):
        a_pod(one, f"web-{number}", owner_kind="ReplicaSet", owner_name="web", gpus=4)
    a_pod(other, "lone", owner_kind="ReplicaSet", owner_name="lone", gpus=1)
    Node.objects.filter(pk=two.pk).update(gpu_allocated=3)

    impact = previewed(cluster, "drain", one, other)
    assert impact["products"] == ["NVIDIA-A100: 8 GPUs on 1 node", "NVIDIA-H200: 8 GPUs on 1 node"]
    assert impact["headroom"] == "9 GPUs to place again, 5 free on other nodes of the same product."
    assert impact["pending"] == ["team-a/web-1 (4 GPUs)", "team-a/lone (1 GPU)"]
    assert impact["duration"] == "No estimate: 0 drains were measured in 90 d."

    for minutes in (3, 5, 40):
        a_drain(cluster, minutes)
    a_drain(cluster, 30, state="failed")
    impact = previewed(cluster, "drain", one, other)
    assert impact["duration"] == (
        "3 drains took 5 min in the median, 40 min at the 90th percentile. 1 other drain failed."
    )
    form = page(
        visiting(User.objects.get(username="ada")), f"/operations/new?kind=drain&nodes={one.pk},{other.pk}"
    ).text
    assert "2 pods would wait: team-a/web-1 (4 GPUs)" in form
    assert previewed(cluster, "quarantine", one)["headroom"] == ""


def test_evicted_pods_share_the_room_that_a_node_has_left(cluster):
    one, two, three = (a_node(cluster, f"gpu-{number}", gpu_product="NVIDIA-H200") for number in range(3))
    Node.objects.filter(pk=two.pk).update(gpu_allocated=4)
    Node.objects.filter(pk=three.pk).update(gpu_allocated=0)
    for number in range(5):
        a_pod(one, f"web-{number}", owner_kind="ReplicaSet", owner_name="web", gpus=3)

    impact = previewed(cluster, "drain", one)
    assert impact["headroom"] == "15 GPUs to place again, 12 free on other nodes of the same product."
    assert impact["pending"] == ["team-a/web-3 (3 GPUs)", "team-a/web-4 (3 GPUs)"]


def test_pods_of_lower_priority_that_evicted_pods_may_end_are_counted(cluster):
    one, two = (a_node(cluster, f"gpu-{number}", gpu_product="NVIDIA-H200") for number in range(2))
    for name, value in (("inference", 1000), ("training", 10)):
        PriorityClass.objects.create(cluster=cluster, uid=name, name=name, value=value, changed_at=NOON)
    Node.objects.filter(pk=two.pk).update(gpu_allocated=8)
    of_web = {"owner_kind": "ReplicaSet", "owner_name": "web", "priority_class": "inference"}
    a_pod(one, "web-0", gpus=8, **of_web)
    a_pod(two, "web-1", gpus=4, **of_web)
    a_pod(two, "train", gpus=4, priority_class="training")

    headroom = previewed(cluster, "drain", one)["headroom"]

    assert headroom.endswith("The scheduler may end pods of lower priority for them: 1 such pod on other nodes.")


def test_a_budget_that_allows_fewer_evictions_than_the_drain_asks_for_is_named(cluster):
    one = a_node(cluster, "gpu-0")
    for number in range(3):
        a_pod(one, f"web-{number}", owner_kind="ReplicaSet", owner_name="web", labels={"app": "web"})
    given = {"selector": {"matchLabels": {"app": "web"}}, "current_healthy": 3, "desired_healthy": 2}
    budget = DisruptionBudget.objects.create(
        cluster=cluster, namespace="team-a", name="web", uid="pdb", changed_at=NOON, disruptions_allowed=1, **given
    )

    (sentence,) = previewed(cluster, "drain", one)["budgets"]
    assert sentence.startswith("team-a/web allows 1 of 3 evictions now: 3 healthy, 2 needed. It covers web-0, web-1")
    DisruptionBudget.objects.filter(pk=budget.pk).update(disruptions_allowed=3)
    assert previewed(cluster, "drain", one)["budgets"] == []


def test_rest_refuses_a_start_whose_impact_is_not_the_one_that_was_seen(cluster):
    """lifecycle R49."""
    one = a_node(cluster, "gpu-0")
    asked = {"cluster": cluster.pk, "kind": "quarantine", "nodes": [one.uid], "reason": "Xid 79."}
    ada = calling(a_user("ada", role="operator"))

    answer = ada.post("/api/v1/operations", asked | {"seen": "1 node, 4 GPUs. Running pods stay."}, format="json")
    assert (answer.status_code, Operation.objects.exists()) == (409, False)
    assert "It is now: 1 node, 8 GPUs. Running pods stay." in answer.content.decode()
    seen = previewed(cluster, "quarantine", one)["sentence"]
    assert ada.post("/api/v1/operations", asked | {"seen": seen}, format="json").status_code == 202


def test_a_cordon_of_ours_is_no_foreign_one(cluster):
    own, foreign = (a_node(cluster, name, is_unschedulable=True) for name in ("gpu-8", "gpu-9"))
    operation = an_operation(cluster, "quarantine")
    Quarantine.objects.create(
        cluster=cluster, operation=operation, node_uid=own.uid, node_name=own.name, wanted_since=NOON
    )
    warnings = " ".join(previewed(cluster, "drain", own, foreign)["warnings"])
    assert "gpu-9 is cordoned already. A foreign cordon stays." in warnings
    assert "gpu-8 is cordoned already" not in warnings
