import pytest

from fleet.models import Operand
from rollouts.models import PlanPull
from tests.callers import calling
from tests.make import a_draft, a_fleet, a_pod, a_user, an_image_pull

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(now):
    fleet = a_fleet()
    daemonset = Operand.objects.get()
    Operand.objects.update(image="nvcr.io/nvidia/driver:570.172.08-ubuntu22.04")
    for node in fleet.nodes.all():
        a_pod(node, f"driver-{node.name}", namespace="gpu-operator", gpus=0, operand="driver", owner_uid=daemonset.uid)
    return a_draft(fleet)


def pull(client, plan, *, key: str = "", **given):
    headers = {"Idempotency-Key": key} if key else {}
    body = {"reason": "Before the window."} | given
    return client.post(f"/api/v1/plans/{plan.pk}/image-pulls", body, format="json", headers=headers)


def test_a_pull_is_answered_with_its_operation_and_nodes(ada, plan):
    reply = pull(ada, plan, nodes_each=2)

    said = reply.json()
    assert reply.status_code == 202
    assert (said["plan"], said["nodes_each"], said["is_proven"]) == (plan.pk, 2, False)
    assert (said["operation"]["kind"], said["operation"]["asked_by"]) == ("pull-image", "ada")
    assert [node["image"] for node in said["nodes"]] == [f"nvcr.io/nvidia/driver:{plan.to_version}-ubuntu22.04"] * 2
    assert said["sentence"] == f"{plan.to_version} on 2 nodes: no result yet."


def test_sent_twice_under_one_key_it_is_one(ada, plan):
    first, second = (pull(ada, plan, key="a1") for _ in range(2))

    assert first.json()["operation"]["id"] == second.json()["operation"]["id"]
    assert PlanPull.objects.count() == 1


def test_a_second_one_is_a_conflict(ada, plan):
    pull(ada, plan)

    reply = pull(ada, plan)

    assert reply.status_code == 409
    assert (
        "An image pull of this plan is already in progress. Wait until it ends, or cancel it" in reply.json()["detail"]
    )


def test_an_approver_may_cancel_it_and_not_ask_for_it(ada, amy, plan):
    path = f"/api/v1/operations/{pull(ada, plan).json()['operation']['id']}"

    assert pull(amy, plan).status_code == 403
    assert amy.post(f"{path}/cancellations", {"reason": "x"}, format="json").status_code == 204
    assert amy.get(path).json()["state_reason"] == "Cancel by amy: x"


def test_who_may_not_see_the_plan_finds_no_pull(eve, plan):
    an_image_pull(plan)

    assert eve.get(f"/api/v1/plans/{plan.pk}/image-pulls").status_code == 404


def test_the_list_has_the_newest_first_and_every_outcome(bob, plan):
    an_image_pull(plan, "failed", state="finished")
    an_image_pull(plan, "pulled", "unknown")

    rows = bob.get(f"/api/v1/plans/{plan.pk}/image-pulls").json()["results"]

    assert [[node["outcome"] for node in row["nodes"]] for row in rows] == [["pulled", "unknown"], ["failed"]]


def test_a_number_out_of_bounds_names_its_field(ada, plan):
    reply = pull(ada, plan, nodes_each=51)

    assert reply.status_code == 400
    assert "nodes_each" in str(reply.json())


def test_a_token_without_the_right_asks_for_none(plan, now):
    viewer = calling(a_user("vic", role="viewer"))

    assert pull(viewer, plan).status_code == 403
