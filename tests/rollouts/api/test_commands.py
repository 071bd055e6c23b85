import pytest

from rollouts.models import Command, Target
from tests.callers import calling
from tests.make import a_draft, a_fleet, a_plan, a_token, a_user, give

HALTABLE = ["halts", "pauses"]
RUNNING = ["aborts", "rollbacks", "resumptions"]


def tell(client, plan, verb: str, *, key: str = "", **asked):
    headers = {"Idempotency-Key": key} if key else {}
    body = {"reason": "ECC errors", **asked}
    return client.post(f"/api/v1/plans/{plan.pk}/{verb}", body, format="json", headers=headers)


def test_a_halt_is_written_down_with_who_and_why(ada):
    plan = a_plan()

    reply = tell(ada, plan, "halts")

    assert (reply.status_code, reply.content) == (204, b"")
    command = plan.commands.get(verb="halt")
    assert (command.actor, command.reason) == ("ada", "ECC errors")


def test_an_approver_may_stop_but_not_start(amy):
    plan = a_plan()

    assert tell(amy, plan, "aborts").status_code == 403
    assert tell(amy, plan, "halts").status_code == 204


def test_halting_what_is_halted_is_a_conflict(ada):
    plan = a_plan()
    tell(ada, plan, "halts")

    reply = tell(ada, plan, "halts")

    assert reply.status_code == 409
    assert reply.json()["detail"] == "The plan is already halted."


def test_a_command_sent_twice_under_one_key_is_carried_out_once(ada):
    plan = a_plan()

    replies = [tell(ada, plan, "halts", key="a1") for _ in range(2)]

    assert [reply.status_code for reply in replies] == [204, 204]
    assert Command.objects.filter(plan=plan, verb="halt").count() == 1


def test_a_key_names_one_command_only(ada):
    plan = a_plan()
    tell(ada, plan, "pauses", key="a1")

    reply = tell(ada, plan, "halts", key="a1")

    assert reply.status_code == 409
    assert "send a new Idempotency-Key" in reply.json()["detail"]


def test_a_command_on_a_state_that_is_no_more_is_refused(ada):
    plan = a_plan()

    reply = tell(ada, plan, "halts", expected_state="promoting")

    assert reply.status_code == 409
    assert reply.json()["detail"] == "The plan is holding now. It was promoting when you read it."


@pytest.mark.parametrize(
    ("verb", "asked", "key"),
    [
        ("halts", {"reason": ""}, ""),
        ("halts", {"reason": "x" * 1001}, ""),
        ("halts", {"reason": "a\u0000b"}, ""),
        ("halts", {"expected_state": "gone"}, ""),
        ("halts", {}, "k" * 101),
        ("starts", {}, ""),
        ("starts", {"reason": "", "expected_revision": 1}, ""),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(ada, verb, asked, key):
    assert tell(ada, a_plan(), verb, key=key, **asked).status_code == 400


def test_discarding_a_draft(ada):
    plan = a_draft()

    assert tell(ada, plan, "discards").status_code == 204
    plan.refresh_from_db()
    assert plan.state == "discarded"


def test_a_node_is_taken_out_of_its_stage(ada):
    target = Target.objects.filter(stage__plan=a_plan()).last()

    reply = ada.post(f"/api/v1/targets/{target.pk}/exclusions", {"reason": "Its fan."}, format="json")

    assert reply.status_code == 204
    target.refresh_from_db()
    assert target.state == "excluded"


def test_the_last_node_of_a_stage_that_others_wait_for_is_not(ada):
    target = Target.objects.filter(stage__plan=a_plan()).first()

    reply = ada.post(f"/api/v1/targets/{target.pk}/exclusions", {"reason": "Its fan."}, format="json")

    assert reply.status_code == 409
    assert "is the last node of Canary" in reply.json()["detail"]


def test_who_may_take_a_node_out(nobody, eve, bob):
    target = Target.objects.filter(stage__plan=a_plan()).first()
    replies = [
        client.post(f"/api/v1/targets/{target.pk}/exclusions", {"reason": "x"}, format="json")
        for client in (nobody, eve, bob)
    ]

    assert [reply.status_code for reply in replies] == [401, 404, 403]


@pytest.mark.parametrize("verb", [*HALTABLE, *RUNNING, "starts", "discards"])
def test_who_may_tell_a_plan(verb, nobody, eve, bob):
    plan = a_plan()

    assert tell(nobody, plan, verb).status_code == 401
    assert tell(eve, plan, verb).status_code == 404
    refused = tell(bob, plan, verb)
    assert refused.status_code == 403
    assert f"on cluster {plan.cluster.name}" in refused.json()["detail"]
    plan.refresh_from_db()
    assert plan.state == "holding"


def test_an_operator_of_another_cluster_who_views_this_one_may_not_halt_it(now, db):
    plan = a_plan()
    user = give(a_user(role="operator", on=a_fleet()), "viewer", on=plan.cluster)

    assert tell(calling(user), plan, "halts").status_code == 403


def test_a_token_without_the_permission_may_not_do_what_its_owner_may(now, db):
    plan = a_plan()
    ada = a_user(role="operator")
    client = calling(token=a_token(ada, permissions=["see", "stop"]))

    refused = tell(client, plan, "aborts")

    assert refused.status_code == 403
    assert refused.json()["detail"].startswith("This token may not")
    assert tell(client, plan, "halts").status_code == 204
