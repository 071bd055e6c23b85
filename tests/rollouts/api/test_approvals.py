import pytest

from rollouts.models import Stage, Target
from tests.callers import calling
from tests.make import NOON, a_plan, a_stage_to_approve, a_user
from tests.rollouts.rows import answered


def decide(client, stage, **asked):
    body = {"decision": "approve", "bundle_hash": bundle(client, stage)["hash"], "reason": "Seen.", **asked}
    return client.post(f"/api/v1/stages/{stage.pk}/approvals", body, format="json")


def bundle(client, stage) -> dict:
    reply = client.get(f"/api/v1/stages/{stage.pk}/bundle")
    return reply.json() if reply.status_code == 200 else {"hash": "unseen"}


def test_an_approval_binds_the_bundle_that_was_seen(amy):
    stage = a_stage_to_approve()
    seen = bundle(amy, stage)

    reply = decide(amy, stage, reason="Canary is idle.")

    assert reply.status_code == 201
    assert (reply.json()["by"], reply.json()["decision"]) == ("amy", "approve")
    assert reply.json()["bundle_hash"] == seen["hash"]
    assert seen["content"]["targets"] == ["gpu-0"]


def test_an_approval_of_something_else_is_stale(amy):
    reply = decide(amy, a_stage_to_approve(), bundle_hash="0" * 64)

    assert reply.status_code == 409
    assert reply.json()["type"] == "urn:quarterdeck:problem:stale-bundle"


def test_a_stale_decision_is_told_what_has_changed(amy):
    """Hazard: whoever approves must know what became of what they saw."""
    canary = a_stage_to_approve()
    answered(canary, "soak", "pass")
    Stage.objects.filter(pk=canary.pk).update(state="passed")
    following = canary.plan.stages.get(index=1)
    following.move("opening", now=NOON, actor="engine", reason="Its turn.")
    seen = bundle(amy, following)["hash"]
    answered(canary, "soak", "fail")
    left = following.targets.first()
    Target.objects.filter(pk=left.pk).update(state="excluded")

    reply = decide(amy, following, bundle_hash=seen)

    assert reply.status_code == 409
    changed = [
        "Soak of Canary was pass and is now fail.", f"{left.node_name} is no longer among the nodes."
    ]  # fmt: skip
    assert reply.json()["changed"] == changed
    assert " ".join(changed) in reply.json()["detail"]


def test_a_decision_on_a_bundle_that_nobody_was_shown_is_told_so(amy):
    reply = decide(amy, a_stage_to_approve(), bundle_hash="0" * 64)

    assert "The version that you saw is unknown, so its changes cannot be listed" in reply.json()["detail"]


def test_nobody_decides_twice(amy):
    stage = a_stage_to_approve()
    decide(amy, stage)

    assert decide(amy, stage).status_code == 409


def test_nobody_approves_what_is_their_own(root):
    stage = a_stage_to_approve(a_plan(author=root.user))

    reply = decide(root, stage)

    assert reply.status_code == 403
    assert reply.json()["type"] == "urn:quarterdeck:problem:not-yours"


def test_a_rejection_needs_a_reason(amy):
    stage = a_stage_to_approve()

    assert decide(amy, stage, decision="reject", reason="").status_code == 409
    assert decide(amy, stage, decision="reject", reason="Not on a Friday.").status_code == 201


def test_what_waits_says_who_may_not_decide_and_why(amy, ada, bob):
    stage = a_stage_to_approve(a_plan(author=ada.user))

    def why_not(client):
        (row,) = client.get("/api/v1/approvals").json()["results"]
        assert row["id"] == stage.pk
        assert row["may_decide"] == (row["why_not"] == "")
        return row["why_not"]

    assert why_not(amy) == ""
    assert "approver or admin" in why_not(bob)
    decide(amy, stage)
    assert why_not(amy) == "You have already decided on this stage."


def test_the_author_who_is_an_admin_is_told_that_somebody_else_has_to_decide(root):
    a_stage_to_approve(a_plan(author=root.user))

    (row,) = root.get("/api/v1/approvals").json()["results"]

    assert row["why_not"] == "You wrote, changed or started this plan. Somebody else has to decide."


@pytest.mark.parametrize("number", [1, 3])
def test_a_list_costs_the_same_queries_whatever_its_length(now, db, number, django_assert_num_queries):
    plan = a_plan()
    type(plan).objects.update(state="promoting")
    for index in range(number):
        plan.stages.filter(index=index).update(state="opening", gate_options={"approval": {}})
    client = calling(a_user(role="approver"))

    with django_assert_num_queries(8):
        rows = client.get("/api/v1/approvals").json()["results"]

    assert len(rows) == number


def test_who_may_decide(nobody, eve, bob, ada):
    stage = a_stage_to_approve()

    assert decide(nobody, stage).status_code == 401
    assert decide(eve, stage).status_code == 404
    for client in (bob, ada):
        assert decide(client, stage).status_code == 403
    assert stage.approvals.count() == 0


def test_the_decisions_on_a_stage_are_listed(bob, amy):
    stage = a_stage_to_approve()
    decide(amy, stage)

    (row,) = bob.get(f"/api/v1/stages/{stage.pk}/approvals").json()["results"]

    assert (row["by"], row["is_standing"]) == ("amy", True)
