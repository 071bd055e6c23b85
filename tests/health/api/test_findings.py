"""Findings in REST: the same words as the page, and each act by who may."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from health.lifecycle import FindingState
from health.models import Finding, FindingAct, Mute
from tests import make
from tests.callers import calling
from tests.make import NOON

pytestmark = pytest.mark.django_db
UNTIL = (NOON + timedelta(days=1)).isoformat()


@pytest.fixture
def finding(now):
    cluster = make.a_cluster("prod")
    node = make.a_node(cluster, "gpu-001")
    make.a_pod(node, "train-0", gpus=8)
    Bookmark.objects.filter(cluster=cluster).update(listed_at=NOON)
    return make.a_finding(cluster, node=node, facts={"xid": 79})


def post(caller, path, body=None, **headers):
    return caller.post(f"/api/v1/{path}", body or {}, format="json", headers=headers)


def test_one_says_all_that_the_page_says(finding, bob):
    told = bob.get(f"/api/v1/findings/{finding.pk}").json()
    listed = bob.get("/api/v1/findings").json()["results"][0]

    assert told["finding"]["impact"] == listed["impact"]
    assert listed["impact"]["sentence"] == "1 pod in 1 namespace has 8 GPUs there."
    assert (told["elsewhere"], told["acts"], told["mutes"]) == (0, [], [])
    assert "- Impact: 1 pod in 1 namespace has 8 GPUs there." in told["markdown"]
    assert f"/findings?finding={finding.pk}" in told["markdown"]


def test_one_has_title_summary_evidence_causes_and_steps(finding, bob):
    evidence = [
        {"label": "Temperature", "value": 84.5, "unit": "°C"},
        {"label": "Since", "value": NOON.isoformat(), "unit": "UTC"},
        {"label": "Pods", "value": 3, "unit": ""},
    ]
    report = {
        "title": "GPU 3 of gpu-001 is too hot", "summary": "It has 83 °C or more.", "evidence": evidence,
        "causes": ["The air.", "Its cooler."], "steps": ["Check the air.", "Check its cooler."],
    }  # fmt: skip
    Finding.objects.update(**report)

    told = bob.get(f"/api/v1/findings/{finding.pk}").json()
    listed = bob.get("/api/v1/findings").json()["results"][0]

    assert {name: told["finding"][name] for name in report} == report
    assert {name: listed[name] for name in report} == report
    assert not {"facts", "fingerprint"} & listed.keys()
    assert told["markdown"].startswith("**GPU 3 of gpu-001 is too hot**\n\nIt has 83 °C or more.\n\n- ")
    assert "- Temperature: 84.5 °C\n- Since: 2026-11-21 12:00:00 UTC\n- Pods: 3\n" in told["markdown"]
    assert "- Probable cause: The air.\n- Probable cause: Its cooler.\n" in told["markdown"]
    assert "Steps:\n\n1. Check the air.\n2. Check its cooler.\n" in told["markdown"]


def test_an_act_that_was_undone_is_not_answered_done(finding, ada, amy):
    path, key = f"findings/{finding.pk}", {"Idempotency-Key": "k"}
    post(ada, f"{path}/acknowledgements", **key)
    post(amy, f"{path}/unassignments")

    again = post(ada, f"{path}/acknowledgements", **key)

    assert again.status_code == 409
    assert "is no longer in effect. The finding is open and nobody’s." in again.json()["detail"]


def test_acts_are_told_by_who_may_and_done_once(finding, ada, amy):
    path = f"findings/{finding.pk}"
    for _ in range(2):
        assert (
            post(ada, f"{path}/acknowledgements", {"reason": "On it."}, **{"Idempotency-Key": "k"}).status_code == 204
        )
    again = post(amy, f"{path}/acknowledgements")
    assert (again.status_code, again.json()["detail"]) == (409, "ada has already acknowledged the finding.")
    assert post(amy, f"{path}/assignments", {"to": "amy"}).status_code == 204
    assert post(amy, f"{path}/assignments", {"to": "nobody"}).status_code == 400
    assert post(amy, f"{path}/feedback", {"feedback": "dismissed", "reason": "Riser."}).status_code == 204
    assert post(amy, f"{path}/feedback", {"feedback": "accepted"}).status_code == 400
    assert post(amy, f"{path}/unassignments").status_code == 204

    told = amy.get(f"/api/v1/{path}").json()

    assert [one["verb"] for one in told["acts"]] == ["unassign", "dismiss", "assign", "acknowledge"]
    assert told["finding"]["feedback"] == "dismissed"
    assert told["precision"] == {"accepted": 0, "dismissed": 1}


@pytest.mark.parametrize("scope", ["finding", "node", "pool", "cluster"])
def test_each_scope_can_be_muted_and_lifted(finding, ada, scope):
    pool = make.a_pool(finding.cluster)
    pool.nodes.add(finding.node)
    Finding.objects.update(rule="node-not-ready")
    finding.refresh_from_db()
    keys = {"finding": finding.pk, "node": finding.node_id, "pool": pool.pk, "cluster": finding.cluster_id}
    rule = {} if scope == "finding" else {"rule": finding.rule}

    made = post(ada, "mutes", {scope: keys[scope], **rule, "reason": "Known.", "until": UNTIL})

    assert made.status_code == 201
    assert Finding.objects.get().state == FindingState.MUTED
    assert ada.get("/api/v1/mutes?is_in_force=true").json()["count"] == 1
    assert post(ada, f"mutes/{made.json()['id']}/lifts", {"reason": "Over."}).status_code == 204
    assert Finding.objects.get().state == FindingState.OPEN
    assert post(ada, f"mutes/{made.json()['id']}/lifts", {"reason": "Over."}).status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"finding": 1, "rule": "x"},
        {"node": 1},
        {"node": 1, "cluster": 1, "rule": "node-not-ready"},
        {"cluster": 1, "rule": "node-not-redy"},
        {"finding": 1, "until": (NOON + timedelta(days=15)).isoformat()},
    ],
)
def test_a_mute_that_cannot_be_is_refused(finding, ada, body):
    keys = {"finding": finding.pk, "node": finding.node_id, "cluster": finding.cluster_id}
    given = {name: keys.get(name, value) for name, value in body.items()}

    assert post(ada, "mutes", {"reason": "x", "until": UNTIL} | given).status_code == 400
    assert not Mute.objects.exists()


def test_who_has_no_right_there_acts_on_nothing(finding, bob, eve):
    mute = make.a_mute(finding.cluster)
    acts = ("acknowledgements", "assignments", "unassignments", "feedback")
    for path in (*(f"findings/{finding.pk}/{what}" for what in acts), f"mutes/{mute.pk}/lifts"):
        assert post(bob, path).status_code == 403
        assert post(eve, path).status_code == 404
    assert post(bob, "mutes", {"finding": finding.pk, "reason": "x", "until": UNTIL}).status_code == 403
    assert not FindingAct.objects.exists()


def test_a_finding_of_a_gpu_has_its_series_and_another_has_none(bob, eve, finding):
    cluster, node = finding.cluster, finding.node
    hot = make.a_finding(cluster, "GPU 3 of gpu-1", node=node, rule="gpu-hot")
    other = finding
    place = f"/api/v1/findings/{hot.pk}/telemetry"

    assert bob.get(f"/api/v1/findings/{hot.pk}").json()["telemetry"] == place
    said = bob.get(place).json()
    assert said["window"] == "around"
    assert "no exporter has answered yet" in said["trouble"]
    assert said["marks"][0]["kind"] == "finding"
    assert bob.get(f"/api/v1/findings/{other.pk}").json()["telemetry"] is None
    assert bob.get(f"/api/v1/findings/{other.pk}/telemetry").status_code == 404
    assert eve.get(place).status_code == 404


def test_a_cause_that_one_may_not_see_is_none(finding, ada):
    pool = make.a_pool(finding.cluster)
    pool.nodes.add(finding.node)
    cause = make.a_finding(finding.cluster, "GPU operator", rule="operator-down")
    Finding.objects.filter(pk=finding.pk).update(parent=cause)
    one_pool = calling(make.a_user(role="viewer", on=pool))

    for caller, under in ((one_pool, None), (ada, cause.pk)):
        own = caller.get("/api/v1/findings?is_on_its_own=true").json()["results"]
        other = caller.get("/api/v1/findings?is_on_its_own=false").json()["results"]
        assert [row["id"] for row in own] == [cause.pk if under else finding.pk]
        assert [row["id"] for row in other] == ([finding.pk] if under else [])
        assert caller.get(f"/api/v1/findings/{finding.pk}").json()["finding"]["listed_under"] == under


def test_a_key_of_a_node_is_a_whole_number(bob):
    node = make.a_node(make.a_cluster())
    make.a_finding(node.cluster, node=node)

    assert bob.get(f"/api/v1/findings?node={node.pk}.5").status_code == 400


@pytest.mark.parametrize("name", ["node", "pool"])
def test_a_key_that_none_has_is_refused(bob, name):
    answer = bob.get(f"/api/v1/findings?{name}={10**20}")

    assert (answer.status_code, [one["field"] for one in answer.json()["errors"]]) == (400, [name])


@pytest.mark.parametrize("name", ["is_shadow", "confirming"])
def test_a_blank_switch_asks_for_nothing_that_nobody_is_told_of(finding, bob, name):
    make.a_finding(finding.cluster, "on trial", is_shadow=True)
    make.a_finding(finding.cluster, "suspected", opened_at=None)

    found = bob.get(f"/api/v1/findings?{name}=").json()["results"]

    assert [one["id"] for one in found] == [finding.pk]
