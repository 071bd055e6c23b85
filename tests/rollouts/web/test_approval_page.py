import re
from datetime import timedelta

import pytest

from fleet.models import Bookmark, DisruptionBudget
from people.roster import groups
from rollouts.approvals.bundles import bundle_for
from rollouts.checks import Check
from rollouts.commands.plan_start import start
from rollouts.models import LiveCheck, Target
from rollouts.preflight.live_checks.answers import passed
from tests import make
from tests.make import NOON
from tests.pages import Page, page, visiting, wrong_beside
from tests.rollouts.rows import answered

HELD = passed(Check("live-hold", title="The label would be taken", is_good=True))
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def stage():
    return make.a_stage_to_approve()


@pytest.fixture
def amy():
    return visiting(make.a_user("amy", role="approver"))


def decide(client, stage, decision="approve", **asked):
    asked = {"decision": decision, "bundle_hash": bundle_for(stage).hash, "reason": "Fine.", **asked}
    response = client.post(f"/stages/{stage.pk}/approval", asked, follow=True)
    return Page(response.content.decode()).text


def test_shows_what_will_happen_and_the_bundle(amy, stage):
    seen = page(amy, f"/stages/{stage.pk}/approval")

    assert "What will happen" in seen.text
    assert "on 1 node of" in seen.text
    assert bundle_for(stage).hash[:12] in seen.text
    assert bundle_for(stage).hash not in seen.text
    assert "Canary: approve? awaiting approval" in seen.text


def test_page_and_rest_say_what_the_canary_proves(amy, stage):
    stage.targets.update(state="changed", tenants_ready_at=NOON)

    seen, told = page(amy, f"/stages/{stage.pk}/approval").text, amy.get(f"/api/v1/stages/{stage.pk}").json()["proof"]

    assert told["sentence"] == "0 failures of 1 tested node bound the failure rate at 95 % (95 % confidence)."
    assert f"The canary proves: {told['sentence']}" in seen
    assert told["failure_rate_at_most"] == pytest.approx(0.95)


def test_gpus_that_nobody_has_counted_are_not_none(amy, stage):
    known = page(amy, f"/stages/{stage.pk}/approval").text
    node = stage.plan.cluster.nodes.get(name=stage.targets.get().node_name)
    type(node).objects.filter(pk=node.pk).update(physical_gpus=None, physical_whole=0)

    unknown = page(amy, f"/stages/{stage.pk}/approval").text

    assert "with 8 GPUs, at most" in known
    assert "with an unknown number of GPUs, at most" in unknown


def test_a_pod_is_said_to_hold_what_it_holds(amy, stage):
    node = stage.plan.cluster.nodes.get(name=stage.targets.get().node_name)
    make.a_pod(node, "whole")
    make.a_pod(node, "cut", gpus=0, resources={"nvidia.com/mig-1g.10gb": 2}, is_tenant=True)
    make.a_pod(node, "claims", gpus=0, claims=["train-gpu"], is_tenant=True)

    seen = page(amy, f"/stages/{stage.pk}/approval").text

    assert "0 GPUs" not in seen
    assert f"team-a/whole on {node.name}, 1 GPU" in seen
    assert f"team-a/cut on {node.name}, 2 slices 1g.10gb" in seen
    assert f"team-a/claims on {node.name}, by claim train-gpu" in seen


def test_a_pod_that_has_ended_is_not_among_those_that_are_evicted(amy, stage):
    node = stage.plan.cluster.nodes.get(name=stage.targets.get().node_name)
    make.a_pod(node, "at-work")
    make.a_pod(node, "through", phase="Succeeded", is_ready=False)

    assert "1 pod of tenants on them now" in page(amy, f"/stages/{stage.pk}/approval").text


def test_of_a_cluster_that_is_not_seen_it_says_since_when_and_counts_no_pods_of_now(amy, stage):
    make.a_pod(stage.plan.cluster.nodes.get(name=stage.targets.get().node_name), "at-work")
    seen = page(amy, f"/stages/{stage.pk}/approval").text
    Bookmark.objects.update(last_seen_at=NOON - timedelta(minutes=10))

    unseen = page(amy, f"/stages/{stage.pk}/approval").text

    assert "Not observed since" not in seen
    assert "Not observed since" in unseen
    assert "Nodes and pods are shown as of then." in unseen
    assert "1 pod of tenants on them then" in unseen
    assert "on them now" not in unseen


def test_shows_what_its_starter_was_told_and_why_they_started_it(amy):
    cluster = make.a_fleet()
    make.a_node(cluster, "gpu-9", driver_owner="h200", labels={"nvidia.com/gpu.deploy.driver": "true"})
    plan = make.a_draft(cluster)
    starter = make.a_user(role="operator")
    start(plan, actor=starter, reason="", expected_revision=plan.revision, now=NOON)
    plan.refresh_from_db()
    warned = plan.sealed["warned"]
    plan.commands.filter(verb="start").update(actor="ada", reason="The fix is in it.")

    seen = page(amy, f"/stages/{make.a_stage_to_approve(plan).pk}/approval").text

    assert "ada started it" in seen
    assert "The fix is in it." in seen
    assert "uncovered" in [check["code"] for check in warned]
    assert all(check["title"] in seen for check in warned)
    assert f"At the start, 12:00 UTC: {len(warned)} warnings" in seen


def test_what_the_start_said_is_folded_away_and_the_checks_of_now_stand_open(amy):
    """A budget that allowed none then allows one now."""
    cluster = make.a_fleet()
    make.a_bookmark(cluster, "poddisruptionbudgets.policy")
    starter = make.a_user(role="operator")
    plan = make.a_draft(cluster, author=starter)
    node = cluster.nodes.get(name="gpu-0")
    make.a_pod(node, "web-0", labels={"app": "web"})
    budget = DisruptionBudget.objects.create(
        cluster=cluster, uid="uid-of-web", namespace="team-a", name="web", disruptions_allowed=0, changed_at=NOON,
        selector={"matchLabels": {"app": "web"}}, current_healthy=1, desired_healthy=1,
    )  # fmt: skip
    asked = {"expected_revision": plan.revision, "override_reason": "It ends soon."}
    start(plan, actor=starter, reason="", **asked, now=NOON)
    stage = make.a_stage_to_approve(plan)

    before = page(amy, f"/stages/{stage.pk}/approval").text
    DisruptionBudget.objects.filter(pk=budget.pk).update(disruptions_allowed=1)
    after = page(amy, f"/stages/{stage.pk}/approval").text

    said = "PodDisruptionBudgets block the eviction of team-a/web-0"
    assert before.count(said) == 2
    assert after.count(said) == 1, "as the start said it, with its time"
    assert f"At the start, 12:00 UTC, {starter.username} overrode: “{said}” Because: It ends soon." in after
    assert "nodes left, now checked at 12:00:00 UTC" in after


def test_a_stage_that_waits_for_nobody_has_no_checks_of_now(amy, stage):
    type(stage).objects.filter(pk=stage.pk).update(state="passed")

    assert "nodes left" not in page(amy, f"/stages/{stage.pk}/approval").text


def test_the_canary_is_not_approved_without_a_reason(amy, stage):
    said = decide(amy, stage, reason="", look=opened(amy, stage))

    assert "Give a reason for the approval: no gate has evaluated a changed node." in said
    assert not stage.approvals.exists()


def test_an_approver_approves_what_they_saw(amy, stage):
    decide(amy, stage)

    approval = stage.approvals.get()
    assert (approval.by, approval.is_rejection) == ("amy", False)


def test_a_reason_turns_nothing_round_that_stands_behind_it(amy, stage):
    """U+202E lets what follows run from right to left: the hash that was decided on read backwards."""
    decide(amy, stage, reason="Fine.\u202e")

    html = amy.get(f"/plans/{stage.plan_id}").content.decode()

    assert "<bdi>Fine.\u202e</bdi>" in html


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_pressed_twice_it_is_decided_once_and_said_to_be(amy, stage, decision):
    """Of a double click the browser shows the second answer only."""
    decide(amy, stage, decision, look=(look := opened(amy, stage)))

    said = decide(amy, stage, decision, look=look)

    assert "Your decision on Canary is recorded." in said
    assert stage.approvals.count() == 1


def test_another_decision_after_the_first_is_refused(amy, stage):
    decide(amy, stage)

    said = decide(amy, stage, "reject")

    assert "You have already decided on this stage." in said
    assert not stage.approvals.get().is_rejection


def test_that_a_rejection_wants_a_reason_stands_beside_it(amy, stage):
    asked = {"decision": "reject", "bundle_hash": bundle_for(stage).hash, "reason": " "}
    html = amy.post(f"/stages/{stage.pk}/approval", asked).content.decode()

    assert wrong_beside(html, "reason") == "Give a reason, so that the author can correct the plan."
    assert html.count("Give a reason, so that the author can correct the plan") == 1


def test_a_rejection_wants_a_reason(amy, stage):
    said = decide(amy, stage, "reject", reason="")

    assert "Give a reason, so that the author can correct the plan" in said
    assert not stage.approvals.exists()


def test_what_names_no_bundle_is_not_approved_and_says_why(amy, stage):
    assert decide(amy, stage, bundle_hash="a" * 65).count("The version of this page is unknown") == 1
    assert not stage.approvals.exists()


def test_a_bundle_that_changed_is_not_approved(amy, stage):
    seen = bundle_for(stage).hash
    Target.objects.filter(stage=stage).update(state="excluded")

    said = decide(amy, stage, bundle_hash=seen)

    assert "The stage has changed since you read it" in said
    assert not stage.approvals.exists()


def opened(client, stage) -> str:
    """The token of a look that was just taken."""
    html = client.get(f"/stages/{stage.pk}/approval").content.decode()
    return re.search(r'name="look" value="(\w+)"', html)[1]


def approve_button(html: str) -> str:
    return re.search(r'<button[^>]*value="approve"[^>]*>', html)[0]


def reject_button(html: str) -> str:
    return re.search(r'<button[^>]*value="reject"[^>]*>', html)[0]


def live(client, stage, look: str) -> str:
    return client.get(f"/parts/stages/{stage.pk}/approval?look={look}").content.decode()


@pytest.fixture
def second(stage):
    """The stage after the canary, whose answers the decision rests on."""
    answered(stage, "driver_version", "pass", title="All 1 run it")
    answered(stage, "soak", "pass", title="Long enough")
    type(stage).objects.filter(pk=stage.pk).update(state="passed")
    following = stage.plan.stages.get(index=1)
    following.move("opening", now=make.NOON, actor="quarterdeck", reason="Its turn.")
    return following


def test_gates_that_wait_for_the_same_reason_are_one_row(amy, stage, second):
    for gate in ("operands_ready", "mig_state"):
        answered(stage, gate, "wait", title="gpu-0 is silent", nodes=["gpu-0"])

    seen = live(amy, second, opened(amy, second))

    assert "MIG as before , Operands ready stage 1 wait" in Page(seen).text
    assert seen.count('<tr class="is-wait">') == 1


def test_what_changed_is_marked_first_and_approve_is_locked(amy, stage, second):
    look = opened(amy, second)
    assert "disabled" not in approve_button(live(amy, second, look))
    answered(stage, "soak", "wait", title="Somebody fell over")

    seen = live(amy, second, look)

    text = Page(seen).text
    assert "The stage has changed since you read it at 12:00:00 UTC. Soak of Canary was pass and is now wait." in text
    assert text.index("Soak") < text.index("Driver version")
    assert "Somebody fell over" in text
    assert "Long enough" in text
    assert 'is-wait is-changed"' in seen
    assert "disabled" in approve_button(seen)
    assert "disabled" not in reject_button(seen)


def test_what_is_only_advisory_is_named_and_voids_nothing(amy, stage, second):
    options = second.gate_options | {"operands_ready": {"advisory": True, "reason": "It flaps here."}}
    type(second).objects.filter(pk=second.pk).update(gate_options=options)
    answered(stage, "operands_ready", "pass", title="All up", is_advisory=True)
    look = opened(amy, second)
    answered(stage, "operands_ready", "fail", title="One is down", is_advisory=True)

    seen = live(amy, second, look)

    whole = Page(amy.get(f"/stages/{second.pk}/approval").content.decode()).text
    assert "Operands ready is only advisory in" in whole
    assert "It flaps here." in whole
    assert "One is down" in Page(seen).text
    assert "all 2 green" in Page(seen).text
    assert "disabled" not in approve_button(seen)


def test_what_changed_may_be_rejected_without_another_look(amy, stage, second):
    look, seen = opened(amy, second), bundle_for(second).hash
    answered(stage, "soak", "fail", title="It crashed")

    decide(amy, second, "reject", bundle_hash=seen, look=look)

    assert second.approvals.get().is_rejection


def test_it_is_open_again_after_another_look_and_keeps_what_was_written(amy, stage, second):
    opened(amy, second)
    answered(stage, "soak", "wait", title="Somebody fell over")

    response = amy.post(f"/stages/{second.pk}/approval", {"decision": "look", "reason": "I have checked <b>it</b>."})

    html = response.content.decode()
    assert response.status_code == 200
    assert "I have checked &lt;b&gt;it&lt;/b&gt;." in html
    assert "disabled" not in approve_button(html)
    assert not second.approvals.exists()


def test_a_refused_post_keeps_what_was_written_and_stays_locked(amy, stage, second):
    look, seen = opened(amy, second), bundle_for(second).hash
    answered(stage, "soak", "fail", title="It crashed")

    asked = {"decision": "approve", "bundle_hash": seen, "look": look, "reason": "Long typed reason."}
    response = amy.post(f"/stages/{second.pk}/approval", asked)

    html = response.content.decode()
    assert response.status_code == 409
    assert "The stage has changed since you read it" in html
    assert "Long typed reason." in html
    assert "disabled" in approve_button(html)


def test_no_reason_is_needed_while_all_is_green(amy, second):
    decide(amy, second, reason="")

    assert second.approvals.get().reason == ""


def test_a_reason_is_needed_where_a_gate_is_not_green(amy, stage, second):
    answered(stage, "soak", "wait")

    given = {
        "decision": "approve",
        "bundle_hash": bundle_for(second).hash,
        "reason": "  ",
        "look": opened(amy, second),
    }
    response = amy.post(f"/stages/{second.pk}/approval", given)

    html, said = response.content.decode(), Page(response.content.decode()).text
    assert response.status_code == 409
    assert (
        "Give a reason for the approval: 1 gate does not pass."
        in html.partition('id="reason"')[2].partition("</div>")[0]
    )
    assert html.count("Give a reason for the approval") == 1
    assert not second.approvals.exists()
    assert "An approval needs a reason: 1 gate does not pass." in said


def test_what_nobody_asks_any_more_is_not_called_green(amy, stage, second):
    assert "green" in Page(live(amy, second, opened(amy, second))).text
    stage.answers.update(at=NOON - timedelta(minutes=5))

    seen = Page(live(amy, second, opened(amy, second))).text

    assert "as of 11:55:00 UTC: not evaluated since" in seen
    assert "green" not in seen.partition("Gate")[0]
    assert "An approval needs a reason: no gate was evaluated since 11:55 UTC" in seen


def test_a_look_that_is_forgotten_locks_it(amy, second):
    seen = live(amy, second, "no-such-look")

    assert "The version that you read is no longer stored." in Page(seen).text
    assert "disabled" in approve_button(seen)


def test_a_person_s_looks_are_bounded(amy, second):
    first = opened(amy, second)
    for _ in range(8):
        opened(amy, second)

    assert len(amy.session["approvals-looked-at"]) == 6
    assert "The version that you read is no longer stored" in live(amy, second, first)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("halted", "The plan is halted"),
        ("rolling-back", "The plan is rolling-back"),
        ("aborted", "it needs no decision any more"),
        ("promoted", "it needs no decision any more"),
    ],
)
def test_it_is_not_offered_on_a_plan_that_does_not_move(amy, second, state, words):
    type(second.plan).objects.filter(pk=second.plan.pk).update(state=state)

    html = amy.get(f"/stages/{second.pk}/approval").content.decode()
    said = decide(amy, second)

    assert words in Page(html).text
    assert "approve?" not in html
    assert "awaiting approval" not in html
    assert "disabled" in approve_button(html)
    assert words in said
    assert not second.approvals.exists()
    assert "Your approvals" not in page(amy, "/plans").text


def test_it_is_not_offered_on_a_paused_plan(amy, second):
    second.plan.commands.create(verb="pause", actor="ada", at=make.NOON, reason="Lunch.")

    assert "ada paused the plan" in page(amy, f"/stages/{second.pk}/approval").text
    assert "ada paused the plan" in decide(amy, second)
    assert not second.approvals.exists()
    assert "Your approvals" not in page(amy, "/plans").text


def test_the_author_may_not_and_is_told_why():
    ada = make.a_user("ada", role="admin")
    stage = make.a_stage_to_approve(make.a_plan(author=ada))

    assert "You wrote, changed or started this plan" in page(visiting(ada), f"/stages/{stage.pk}/approval").text
    assert "Somebody other than ada has to decide" in decide(visiting(ada), stage)
    assert not stage.approvals.exists()


def test_a_viewer_is_told_which_role_is_missing(stage):
    said = decide(visiting(make.a_user(role="viewer")), stage)

    assert "you need the role" in said
    assert not stage.approvals.exists()


def test_a_stranger_gets_404(stage):
    eve = visiting(make.a_user())

    assert eve.get(f"/stages/{stage.pk}/approval").status_code == 404
    assert eve.post(f"/stages/{stage.pk}/approval", {"decision": "approve"}).status_code == 404
    assert eve.get(f"/parts/stages/{stage.pk}/approval").status_code == 404


def test_a_stage_whose_turn_it_is_not_has_nothing_to_decide(amy):
    plan = make.a_plan()

    seen = page(amy, f"/stages/{plan.stages.first().pk}/approval")

    assert "and needs no decision now" in seen.text
    assert "What will happen" not in seen.text


def test_who_is_in_no_group_that_is_asked_for_may_only_reject(amy, stage):
    sre = groups.add("sre", actor="root", now=make.NOON)
    groups.join(sre, make.a_user("bob", role="approver"), actor="root", now=make.NOON)
    type(stage).objects.filter(pk=stage.pk).update(gate_options={"approval": {"groups": {"sre": 1}}})

    seen = page(amy, f"/stages/{stage.pk}/approval").text
    said = decide(amy, stage)

    assert "1 of sre nobody yet bob" in seen
    assert (
        "Your approval would not count: only 1 of sre is missing, and you are not a member. You may still reject."
    ) in seen
    assert "would not count" in said
    assert not stage.approvals.exists()


@pytest.mark.parametrize("decision", ["", "yes"])
def test_nobody_approves_by_a_form_that_does_not_say_which_decision_it_is(amy, stage, decision):
    assert "Press either Approve or Reject" in decide(amy, stage, decision)
    assert not stage.approvals.exists()


def test_it_says_how_many_pods_it_does_not_name(amy, stage):
    node = stage.plan.cluster.nodes.get(name=stage.targets.get().node_name)
    for number in range(102):
        make.a_pod(node, f"pod-{number}")

    assert "and 2 more" in page(amy, f"/stages/{stage.pk}/approval").text


def test_what_the_cluster_itself_said_has_its_time_and_is_asked_again_from_here(amy, stage):
    url = f"/stages/{stage.pk}/approval"
    assert "No live check yet." in page(amy, url).text

    said = amy.post(f"/stages/{stage.pk}/live-checks", follow=True)

    assert said.redirect_chain[-1][0] == url
    assert (
        "amy requested a check at 2026-11-21 12:00:00 UTC: a worker is checking the cluster"
        in Page(said.content.decode()).text
    )
    LiveCheck.objects.update(next_look_at=None, answered_at=NOON, answers=[HELD.written], answered_revision=1)
    seen = page(amy, url).text
    assert "1 answer of 2026-11-21 12:00:00 UTC: 1 in order." in seen
    assert "Check again" in seen


def test_a_viewer_does_not_ask_the_cluster(stage):
    bob = visiting(make.a_user("bob", role="viewer"))

    bob.post(f"/stages/{stage.pk}/live-checks")

    assert not LiveCheck.objects.exists()
    assert visiting(make.a_user("eve")).post(f"/stages/{stage.pk}/live-checks").status_code == 404
