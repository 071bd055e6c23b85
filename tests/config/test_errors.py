import json

import pytest
from django.test import Client
from rest_framework.test import APIClient

from config.errors import REFUSALS, Meaning, meaning_of
from edges.transition_errors import IllegalMove, LostRace
from rollouts.commands.refusals import OutOfDate, Refusal, StaleBundle
from rollouts.lifecycle import PlanState
from tests.make import a_user

MEMBERS = {"type", "title", "status", "detail", "instance", "request_id"}


def problem(reply, status: int) -> dict:
    assert reply.status_code == status
    assert reply["Content-Type"] == "application/problem+json"
    said = reply.json()
    assert set(said) >= MEMBERS
    assert said["status"] == status
    assert said["request_id"] == reply["X-Request-ID"]
    return said


def post(client, path: str, body: str, content_type: str = "application/json", **more):
    return client.post(f"/api/v1/{path}", body, content_type=content_type, **more)


def test_who_is_not_signed_in_is_told_how(nobody):
    said = problem(nobody.get("/api/v1/nodes"), 401)

    assert "Authorization: Bearer" in said["detail"]
    assert "/api/v1/session" in said["detail"]


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v1/nodes/1/nothing", "/api/v2/nodes", "/api/v1/nodes/x", "/api/"]
)
def test_a_path_that_does_not_exist_is_a_problem_too(bob, path):
    said = problem(bob.get(path), 404)

    assert said["detail"] == "Not found, or you may not see it."
    assert said["instance"] == path


def test_a_method_that_does_not_work_names_those_that_do(bob):
    said = problem(bob.put("/api/v1/plans", {}, format="json"), 405)

    assert said["detail"] == "PUT does not work here. Use GET, POST, HEAD, OPTIONS."


def test_only_json_is_read(ada):
    assert "application/json" in problem(post(ada, "plans", "a=1", "application/x-www-form-urlencoded"), 415)["detail"]


def test_only_json_is_served(bob):
    problem(bob.get("/api/v1/nodes", headers={"Accept": "application/xml"}), 406)


@pytest.mark.parametrize("body", ["{", "\xff", '{"a": NaN}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_what_is_no_json_is_a_bad_request(ada, body):
    said = problem(post(ada, "plans", body.encode("latin-1")), 400)

    assert said["detail"].startswith("The body is ")


@pytest.mark.parametrize("body", ["[]", '"text"', "3", "null"])
def test_json_of_another_shape_is_a_bad_request(ada, body):
    problem(post(ada, "plans", body), 400)


def test_a_body_beyond_any_plan_is_refused_unread(ada):
    problem(post(ada, "plans", json.dumps({"title": "x" * 1_100_000})), 413)


def test_every_field_that_is_wrong_is_named(ada):
    said = problem(post(ada, "plans", '{"stages": [{"name": "a", "kind": "canary"}, {}]}'), 400)

    assert [error["field"] for error in said["errors"]] == [
        "driver_object", "to_version", "stages.1.name", "stages.1.kind",
    ]  # fmt: skip


def test_of_many_fields_that_there_are_not_some_are_named(ada):
    said = problem(post(ada, "tokens", json.dumps({f"f{number}" + "x" * 200: 1 for number in range(500)})), 400)

    unknown = [error["field"] for error in said["errors"] if error["field"].startswith("f")]
    assert len(unknown) == 20
    assert {len(field) for field in unknown} == {100}


def test_a_bug_shows_no_stack_and_can_be_found_in_the_log(bob, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr("fleet.api.nodes.see_nodes", broken)
    bob.raise_request_exception = False

    said = problem(bob.get("/api/v1/nodes"), 500)

    assert "swordfish" not in json.dumps(said)
    assert "swordfish" in caplog.text


def test_a_host_that_is_not_ours_is_a_problem(db):
    said = problem(APIClient().get("/api/v1/nodes", headers={"Host": "evil.example"}), 400)

    assert "QUARTERDECK_ALLOWED_HOSTS" in said["detail"]


@pytest.mark.parametrize(("given", "is_kept"), [("a-proxys-own-id", True), ("short", False), ("x\ninjected=1", False)])
def test_a_request_keeps_the_name_a_proxy_gave_it_where_that_is_sane(bob, given, is_kept):
    reply = bob.get("/api/v1/nodes", headers={"X-Request-ID": given})

    assert (reply["X-Request-ID"] == given) == is_kept


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (IllegalMove("A plan", PlanState.DRAFT, PlanState.PROMOTED), 409),
        (LostRace("late"), 409),
        (Refusal("no"), 409),
        (StaleBundle("old"), 409),
        (RuntimeError("bug"), None),
    ],
)
def test_what_a_refusal_means(error, status):
    meaning = meaning_of(error)

    assert (meaning.status if meaning else None) == status


def test_a_new_kind_of_refusal_means_what_its_base_does():
    class Newer(OutOfDate):
        pass

    assert meaning_of(Newer("x")) == REFUSALS[OutOfDate]


def test_no_two_refusals_share_a_name_unless_they_mean_the_same():
    meanings: dict[str, Meaning] = {}
    for meaning in REFUSALS.values():
        assert meanings.setdefault(meaning.slug, meaning) == meaning


def test_a_page_that_does_not_exist_is_no_problem_json(now, db):
    client = Client()
    client.force_login(a_user(role="viewer"))

    assert client.get("/nothing-here")["Content-Type"].startswith("text/html")
