"""The pages and REST of operations, as an operator, a viewer and a stranger."""

import pytest

from fleet.models import Cluster, Node
from operations.models import Operation, OperationNode, Quarantine
from operations.web import operation_page
from tests.callers import calling
from tests.make import NOON, a_cluster, a_node, a_user, an_operation
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(mode="operate")


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return a_node(cluster, "gpu-1")


def form(kind: str, *nodes: Node, **given):
    fields = {"kind": kind, "node": [node.pk for node in nodes], "reason": "Xid 79.", "deadline_min": 30, "at_once": 5}
    return fields | given


def test_an_operator_quarantines_a_node_in_three_clicks(node):
    ada = visiting(a_user("ada", role="operator"))

    assert "Act on this node Quarantine Drain" in page(ada, f"/nodes/{node.pk}").text
    assert "1 node, " in page(ada, f"/operations/new?kind=quarantine&node={node.pk}").text
    answer = ada.post("/operations/new", form("quarantine", node), follow=True)

    assert answer.status_code == 200
    operation = Operation.objects.get()
    assert (operation.asked_by, operation.steps) == ("ada", ["cordon"])
    assert "Quarantine of 1 node" in page(ada, f"/operations/{operation.pk}").text
    assert "gpu-1" in page(ada, "/operations").text or "Quarantine of 1 node" in page(ada, "/operations").text


def test_a_viewer_sees_why_the_buttons_are_locked_and_is_refused(node):
    bob = visiting(a_user("bob", role="viewer"))

    assert "you need the role" in page(bob, f"/parts/nodes/{node.pk}/operations").text
    assert bob.post("/operations/new", form("drain", node)).status_code == 409
    assert not Operation.objects.exists()


def test_a_stranger_gets_404(node):
    other = a_cluster("south")
    eve = visiting(a_user("eve", role="operator", on=other))
    operation = an_operation(node.cluster)

    assert eve.get(f"/operations/new?kind=drain&node={node.pk}").status_code == 404
    assert eve.post("/operations/new", form("drain", node)).status_code == 404
    assert eve.get(f"/operations/{operation.pk}").status_code == 404
    assert eve.post(f"/operations/{operation.pk}/cancel", {"reason": "x"}).status_code == 404
    api = calling(a_user("eva", role="operator", on=other))
    assert api.get(f"/api/v1/operations/{operation.pk}").status_code == 404
    assert api.get("/api/v1/operations").json()["results"] == []


def test_many_nodes_need_their_number_typed(cluster):
    nodes = [a_node(cluster, f"gpu-{number}") for number in range(3)]
    ada = visiting(a_user("ada", role="operator"))

    refused = ada.post("/operations/new", form("quarantine", *nodes))
    assert refused.status_code == 409
    assert "Type the number of nodes, 3, to confirm." in refused.content.decode()
    assert ada.post("/operations/new", form("quarantine", *nodes, typed_count=3)).status_code == 302


def test_the_failed_nodes_are_shown_where_not_all_are(cluster, monkeypatch):
    monkeypatch.setattr(operation_page, "SHOWN", 2)
    nodes = [a_node(cluster, f"gpu-{number}") for number in range(4)]
    ada = visiting(a_user("ada", role="operator"))
    ada.post("/operations/new", form("quarantine", *nodes, typed_count=4))
    operation = Operation.objects.get()
    operation.nodes.filter(node_name="gpu-0").update(state="done")
    operation.nodes.filter(node_name="gpu-3").update(state="failed", reason="It did not answer.")

    shown = page(ada, f"/operations/{operation.pk}").text

    assert "It did not answer." in shown
    assert ("gpu-3" in shown, "gpu-1" in shown, "and 2 more in REST" in shown) == (True, True, True)


def test_the_list_names_the_first_nodes_of_each_operation_and_counts_the_others(cluster):
    an_operation(cluster, "gpu-9")
    an_operation(cluster, *(f"gpu-{number}" for number in range(5)))

    shown = page(visiting(a_user("ada", role="operator")), "/operations").text

    assert "Quarantine of 5 nodes gpu-0, gpu-1, gpu-2 and 2 more" in shown
    assert "Quarantine of 1 node gpu-9 " in shown


def test_rest_starts_shows_and_repeats_by_key(node):
    ada = calling(a_user("ada", role="operator"))
    asked = {"cluster": node.cluster_id, "kind": "drain", "nodes": [node.uid], "reason": "Xid 79."}

    only = {name: asked[name] for name in ("cluster", "kind", "nodes")}
    seen = ada.post("/api/v1/operations/previews", only, format="json").json()
    first = ada.post("/api/v1/operations", asked, format="json", headers={"Idempotency-Key": "k1"})
    again = ada.post("/api/v1/operations", asked, format="json", headers={"Idempotency-Key": "k1"})
    other = ada.post(
        "/api/v1/operations", asked | {"kind": "release"}, format="json", headers={"Idempotency-Key": "k1"}
    )

    assert seen["nodes"] == 1
    assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])
    assert other.status_code == 409
    path = f"/api/v1/operations/{first.json()['id']}"
    assert ada.get(f"{path}/nodes").json()["results"][0]["state"] == "pending"
    assert ada.post(f"{path}/pauses", {"reason": "Wait."}, format="json").status_code == 204
    assert ada.post(f"{path}/pauses", {"reason": "Wait."}, format="json").status_code == 409
    assert ada.post(f"{path}/cancellations", {"reason": "No."}, format="json").status_code == 204
    assert ada.get(path).json()["state"] == "cancelled"


def test_a_form_whose_operation_was_cancelled_starts_nothing_and_says_so(node):
    ada, bob = visiting(a_user("ada", role="operator")), visiting(a_user("bob", role="operator"))
    ada.post("/operations/new", form("quarantine", node, key="form1"))
    bob.post(f"/operations/{Operation.objects.get().pk}/cancel", {"reason": "Not this one."})

    refused = ada.post("/operations/new", form("quarantine", node, key="form1"))

    assert refused.status_code == 409
    assert "(Cancel by bob: Not this one)" in refused.content.decode()
    assert Operation.objects.count() == 1


def test_a_retry_does_not_end_the_pause_of_a_person(cluster):
    operation = an_operation(cluster, "gpu-1", "gpu-2")
    operation.nodes.filter(node_name="gpu-1").update(state="failed")
    ada, bob = visiting(a_user("ada", role="operator")), visiting(a_user("bob", role="operator"))
    ada.post(f"/operations/{operation.pk}/pause", {"reason": "Smoke."})

    assert "Retry failed nodes" not in page(bob, f"/parts/operations/{operation.pk}").text
    refused = bob.post(f"/operations/{operation.pk}/retry", {"reason": "Try it."}, follow=True).content.decode()
    operation.refresh_from_db()

    assert "ada paused this operation. Resume it first, then retry the failed nodes." in refused
    assert (operation.state, list(operation.nodes.values_list("state", flat=True))) == ("paused", ["failed", "pending"])
    bob.post(f"/operations/{operation.pk}/resume", {"reason": "No smoke."})
    bob.post(f"/operations/{operation.pk}/retry", {"reason": "Try it."})
    assert list(operation.nodes.values_list("state", flat=True)) == ["pending", "pending"]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"nodes": []}, 400),
        ({"nodes": ["uid-of-nobody"]}, 400),
        ({"kind": "reboot"}, 400),
        ({"reason": ""}, 400),
        ({"cluster": 2**40}, 404),
        ({"deadline_s": 1}, 400),
        ({"at_once": 0}, 400),
    ],
)
def test_bad_input_starts_nothing(node, given, status):
    ada = calling(a_user("ada", role="operator"))
    asked = {"cluster": node.cluster_id, "kind": "drain", "nodes": [node.uid], "reason": "x"} | given

    assert ada.post("/api/v1/operations", asked, format="json").status_code == status
    assert not Operation.objects.exists()


def test_an_observed_only_cluster_is_not_changed(node):
    Cluster.objects.update(mode="observe-only")
    ada = calling(a_user("ada", role="operator"))
    asked = {"cluster": node.cluster_id, "kind": "drain", "nodes": [node.uid], "reason": "x"}

    answer = ada.post("/api/v1/operations", asked, format="json")

    assert answer.status_code == 409
    assert "observe-only" in answer.json()["detail"]


def test_a_drain_shows_the_pod_that_blocks_it(node):
    operation = an_operation(node.cluster, steps=("cordon", "drain"))
    OperationNode.objects.all().delete()
    pods = [{"name": "team-a/web-1", "owner": "ReplicaSet/web", "state": "refused", "reason": "kept"}]
    OperationNode.objects.create(
        operation=operation, position=0, node_uid=node.uid, node_name=node.name, state="running", state_since=NOON,
        step=1, reason="The budget of team-a/web-1 prevents its eviction.", progress={"pods": pods, "left": 1, "of": 4},
    )  # fmt: skip
    Quarantine.objects.create(
        cluster=node.cluster, operation=operation, node_uid=node.uid, node_name=node.name, wanted_since=NOON
    )
    bob = visiting(a_user("bob", role="viewer"))

    text = page(bob, f"/operations/{operation.pk}").text

    assert "The budget of team-a/web-1 prevents its eviction." in text
    assert "1 of 4" in text
    assert "Quarantined" in page(bob, f"/parts/nodes/{node.pk}/operations").text
    assert "gpu-1" in page(bob, "/operations").text
