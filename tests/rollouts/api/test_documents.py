import json

import pytest
import yaml

from rollouts.commands.plan_approvals import approve, bundle_for
from rollouts.evidence.verification import verify
from rollouts.models import Plan, Stage
from tests.make import NOON, a_draft, a_fleet, a_plan, a_stage_to_approve, a_user
from tests.rollouts.bad_input import BOMB, a_document

TYPES = ["application/yaml", "application/json"]


def post(client, content, *, query: str = "", kind: str = "application/yaml"):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.generic("POST", f"/api/v1/plan-documents{query}", body, content_type=kind)


@pytest.mark.parametrize("kind", TYPES)
def test_a_dry_run_says_what_it_would_do_and_writes_nothing(ada, kind: str):
    reply = post(ada, a_document(a_fleet()), query="?dry_run=true", kind=kind)

    assert reply.status_code == 200, reply.json()
    said = reply.json()
    assert (said["outcome"], said["is_done"], said["plan"]) == ("drafted", False, None)
    assert [stage["by_wave"] for stage in said["preview"]["stages"]] == [[["gpu-0"]], [["gpu-1"], ["gpu-2"]]]
    assert not Plan.objects.exists()


def test_a_check_names_its_field_as_the_document_has_it_and_that_of_a_draft_as_the_draft(ada):
    cluster = a_fleet()
    nowhere = {"name": "Nowhere", "kind": "pool", "selector": "kubernetes.io/hostname=gone"}
    document = a_document(cluster, stages=[{"name": "Canary", "kind": "canary", "count": 1}, nowhere])

    dry = post(ada, document, query="?dry_run=true").json()["preview"]
    plan = post(ada, document).json()["plan"]
    drafted = ada.get(f"/api/v1/plans/{plan}/preview").json()

    for told, field in ((dry, "stages[1].selector"), (drafted, "stages.1.selector")):
        assert {each["code"]: each["field"] for each in told["blockers"]}["empty-stage"] == field


@pytest.mark.parametrize("kind", TYPES)
def test_a_document_is_drafted_once_however_often_it_is_sent(ada, kind: str):
    cluster = a_fleet()

    replies = [post(ada, a_document(cluster), kind=kind) for _ in range(2)]

    plan = Plan.objects.get()
    assert [reply.status_code for reply in replies] == [201, 200]
    assert [reply.json()["outcome"] for reply in replies] == ["drafted", "unchanged"]
    assert {reply.json()["plan"] for reply in replies} == {plan.pk}
    assert (plan.state, plan.author) == ("draft", "ada")


@pytest.mark.parametrize("accept", TYPES)
def test_what_a_draft_gives_back_changes_nothing_and_changed_edits_it(ada, accept: str):
    plan = a_draft(author=ada.user)
    text = ada.get(f"/api/v1/plans/{plan.pk}/document", HTTP_ACCEPT=accept).content

    same = post(ada, text).json()
    changed = post(ada, yaml.safe_load(text) | {"title": "Another"}).json()

    assert (same["outcome"], same["differences"], same["revision"]) == ("unchanged", [], 1)
    assert (changed["outcome"], changed["plan"], changed["revision"]) == ("edited", plan.pk, 2)
    assert changed["differences"] == [{"field": "title", "drafted": "New driver", "document": "Another"}]


def test_what_was_drafted_by_hand_is_not_overwritten(ada):
    plan = a_draft(author=ada.user)

    reply = post(ada, a_document(plan.cluster, title=plan.title))

    assert reply.status_code == 409
    assert "was drafted by ada and not by a document. " in reply.json()["detail"]


@pytest.mark.parametrize("odd", ["\ud800", "a\udfffb", "a\x00"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_reason_that_is_no_text_is_refused(ada, odd: str, kind: str):
    """JSON can spell it in escapes; PostgreSQL keeps no such character, and no page can be written with it."""
    gates = {"headroom": {"advisory": True, "reason": odd}, "driver_version": {}}
    stages = [{"name": "Canary", "kind": "canary", "count": 1, "gates": gates}]

    reply = post(ada, a_document(a_fleet(), stages=stages), kind=kind)

    assert reply.status_code == 400, reply.json()
    (error,) = reply.json()["errors"]
    assert error["field"] == "stages[0].gates.headroom.reason"
    assert "cannot be stored" in error["sentence"]


def test_each_refusal_names_its_field(ada):
    stages = [{"name": "Canary", "kind": "canary", "count": 1, "gates": {"soak": {"duration": "long"}}}]

    reply = post(ada, a_document(a_fleet(), stages=stages))

    assert reply.status_code == 400
    (error,) = reply.json()["errors"]
    assert error["field"] == "stages[0].gates.soak.duration"
    assert post(ada, {}, query="?dry_run=maybe").status_code == 400
    assert post(ada, b"\xff\xfe").json()["errors"][0]["sentence"] == "The file is not UTF-8 text."
    assert post(ada, b"").json()["errors"][0]["field"] == "line 1"


def test_fifty_megabytes_and_an_anchor_bomb_are_refused_unread(ada):
    for body, words in ((b"a" * 50_000_000, "larger than 64 KiB"), (BOMB.encode(), "Aliases")):
        reply = post(ada, body)

        assert reply.status_code == 400
        assert words in reply.json()["detail"]


def test_a_viewer_reads_documents_and_a_stranger_finds_none(ada, bob, eve):
    plan = a_plan(author=a_user("olga", role="operator"))

    assert "revision" not in bob.get(f"/api/v1/plans/{plan.pk}/document").json()
    assert post(bob, a_document(plan.cluster)).status_code == 403
    missing = eve.get(f"/api/v1/plans/{plan.pk}/document", HTTP_ACCEPT="application/yaml")
    assert missing.status_code == 404
    assert missing.json()["status"] == 404
    assert post(eve, a_document(plan.cluster)).status_code == 403


def test_the_evidence_comes_in_the_bytes_that_are_verified(bob, eve):
    stage = Stage.objects.get(pk=a_stage_to_approve().pk)
    approve(stage, actor=a_user("amos"), bundle_hash=bundle_for(stage).hash, reason="Yes.", now=NOON)

    reply = bob.get(f"/api/v1/plans/{stage.plan_id}/evidence")

    found = verify(reply.content)
    assert (found.flaws, found.decisions) == ([], 1)
    assert eve.get(f"/api/v1/plans/{stage.plan_id}/evidence").status_code == 404


def test_who_asks_for_what_it_is_not_served_as_is_told_as_what_it_is(bob):
    reply = bob.get(f"/api/v1/plans/{a_plan().pk}/document", headers={"Accept": "text/html"})

    assert reply.status_code == 406
    assert "available only as application/json or application/yaml" in reply.json()["detail"]


def test_what_was_shown_is_applied_or_refused(ada):
    cluster = a_fleet()
    document = a_document(cluster)
    etag = post(ada, document, query="?dry_run=true").headers["ETag"]
    post(ada, document)

    late = ada.generic(
        "POST", "/api/v1/plan-documents", json.dumps(document | {"to": "575.57.08"}).encode(),
        content_type="application/json", HTTP_IF_MATCH=etag,
    )  # fmt: skip
    again = post(ada, document, query="?dry_run=true").headers["ETag"]
    now = ada.generic(
        "POST", "/api/v1/plan-documents", json.dumps(document).encode(), content_type="application/json",
        HTTP_IF_MATCH=again,
    )  # fmt: skip

    assert (late.status_code, now.status_code) == (412, 200)
    assert "Read the effect again" in late.json()["detail"]
    assert Plan.objects.get().revision == 1
