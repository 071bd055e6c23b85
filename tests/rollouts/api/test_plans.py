import json
from datetime import timedelta

import pytest

from fleet.models import Bookmark, GoneNode
from people.models import AuditEntry
from rollouts.models import Command, Hold, PendingCommand, Plan
from tests.callers import calling
from tests.make import NOON, a_draft, a_fleet, a_plan, a_pool, a_stage_to_approve, a_user
from tests.pages import page, visiting
from tests.rollouts.rows import in_state

STAGES = [
    {
        "name": "Canary",
        "kind": "canary",
        "count": 1,
        "gate_options": {"driver_version": {}, "soak": {"duration_s": 60}},
    },
    {"name": "The rest", "kind": "pool"},
]


def a_request(cluster, **given) -> dict:
    driver_object = cluster.driver_objects.get(kind="NVIDIADriver")
    return {"driver_object": driver_object.pk, "to_version": "580.126.20", "stages": STAGES, **given}


def post(client, path: str, **asked):
    return client.post(f"/api/v1/{path}", asked, format="json")


def test_drafting_a_plan(ada):
    cluster = a_fleet()

    reply = post(ada, "plans", **a_request(cluster, title="October driver"))

    assert reply.status_code == 201, reply.json()
    plan = reply.json()
    assert (plan["state"], plan["author"], plan["from_version"]) == ("draft", "ada", "570.172.08")
    assert [stage["name"] for stage in plan["stages"]] == ["Canary", "The rest", "Rollback"]
    assert plan["stages"][0]["gate_options"] == {"approval": {}, "driver_version": {}, "soak": {"duration_s": 60}}


@pytest.mark.parametrize("text", ["latest", "580", "580.126.x", "５８０.126.20", "570.1-rc1"])
def test_text_that_is_no_version_is_refused_when_it_is_written(ada, text: str):
    cluster = a_fleet()
    plan = post(ada, "plans", **a_request(cluster)).json()
    change = {"expected_revision": plan["revision"], "to_version": text}

    written = post(ada, "plans", **a_request(cluster, to_version=text))
    changed = ada.patch(f"/api/v1/plans/{plan['id']}", change, format="json")

    for reply in (written, changed):
        assert reply.status_code == 400
        (error,) = reply.json()["errors"]
        assert error["field"] == "to_version"
        assert "” is not a full driver version" in error["sentence"]
    assert Plan.objects.get().to_version == "580.126.20"


@pytest.mark.parametrize(("version", "code"), [("999.1.1", "unknown-version"), ("570.86.15", "unsupported")])
def test_who_writes_a_draft_is_told_what_bars_and_what_warns(ada, version: str, code: str):
    cluster = a_fleet()

    written = post(ada, "plans", **a_request(cluster, to_version=version)).json()
    change = {"expected_revision": written["revision"], "to_version": "580.126.20"}
    changed = ada.patch(f"/api/v1/plans/{written['id']}", change, format="json").json()

    assert code in {check["code"] for check in written["preview"]["blockers"]}
    assert code not in {check["code"] for check in changed["preview"]["blockers"]}
    assert changed["preview"]["warnings"]
    assert changed["preview"] == ada.get(f"/api/v1/plans/{written['id']}/preview").json()


def test_a_draft_whose_object_is_gone_can_still_be_changed(ada):
    cluster = a_fleet()
    plan = post(ada, "plans", **a_request(cluster)).json()
    cluster.driver_objects.filter(kind="NVIDIADriver").delete()

    change = {"expected_revision": plan["revision"], "title": "Another"}
    reply = ada.patch(f"/api/v1/plans/{plan['id']}", change, format="json")

    assert (reply.status_code, reply.json()["title"], reply.json()["preview"]) == (200, "Another", None)


def test_what_makes_no_plan_is_said_field_by_field(ada):
    cluster = a_fleet()
    stages = [{"name": "All", "kind": "pool", "pool": a_pool(a_fleet(), "elsewhere").pk, "gate_options": {"sok": {}}}]

    reply = post(ada, "plans", **a_request(cluster, to_version="latest", stages=stages))

    assert reply.status_code == 400
    assert reply["Content-Type"] == "application/problem+json"
    assert {error["field"] for error in reply.json()["errors"]} == {
        "to_version", "stages", "stages.0.pool", "stages.0.gate_options",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stages", "none"),
        ("stages", [{"name": "Canary", "kind": "rollback"}]),
        ("stages", [{"name": "Canary", "kind": "canary", "gate_options": {"soak": {"duration_s": 1e300}}}]),
        ("stages", [{"name": "Canary", "kind": "canary", "gate_options": {"soak": {"duration_s": True}}}]),
        ("driver_object", 2**70),
        ("to_version", "5\u0000"),
        ("title", "x" * 201),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(ada, field, value):
    reply = post(ada, "plans", **a_request(a_fleet(), **{field: value}))

    assert reply.status_code == 400, reply.json()
    assert reply.json()["errors"][0]["field"].startswith(field)


def test_a_misspelt_field_is_refused_and_named_whatever_else_is_wrong(ada):
    stages = [{"name": "Canary", "kind": "canary", "count": 1, "gates": {"soak": {}}}]

    reply = post(ada, "plans", **a_request(a_fleet(), title="x" * 201, owner="ada", stages=stages))

    sentences = {error["field"]: error["sentence"] for error in reply.json()["errors"]}
    assert reply.status_code == 400
    assert set(sentences) == {"title", "owner", "stages.0.gates"}
    assert sentences["stages.0.gates"].startswith("Unknown field. Known fields: name, kind, pool, ")
    assert "gate_options" in sentences["stages.0.gates"]
    assert not Plan.objects.exists()


def test_a_gate_that_is_half_a_character_does_not_break_the_answer_about_it(ada):
    body = json.dumps(a_request(a_fleet())).replace('"soak"', '"\\ud800"')

    reply = ada.post("/api/v1/plans", body, content_type="application/json")

    assert reply.status_code == 400
    assert "half a surrogate pair" in reply.json()["detail"]


def test_editing_needs_the_revision_that_was_read(ada):
    plan = a_draft()

    first = ada.patch(f"/api/v1/plans/{plan.pk}", {"expected_revision": 1, "title": "Mine"}, format="json")
    second = ada.patch(f"/api/v1/plans/{plan.pk}", {"expected_revision": 1, "title": "Too late"}, format="json")

    assert (first.status_code, first.json()["title"], first.json()["last_editor"]) == (200, "Mine", "ada")
    assert [stage["name"] for stage in first.json()["stages"]] == ["Canary", "H200", "Rollback"]
    assert second.status_code == 409
    assert second.json()["type"] == "urn:quarterdeck:problem:out-of-date"


def test_the_preview_says_what_it_would_take(bob):
    plan = a_draft()

    preview = bob.get(f"/api/v1/plans/{plan.pk}/preview").json()

    assert preview["blockers"] == []
    assert [(stage["name"], len(stage["targets"])) for stage in preview["stages"]] == [("Canary", 1), ("H200", 2)]
    assert (preview["forecast"]["gpus"], preview["forecast"]["uncounted_nodes"]) == (24, 0)
    assert preview["forecast"]["waits_for_operator_s"] == 120 * sum(stage["waves"] for stage in preview["stages"])


@pytest.mark.parametrize("what", ["preview", "starts"])
def test_a_plan_whose_object_is_gone_says_so(ada, what):
    plan = a_draft(a_fleet("east"))
    plan.cluster.driver_objects.filter(kind="NVIDIADriver").delete()
    place = f"/api/v1/plans/{plan.pk}/{what}"

    reply = (
        ada.get(place)
        if what == "preview"
        else post(ada, f"plans/{plan.pk}/starts", reason="Now.", expected_revision=1)
    )

    assert reply.status_code == 409
    assert reply.json()["detail"].startswith("east no longer shows NVIDIADriver h200.")


def test_a_start_is_asked_for_and_its_cluster_is_asked_first(ada):
    plan = a_draft()

    reply = post(ada, f"plans/{plan.pk}/starts", reason="Now.", expected_revision=1)

    assert reply.status_code == 204
    shown = ada.get(f"/api/v1/plans/{plan.pk}").json()
    assert (shown["state"], shown["sealed_at"]) == ("draft", None)
    assert shown["why"].startswith("The start is requested. The cluster is checked first")


def test_a_start_that_is_blocked_names_what_stands_in_the_way(ada):
    plan = a_draft(a_fleet(mode="observe-only"))

    reply = post(ada, f"plans/{plan.pk}/starts", reason="Now.", expected_revision=1)

    assert reply.status_code == 409
    assert [blocker["code"] for blocker in reply.json()["blockers"]] == ["mode"]


def test_a_plan_shows_its_buttons_with_the_reason_why_not(bob):
    plan = a_plan()

    shown = bob.get(f"/api/v1/plans/{plan.pk}").json()

    halt = next(button for button in shown["buttons"] if button["verb"] == "halt")
    assert (halt["is_allowed"], halt["resource"]) == (False, "halts")
    assert halt["why_not"]
    assert shown["holds"] == {"held": 0, "to_hold": 3, "foreign": 0}


@pytest.mark.parametrize("placed_at", [NOON, None], ids=["held", "to hold"])
def test_a_node_that_left_the_cluster_is_held_by_nobody(bob, placed_at):
    cluster = a_fleet()
    plan = a_plan(cluster)
    node = cluster.nodes.get(name="gpu-2")
    Hold.objects.filter(plan=plan).update(placed_at=NOON)
    Hold.objects.filter(plan=plan, node_uid=node.uid).update(placed_at=placed_at)
    GoneNode.objects.create(node_id=node.pk, cluster=cluster, uid=node.uid, name=node.name, gone_at=NOON)
    node.delete()

    assert bob.get(f"/api/v1/plans/{plan.pk}").json()["holds"] == {"held": 2, "to_hold": 0, "foreign": 0}


def test_a_node_that_somebody_else_holds_is_counted_once_and_as_theirs(bob):
    """Their label is there, and nothing of it is to be placed: its row has no time at which ours was read back."""
    cluster = a_fleet()
    cluster.nodes.filter(name="gpu-2").update(is_held=True, held_by="")
    plan = a_plan(cluster)
    Hold.objects.filter(plan=plan, is_foreign=False).update(placed_at=NOON)

    shown = bob.get(f"/api/v1/plans/{plan.pk}").json()

    assert shown["holds"] == {"held": 2, "to_hold": 0, "foreign": 1}
    assert shown["holding"] is None
    Plan.objects.filter(pk=plan.pk).update(state="promoting", write_intended_at=NOON, armed_since=NOON)
    armed = page(visiting(bob.user), f"/plans/{plan.pk}").text
    assert "2 nodes held by our label, 1 more by labels of others." in armed


def test_the_history_names_who_and_why(bob):
    plan = a_plan(author=a_user("zoe", role="operator"))

    newest, *_ = bob.get(f"/api/v1/plans/{plan.pk}/events").json()["results"]

    assert (newest["to"], newest["actor"]) == ("holding", "zoe")


def test_suggested_stages_can_be_sent_back_as_they_are(ada):
    cluster = a_fleet()
    driver_object = cluster.driver_objects.get(kind="NVIDIADriver")

    stages = ada.get(f"/api/v1/driver-objects/{driver_object.pk}/suggested-stages").json()
    reply = post(ada, "plans", **a_request(cluster, stages=stages))

    assert reply.status_code == 201, reply.json()


def test_a_plan_that_moves_says_how_long_it_still_takes_as_its_page_does(bob):
    plan = a_stage_to_approve(a_plan(a_fleet())).plan

    told = bob.get(f"/api/v1/plans/{plan.pk}").json()

    assert told["takes"].startswith("About ")
    assert told["takes"] in page(visiting(bob.user), f"/plans/{plan.pk}").text
    assert told["takes_s"] > 60

    Command.objects.create(plan=plan, verb="pause", actor="amy", at=NOON, reason="Lunch.")
    paused = bob.get(f"/api/v1/plans/{plan.pk}").json()
    assert (paused["takes_s"], paused["takes"]) == (None, "")


@pytest.mark.parametrize("unlike", [{"state": "draft"}, {"state": "halted"}])
def test_of_a_plan_that_does_not_move_nobody_says_how_long(bob, unlike):
    plan = a_stage_to_approve(a_plan(a_fleet())).plan
    Plan.objects.filter(pk=plan.pk).update(**unlike)

    assert bob.get(f"/api/v1/plans/{plan.pk}").json()["takes_s"] is None


def test_nor_of_one_whose_cluster_is_not_seen(bob):
    plan = a_stage_to_approve(a_plan(a_fleet())).plan
    Bookmark.objects.filter(cluster=plan.cluster).update(last_seen_at=NOON - timedelta(minutes=5))

    assert bob.get(f"/api/v1/plans/{plan.pk}").json()["takes_s"] is None


def test_a_list_shows_a_halt_that_is_in_force_before_the_plan_says_so(bob):
    plan, other = in_state(a_plan(), "promoting"), a_draft()
    for reason in ("Smoke.", "Fire."):
        PendingCommand.objects.create(plan=plan, verb="halt", actor="ada", at=NOON, reason=reason)

    rows = {row["id"]: row for row in bob.get("/api/v1/plans").json()["results"]}

    stops = {key: row["pending_stop"] for key, row in rows.items()}
    assert stops == {plan.pk: "ada halted the plan: Smoke.", other.pk: ""}
    assert rows[plan.pk]["why"] == "ada halted the plan: Smoke."


@pytest.mark.parametrize("number", [1, 4])
def test_a_list_costs_the_same_queries_whatever_its_length(bob, number, django_assert_num_queries):
    for _ in range(number):
        a_draft()

    with django_assert_num_queries(6):  # session, user, roles, count, plans, commands
        reply = bob.get("/api/v1/plans")

    assert len(reply.json()["results"]) == number


@pytest.mark.parametrize("nodes", [3, 9])
def test_a_plan_costs_the_same_queries_whatever_its_size(bob, nodes, django_assert_max_num_queries):
    plan = a_plan(a_fleet(nodes=nodes))

    with django_assert_max_num_queries(35):  # nine of them the ledger, for how many may be down at once
        assert bob.get(f"/api/v1/plans/{plan.pk}").status_code == 200


@pytest.mark.parametrize("path", ["plans/{}", "plans/{}/events", "plans/{}/preview"])
def test_who_may_see_a_plan(path, nobody, eve, bob):
    place = "/api/v1/" + path.format(a_draft().pk)

    assert nobody.get(place).status_code == 401
    assert eve.get(place).status_code == 404
    assert bob.get(place).status_code == 200


def test_a_viewer_of_one_pool_sees_no_plan_reason_it_touches_others(now, db):
    plan = a_draft()
    seer = calling(a_user(role="viewer", on=plan.cluster.pools.get()))

    assert seer.get(f"/api/v1/plans/{plan.pk}").status_code == 404


def test_who_may_draft(nobody, eve, bob, amy, ada):
    cluster = a_fleet()
    asked = a_request(cluster)

    assert post(nobody, "plans", **asked).status_code == 401
    assert post(eve, "plans", **asked).status_code == 404
    for viewer in (bob, amy):
        refused = post(viewer, "plans", **asked)
        assert refused.status_code == 403
        assert refused.json()["detail"] == (
            f"To draft or change a plan you need the role operator or admin on cluster {cluster.name}."
        )
    assert Plan.objects.count() == 0
    assert post(ada, "plans", **asked).status_code == 201
    assert AuditEntry.objects.filter(verb="draft", actor="ada").count() == 1


@pytest.mark.parametrize("version", ["５８０.１２６.２０", "580.126.２0"])
def test_a_version_in_digits_of_another_script_is_refused(ada, version):
    driver_object = a_fleet().driver_objects.get(kind="NVIDIADriver")
    body = {
        "driver_object": driver_object.pk,
        "to_version": version,
        "stages": [{"name": "C", "kind": "canary", "count": 1}],
    }

    reply = ada.post("/api/v1/plans", body, format="json")

    assert reply.status_code == 400
    assert "with the digits 0 to 9" in reply.json()["detail"]


def test_a_number_in_digits_of_another_script_is_refused(ada):
    driver_object = a_fleet().driver_objects.get(kind="NVIDIADriver")
    canary = {"name": "C", "kind": "canary", "count": "１"}
    body = {"driver_object": driver_object.pk, "to_version": "580.126.20", "stages": [canary]}

    reply = ada.post("/api/v1/plans", body, format="json")

    assert reply.status_code == 400
    assert reply.json()["errors"][0] == {"field": "stages.0.count", "sentence": "Write numbers with the digits 0 to 9."}


def test_the_name_of_a_stage_fits_its_column(ada):
    driver_object = a_fleet().driver_objects.get(kind="NVIDIADriver")
    body = {
        "driver_object": driver_object.pk,
        "to_version": "580.126.20",
        "stages": [{"name": "C" * 101, "kind": "canary", "count": 1}],
    }

    assert ada.post("/api/v1/plans", body, format="json").status_code == 400


@pytest.mark.parametrize("state", ["draft", "promoting", "halted", "promoted"])
@pytest.mark.parametrize("is_paused", [False, True])
def test_rest_says_why_a_plan_stands_still_as_its_page_does(bob, state, is_paused):
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=state, reason="Fans.", waiting_for="Canary: 0 of 1 nodes changed.")
    if is_paused:
        plan.commands.create(verb="pause", actor="ada", at=NOON, reason="Lunch.")

    said = bob.get(f"/api/v1/plans/{plan.pk}").json()["why"]

    assert said in page(visiting(bob.user), f"/plans/{plan.pk}").text
    assert (said == "ada paused the plan: Lunch.") is (is_paused and state != "halted")
