import re
from collections import Counter
from datetime import timedelta

import pytest
from django.db.models.signals import post_init

from fleet.models import Bookmark
from rollouts.models import Approval, Exclusion, GateAnswer, Hold, Plan, Target, Wave
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, visiting
from tests.rollouts.rows import an_item

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def an_answer(stage, gate="driver_version", answer="wait", title="0 of 1 nodes run 580.126.20", **given):
    row = {"evidence": [an_item("Nodes", 1), an_item("Changed", 0)], "since": NOON, "at": NOON}
    return GateAnswer.objects.create(stage=stage, gate=gate, answer=answer, title=title, **row | given)


def test_shows_every_stage_with_its_targets(viewer):
    plan = make.a_plan()

    seen = page(viewer, f"/plans/{plan.pk}")

    assert "1. Canary waiting" in seen.text
    assert "2. H200 waiting" in seen.text
    assert "gpu-0 not held" in seen.text, "its label is not on yet"
    plan.holds.update(placed_at=NOON)
    assert "gpu-0 held" in page(viewer, f"/plans/{plan.pk}").text


def test_a_draft_says_of_pods_that_were_never_read_that_nobody_knows_them(viewer):
    plan = make.a_draft()
    Bookmark.objects.filter(cluster=plan.cluster, kind="pods").update(listed_at=None, last_seen_at=None)

    seen = page(viewer, f"/parts/plans/{plan.pk}/preview").text

    assert "Pods evicted – Jobs ended – " in seen
    assert "GPU-hours lost – " in seen
    assert "Unmanaged pods – With local files – " in seen
    assert "Namespaces –" in seen
    assert "The cost is unknown, because pods there were never read." in seen


def test_a_stage_waits_from_the_start_on_and_only_the_next_one_says_since_when(viewer):
    plan = make.a_plan()

    html = viewer.get(f"/plans/{plan.pk}").content.decode()

    canary, second = html.split('class="panel stage')[1:3]
    assert '<span class="push age"><time' in canary
    assert '<span class="push age"></span>' in second


def test_shows_a_gates_answer_sentence_and_numbers(viewer):
    stage = make.a_stage_to_approve()
    an_answer(stage)

    seen = page(viewer, f"/plans/{stage.plan_id}")

    assert "Driver version wait" in seen.text
    assert "0 of 1 nodes run 580.126.20 " in seen.text
    assert "Nodes 1 Changed 0" in seen.text


def test_gates_that_wait_for_the_same_reason_are_one_entry_after_the_failing_one(viewer):
    stage = make.a_stage_to_approve()
    every = ("driver_version", "operands_ready", "workloads_ready", "soak")
    type(stage).objects.filter(pk=stage.pk).update(state="soaking", gate_options={key: {} for key in every})
    for gate in every[:2]:
        an_answer(stage, gate, title="gpu-0 is silent", nodes=["gpu-0"], steps=[f"Check {gate}."])
    an_answer(stage, "workloads_ready", "fail", "A pod does not run.", nodes=["gpu-0"])

    html = viewer.get(f"/plans/{stage.plan_id}").content.decode()
    waits = viewer.get(f"/api/v1/plans/{stage.plan_id}").json()["stages"][0]["waits"]

    group = "2 gates wait gpu-0 is silent Driver version Operands ready Check driver_version. Check operands_ready."
    assert f"{group} Each of these gates" in (text := Page(html).text)
    assert text.rindex("A pod does not run.") < text.index(group)
    assert [(wait["title"], sorted(wait["gates"])) for wait in waits] == [("gpu-0 is silent", list(every[:2]))]
    assert viewer.get(f"/api/v1/stages/{stage.pk}").json()["waits"] == waits


@pytest.mark.parametrize(("state", "runs"), [("soaking", True), ("halted", False)])
def test_a_soak_counts_down_while_it_runs(viewer, state, runs):
    stage = make.a_stage_to_approve()
    type(stage).objects.filter(pk=stage.pk).update(state=state)
    an_answer(stage, "soak", title="Soak", evidence=[an_item("Until", "2026-11-21T12:20:00+00:00", "UTC")])

    response = viewer.get(f"/plans/{stage.plan_id}").content.decode()
    times = re.findall(r'<time datetime="([^"]*)"[^>]*data-when="until">20 min', response)
    # Gate, stage and what the plan waits for count down to one stored instant.
    assert times == (["2026-11-21T12:20:00+00:00"] * 3 if runs else [])


def test_a_node_that_a_gate_fails_on_is_marked_though_it_changed(viewer):
    stage = make.a_stage_to_approve()
    target = stage.targets.get()
    Target.objects.filter(pk=target.pk).update(state="changed")
    an_answer(stage, "workloads_ready", "fail", "A pod does not run.", nodes=[target.node_name])

    assert "fails Tenants' GPU pods" in page(viewer, f"/plans/{stage.plan_id}").text


def release(plan, *names: str) -> None:
    Hold.objects.filter(plan=plan, node_name__in=names).update(is_wanted=False, placed_at=None)


def test_a_target_that_an_ended_plan_never_came_to_is_not_called_held(viewer):
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="aborted")
    plan.stages.update(state="abandoned")
    plan.holds.update(placed_at=NOON)
    release(plan, "gpu-1")

    seen = page(viewer, f"/plans/{plan.pk}")

    assert "gpu-0 held" in seen.text  # not let go yet: somebody else wrote the version
    assert "Not begun unchanged; our hold is removed" in seen.text
    assert "gpu-1 not begun" in seen.text


def test_what_began_outside_of_a_wave_is_neither_to_come_nor_as_it_was(viewer):
    plan = make.a_plan()
    plan.stages.forward().update(state="halted")
    Target.objects.filter(stage__plan=plan, node_name="gpu-1").update(state="changed", has_escaped=True)

    under_way = page(viewer, f"/plans/{plan.pk}").text
    Plan.objects.filter(pk=plan.pk).update(state="aborted", put_back_at=NOON)
    plan.stages.update(state="abandoned")
    release(plan, "gpu-0", "gpu-1", "gpu-2")
    over = page(viewer, f"/plans/{plan.pk}").text

    assert "Begun outside of a wave this plan did not release them gpu-1 changed, escaped" in under_way
    assert "Next released in this order gpu-2" in under_way
    assert "Begun outside of a wave this plan did not release them gpu-1 back, escaped" in over
    assert "Not begun unchanged; our hold is removed gpu-2" in over


@pytest.mark.parametrize(
    ("state", "is_kept", "shown"),
    [
        ("changed", True, "changed"),
        ("changed", False, "back"),
        ("failed", True, "failed"),
        ("changing", False, "back"),
        ("changing", True, "held"),
        ("released", False, "not begun"),
        ("excluded", True, "excluded"),
    ],
)
def test_what_became_of_a_target_when_the_old_version_was_put_back(viewer, state, is_kept, shown):
    plan = make.a_plan()
    Target.objects.filter(node_name="gpu-0").update(state=state)
    Hold.objects.filter(node_name="gpu-0").update(is_wanted=is_kept)
    Plan.objects.filter(pk=plan.pk).update(state="rolled-back", put_back_at=NOON)

    assert f"gpu-0 {shown}" in page(viewer, f"/plans/{plan.pk}").text


def test_a_node_says_whom_the_plan_keeps_off_it_and_what_somebody_made_of_that(viewer):
    plan = make.a_plan()
    target = Target.objects.get(stage__plan=plan, node_name="gpu-0")
    row = {"plan": plan, "node_uid": target.node_uid, "node_name": "gpu-0", "wanted_since": NOON, "placed_at": NOON}
    Exclusion.objects.create(controller="nvsentinel", **row)
    Exclusion.objects.create(controller="karpenter", ended_at=NOON, left_reason="It is mine.", **row)

    seen = page(viewer, f"/plans/{plan.pk}")

    assert "NVSentinel kept off" in seen.text
    assert "Karpenter not as before" in seen.text


def test_what_is_not_listed_is_counted_by_what_is_true_of_it(viewer):
    plan = make.a_plan(make.a_fleet(nodes=70))
    plan.holds.update(placed_at=NOON)
    release(plan, *(f"gpu-{number}" for number in range(1, 68)))

    assert re.search(r"and 7 more, not begun and 2 more, held", page(viewer, f"/plans/{plan.pk}").text)


def test_the_hold_is_not_said_to_be_off_of_those_that_have_it_still(viewer):
    """Nodes that never changed are let go one after another: of thousands the last has its hold for minutes."""
    plan = make.a_plan(make.a_fleet(nodes=70))
    plan.holds.update(placed_at=NOON)
    release(plan, *(f"gpu-{number}" for number in range(1, 70) if number != 68))

    assert "our hold is removed, except from nodes shown as held" in page(viewer, f"/plans/{plan.pk}").text

    release(plan, "gpu-68")

    assert "our hold is off, but for" not in page(viewer, f"/plans/{plan.pk}").text


def test_always_says_why_it_is_not_moving(viewer):
    plan = make.a_plan()
    draft = make.a_draft()

    assert "Waiting for No worker has evaluated the plan yet." in page(viewer, f"/plans/{plan.pk}").text
    Plan.objects.filter(pk=plan.pk).update(epoch=1)  # the first round of a large plan takes a while
    assert "Waiting for A worker evaluates the plan for the first time." in page(viewer, f"/plans/{plan.pk}").text
    assert "A draft" in page(viewer, f"/plans/{draft.pk}").text


def test_a_pause_names_who_and_why(viewer):
    from rollouts.commands.plan_control import pause

    plan = make.a_plan()
    pause(plan, actor=make.a_user("amy", role="approver"), reason="Lunch.", now=NOON)

    assert "amy paused the plan: Lunch." in page(viewer, f"/plans/{plan.pk}").text


def test_an_armed_plan_says_so_and_how_to_go_on_without_us(viewer):
    plan = make.a_plan()
    type(plan).objects.filter(pk=plan.pk).update(write_intended_at=NOON, armed_since=NOON)

    seen = page(viewer, f"/plans/{plan.pk}")

    assert "the cluster asks for 580.126.20" in seen.text
    assert "kubectl patch nvidiadriver h200" in seen.text


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        (lambda driver: driver.update(version="580.1.1"), "asks for 580.1.1 now."),
        (lambda driver: driver.update(version=""), "names no version now."),
        (lambda driver: driver.delete(), "is gone."),
    ],
)
def test_a_cluster_that_asks_for_something_else_by_now_is_not_said_to_ask_for_the_new_version(viewer, happens, says):
    plan = halted_plan()
    its_object(plan).update(changed_at=NOON + timedelta(seconds=1))
    happens(its_object(plan))

    seen = page(viewer, f"/plans/{plan.pk}").text

    assert f"580.126.20 was written, and NVIDIADriver h200 {says}" in seen
    assert "the cluster asks for 580.126.20" not in seen
    assert "gets the new driver nevertheless" not in seen
    assert "kubectl get nodes -l nvidia.com/gpu-driver-upgrade.skip=true" in seen


def test_a_row_from_before_the_version_was_written_says_nothing_of_what_is_asked_for_now(viewer):
    plan = halted_plan()
    its_object(plan).update(version=plan.from_version, changed_at=NOON - timedelta(seconds=1))

    assert "the cluster asks for 580.126.20" in page(viewer, f"/plans/{plan.pk}").text


def test_a_button_one_may_not_press_stays_and_says_why(viewer):
    plan = make.a_plan()

    response = viewer.get(f"/plans/{plan.pk}").content.decode()

    assert 'aria-disabled="true"' in response
    assert "you may not stop" in response or "need the role" in response


@pytest.mark.parametrize(("mode", "drawn"), [("operate", "button main"), ("observe-only", "button")])
def test_start_is_not_the_bright_button_of_a_draft_that_is_barred(mode, drawn):
    plan = make.a_draft(make.a_fleet(mode=mode))

    html = visiting(make.a_user("ada", role="operator")).get(f"/parts/plans/{plan.pk}/preview").content.decode()

    assert f'class="{drawn}" data-dialog="dialog-start"' in html


def test_a_draft_shows_what_it_would_do_and_what_stands_against_it(viewer):
    cluster = make.a_fleet(mode="observe-only")
    plan = make.a_draft(cluster)

    seen = page(viewer, f"/parts/plans/{plan.pk}/preview")

    assert "Its mode is observe-only" in seen.text
    assert "1 blocker bars the start. As of 12:00:00 UTC." in seen.text
    assert "1 node in 1 wave of at most 1" in seen.text
    assert "What it disrupts" in seen.text


def test_the_page_of_a_draft_evaluates_no_check_and_offers_no_start_before_its_preview(monkeypatch):
    plan, ada = make.a_draft(), visiting(make.a_user("ada", role="operator"))
    monkeypatch.setattr("rollouts.web.plan_page.preview_of", pytest.fail)

    html = ada.get(f"/plans/{plan.pk}").content.decode() + ada.get(f"/parts/plans/{plan.pk}").content.decode()

    assert f'hx-get="/parts/plans/{plan.pk}/preview"' in html
    assert 'data-dialog="dialog-start"' not in html
    assert 'id="dialog-start"' in html, "its button comes with the preview, and fills it"


def test_a_plan_that_has_started_has_no_preview(viewer):
    plan = make.a_plan()

    assert "/preview" not in viewer.get(f"/plans/{plan.pk}").content.decode()
    assert page(viewer, f"/parts/plans/{plan.pk}/preview").text == "", "a draft's page that is still open drops it"


def test_a_draft_whose_object_is_gone_still_shows(viewer):
    plan = make.a_draft()
    plan.cluster.driver_objects.all().delete()

    assert page(viewer, f"/plans/{plan.pk}").text
    assert "NVIDIADriver h200 no longer exists" in page(viewer, f"/parts/plans/{plan.pk}/preview").text


def test_a_stranger_gets_404():
    plan = make.a_plan()
    client = visiting(make.a_user())

    for path in (f"/plans/{plan.pk}", f"/parts/plans/{plan.pk}", f"/parts/plans/{plan.pk}/history"):
        assert client.get(path).status_code == 404


def test_hostile_words_are_shown_and_not_run(viewer):
    stage = make.a_stage_to_approve(make.a_plan(title=HOSTILE))
    an_answer(stage, title=HOSTILE, evidence=[an_item(HOSTILE, HOSTILE)])
    Target.objects.filter(stage=stage).update(node_name=HOSTILE, reason=HOSTILE)

    assert HOSTILE in page(viewer, f"/plans/{stage.plan_id}").text


def test_the_number_of_queries_does_not_grow_with_the_targets(viewer, queries_of):
    few, many = make.a_plan(make.a_fleet(nodes=10)), make.a_plan(make.a_fleet(nodes=100))

    assert queries_of(viewer, f"/plans/{many.pk}") == queries_of(viewer, f"/plans/{few.pk}")
    assert queries_of(viewer, f"/parts/plans/{few.pk}") <= 33  # with the ledger, for how many may be down at once


@pytest.mark.parametrize("state", ["promoted", "rolled-back", "aborted"])
def test_gates_of_a_plan_that_is_over_speak_in_the_past_without_a_clock(viewer, state):
    stage = make.a_stage_to_approve()
    an_answer(stage, "driver_version", "pass", title="All 2 nodes run 580.126.20")
    Plan.objects.filter(pk=stage.plan_id).update(state=state)
    type(stage).objects.filter(pk=stage.pk).update(state="passed")

    html = viewer.get(f"/plans/{stage.plan_id}").content.decode()

    shown = re.search(r'<li class="gate.*?Driver version.*?</li>', html, re.S)[0]
    gate = Page(shown[shown.rindex("<li") :]).text
    assert "passed" in gate
    assert "at 12:00: All 2 nodes run 580.126.20." in gate
    assert "for" not in gate.split()
    assert "is prepared" not in html


def test_a_passed_stage_whose_next_one_opens_is_still_asked(viewer):
    stage = make.a_stage_to_approve()
    an_answer(stage, "driver_version", "pass", title="All 2 nodes run 580.126.20")
    stage.plan.stages.filter(index=0).update(state="passed")
    stage.plan.stages.filter(index=1).update(state="opening")

    assert "“All 2 nodes run" not in page(viewer, f"/plans/{stage.plan_id}").text


def test_the_failure_budget_says_which_failing_node_it_does_not_count(viewer):
    stage = make.a_stage_to_approve()
    target = stage.targets.get()
    type(stage).objects.filter(pk=stage.pk).update(state="halted")
    an_answer(stage, "failure_budget", "pass", title="No node is lost")
    an_answer(stage, "workloads_ready", "fail", title="It crashes", nodes=[target.node_name])

    assert (
        f"Not counted here: {target.node_name}. These nodes are up but fail Tenants' GPU pods."
        in page(viewer, f"/plans/{stage.plan_id}").text
    )


def halted_plan() -> Plan:
    """Armed, and its cluster asks for the new version."""
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="halted", write_intended_at=make.NOON, armed_since=make.NOON)
    plan.cluster.driver_objects.filter(uid=plan.object_uid).update(version=plan.to_version)
    plan.refresh_from_db()
    return plan


def an_approval(stage) -> Approval:
    return Approval.objects.create(stage=stage, bundle={}, bundle_hash="of-what-was-seen", by="amy", at=NOON)


def resume_dialog(plan: Plan) -> str:
    html = visiting(make.a_user(role="operator")).get(f"/plans/{plan.pk}").content.decode()
    return Page(re.search(r'<b data-fill="says">.*?</b>', html, re.S)[0]).text


def its_object(plan):
    return plan.cluster.driver_objects.filter(uid=plan.object_uid)


@pytest.mark.parametrize(
    ("injure", "says"),
    [
        (lambda driver: driver.delete(), "NVIDIADriver h200 was deleted"),
        (lambda driver: driver.update(uid="another"), "was deleted or created again, so the plan halts again at once"),
        (lambda driver: driver.update(version="580.1.1"), "NVIDIADriver h200 asks for 580.1.1"),
        (lambda driver: driver.update(version=""), "NVIDIADriver h200 names no version"),
        (lambda driver: driver.update(upgrade_policy={"autoUpgrade": False}), "autoUpgrade is off"),
    ],
)
def test_where_resuming_cannot_help_its_dialog_says_so_and_names_no_node(injure, says):
    plan = halted_plan()
    injure(its_object(plan))

    said = resume_dialog(plan)

    assert said.startswith("Resuming does not help: ")
    assert says in said
    assert "gpu-" not in said


def test_resume_counts_no_node_that_was_taken_out():
    plan = halted_plan()
    Target.objects.filter(node_name="gpu-2").update(state="excluded")

    assert resume_dialog(plan).endswith("After it 1 stage with 1 node.")


def test_resume_says_first_what_would_halt_it_again():
    plan = halted_plan()
    an_answer(plan.stages.get(index=0), "workloads_ready", "fail", "A pod does not run.")

    assert resume_dialog(plan).startswith(
        "The plan halts again at once while this fails: Tenants' GPU pods (Canary). Once"
    )


def test_a_halted_plan_says_what_it_has_met_since(viewer):
    plan = halted_plan()
    gone = "Halted. NVIDIADriver h200 was deleted."
    Plan.objects.filter(pk=plan.pk).update(reason="A pod does not run.", waiting_for=gone)
    assert "A pod does not run. NVIDIADriver h200 was deleted." in page(viewer, f"/plans/{plan.pk}").text

    Plan.objects.filter(pk=plan.pk).update(waiting_for="Halted. A person decides: roll back, resume or abort.")
    assert "A person decides" not in page(viewer, f"/plans/{plan.pk}").text


@pytest.mark.parametrize(("index", "word"), [(0, "awaiting approval"), (2, "preparing")])
def test_a_stage_that_opens_is_named_by_what_it_waits_for(viewer, index, word):
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="rolling-back" if index else "promoting")
    stage = plan.stages.get(index=index)
    stage.move("opening", now=NOON, actor="engine", reason="Its turn.")

    html = viewer.get(f"/plans/{plan.pk}").content.decode()

    assert f"{stage.name} waiting → {word}" in Page(html).text
    assert "opening" not in Page(html).text


def test_a_stage_that_asks_nobody_does_not_await_an_approval(viewer):
    plan = make.a_plan()
    stage = plan.stages.get(index=0)
    options = {gate: given for gate, given in stage.gate_options.items() if gate != "approval"}
    type(stage).objects.filter(pk=stage.pk).update(state="opening", gate_options=options)

    assert "1. Canary preparing" in page(viewer, f"/plans/{plan.pk}").text


def test_from_a_halt_the_way_leads_back_and_resume_says_what_would_go():
    plan = halted_plan()
    plan.stages.filter(index=0).update(state="halted")
    wave = Wave.objects.create(stage=plan.stages.get(index=0), number=1, decided_at=make.NOON, reason="1 node.")
    Target.objects.filter(stage=wave.stage).update(wave=wave, state="changed")
    an_approval(wave.stage)
    ada = visiting(make.a_user("ada", role="operator"))

    html = ada.get(f"/plans/{plan.pk}").content.decode()

    assert re.search(r'class="button main" data-dialog="dialog-rollback"', html)
    assert re.search(r'class="button" data-dialog="dialog-resume"', html)
    assert "No node of Canary is left to release. After it 1 stage with 2 nodes." in Page(html).text


def test_resume_names_the_nodes_and_the_wave():
    plan = halted_plan()
    plan.stages.filter(index=0).update(state="passed")
    second = plan.stages.get(index=1)
    type(second).objects.filter(pk=second.pk).update(state="halted")
    first = second.targets.first()
    wave = Wave.objects.create(stage=second, number=1, decided_at=make.NOON, reason="1 node.")
    Target.objects.filter(pk=first.pk).update(wave=wave, state="changed")
    left = second.targets.exclude(pk=first.pk).get().node_name
    an_approval(second)

    seen = page(visiting(make.a_user(role="operator")), f"/plans/{plan.pk}").text

    assert f"H200, wave 2: {left} goes next (1 node at most)." in seen


def test_resume_says_that_a_stage_has_to_be_approved_again_before_anything_goes():
    """Its approval became void with what it was given for: the template of the driver pods, say."""
    plan = halted_plan()
    stage = plan.stages.get(index=1)
    plan.stages.filter(index=0).update(state="passed")
    plan.stages.filter(index=1).update(state="halted")
    wave = Wave.objects.create(stage=stage, number=1, decided_at=NOON, reason="1 node.")
    first = stage.targets.first()
    Target.objects.filter(pk=first.pk).update(wave=wave, state="changed")
    left = stage.targets.exclude(pk=first.pk).get().node_name
    given = an_approval(stage)
    assert resume_dialog(plan) == f"H200, wave 2: {left} goes next (1 node at most)."

    Approval.objects.filter(pk=given.pk).update(void_at=NOON, void_reason="Another template.")

    assert resume_dialog(plan) == f"H200 needs a new approval, then {left} goes next (1 node at most)."


def test_the_bar_of_a_stage_is_full_once_every_node_that_counts_has_changed(viewer):
    """As its words count: one that was taken out is no part of the whole."""
    plan = make.a_plan()
    rest = plan.stages.get(index=1)
    out = rest.targets.first()
    rest.targets.update(state="changed")
    Target.objects.filter(pk=out.pk).update(state="excluded")

    html = viewer.get(f"/plans/{plan.pk}").content.decode()

    bar = re.search(r'aria-label="1 of 1 node changed">(.*?)</svg>', html, re.S)[1]
    assert re.findall(r'width="([\d.]+)"', bar) == ["100.00"]


def test_a_stage_that_was_approved_and_waits_for_something_else_awaits_no_approval(viewer):
    stage = make.a_stage_to_approve()
    an_answer(stage, "approval", "pass", title="Approved by amy")
    an_answer(stage, "headroom", "wait", title="1 pod fits on no node")

    assert "1. Canary preparing" in page(viewer, f"/plans/{stage.plan_id}").text


def test_a_paused_plan_is_not_called_promoting(viewer):
    stage = make.a_stage_to_approve()
    stage.plan.commands.create(verb="pause", actor="ada", at=make.NOON, reason="Lunch.")

    for path in (f"/plans/{stage.plan_id}", "/plans", "/parts/plans/strip"):
        html = viewer.get(path).content.decode()
        assert 'class="state is-cordoned"' in html, path
        assert not re.search(r'class="state is-changing">.{0,200}promoting', html, re.S), path


def test_waves_run_from_the_oldest_on_and_what_is_through_is_folded(viewer):
    plan = make.a_plan()
    second = plan.stages.get(index=1)
    for number, (target, state) in enumerate(zip(second.targets.all(), ("changed", "failed"), strict=True), 1):
        wave = Wave.objects.create(stage=second, number=number, decided_at=make.NOON, reason="1 node.")
        Target.objects.filter(pk=target.pk).update(wave=wave, state=state)

    html = viewer.get(f"/plans/{plan.pk}").content.decode()

    folded, open_ = (f'id="wave-{second.pk}-1">', f'id="wave-{second.pk}-2" open>')
    assert html.index(folded) < html.index(open_)


def not_heard_since(plan, at):
    Bookmark.objects.filter(cluster=plan.cluster_id).update(last_seen_at=at)


def test_a_cluster_that_is_not_seen_is_named_and_no_clock_of_a_gate_runs(viewer):
    stage = make.a_stage_to_approve()
    type(stage).objects.filter(pk=stage.pk).update(state="soaking")
    an_answer(stage)
    an_answer(stage, "soak", title="Soak", evidence=[an_item("Until", "2026-11-21T12:20:00+00:00", "UTC")])
    not_heard_since(stage.plan, NOON - timedelta(minutes=5))

    html = viewer.get(f"/plans/{stage.plan_id}").content.decode()

    seen = Page(html).text
    assert "Not observed since 11:55:00 UTC: no data for more than 90 s." in seen
    assert seen.count("as of 11:55:00 UTC") == 2
    assert 'data-when="until"' not in html
    assert "the cluster was last observed at 11:55:00" in seen
    assert "is stale since 11:55:00." in page(viewer, "/plans").text


def test_a_cluster_that_does_not_answer_is_named_at_once(viewer):
    plan = make.a_plan()
    Bookmark.objects.filter(cluster=plan.cluster_id).update(state="failing")

    assert "The cluster does not answer. Last observed at" in page(viewer, f"/plans/{plan.pk}").text


def test_a_cluster_that_is_seen_is_not_spoken_of(viewer):
    stage = make.a_stage_to_approve()
    an_answer(stage)

    seen = page(viewer, f"/plans/{stage.plan_id}").text

    assert "as of" not in seen
    assert "last observed" not in seen


def test_a_stage_that_was_rolled_back_counts_what_became_of_each_node(viewer):
    plan = make.a_plan(make.a_fleet(nodes=5))
    rest = plan.stages.get(index=1)
    for node, state in [("gpu-1", "changed"), ("gpu-2", "failed"), ("gpu-3", "changing")]:
        assert Target.objects.filter(stage=rest, node_name=node).update(state=state)
    release(plan, "gpu-1", "gpu-2", "gpu-3", "gpu-4")
    Plan.objects.filter(pk=plan.pk).update(state="rolled-back", put_back_at=NOON)

    seen = page(viewer, f"/plans/{plan.pk}").text

    counted = f"1 of 4 nodes changed, 1 failed, 1 not finished, 1 not begun; 3 back on {plan.from_version}"
    assert counted in re.sub(r" (?=[,;])", "", seen)


@pytest.mark.parametrize(("answer", "asked_at", "says"), [("pass", 1, True), ("pass", -1, False), ("fail", 1, False)])
def test_a_halt_is_told_as_what_was_and_says_when_every_gate_passes_now(viewer, answer, asked_at, says):
    stage = make.a_stage_to_approve()
    type(stage).objects.filter(pk=stage.pk).update(state="halted")
    halted = {"state": "halted", "reason": "A pod crashed.", "state_since": NOON - timedelta(minutes=2)}
    Plan.objects.filter(pk=stage.plan_id).update(**halted)
    for gate in stage.gates:
        said = answer if gate.key == "driver_version" else "pass"
        an_answer(stage, gate.key, said, at=halted["state_since"] + timedelta(minutes=asked_at))

    seen = page(viewer, f"/plans/{stage.plan_id}").text

    assert "Halted at 11:58:00 because A pod crashed." in seen
    assert ("Every evaluated gate passes." in seen) is says


def test_nothing_of_an_abandoned_stage_is_still_to_come():
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="rolling-back", write_intended_at=NOON, armed_since=NOON)
    plan.stages.forward().update(state="abandoned")

    html = visiting(make.a_user(role="operator")).get(f"/plans/{plan.pk}").content.decode()

    assert "Not begun will not be released" in Page(html).text
    assert "To come" not in Page(html).text
    assert 'aria-label="Exclude gpu-' not in html


def test_the_rollback_has_no_duration_before_its_nodes_are_known(viewer):
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="rolling-back", write_intended_at=NOON, armed_since=NOON)
    plan.stages.forward().update(state="abandoned")

    assert "0 waves" not in page(viewer, f"/plans/{plan.pk}").text
    assert "About" not in page(viewer, f"/plans/{plan.pk}").text


def test_a_node_that_is_back_is_shown_as_back_while_others_are_on_their_way(viewer):
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="rolling-back", write_intended_at=NOON, armed_since=NOON)
    plan.stages.forward().update(state="abandoned")
    canary, back = plan.stages.get(index=0), plan.stages.get(kind="rollback")
    Target.objects.filter(stage=canary).update(state="changed")
    gone = Target.objects.filter(stage=canary).first()
    before = page(viewer, f"/plans/{plan.pk}").text
    Target.objects.create(
        stage=back, position=0, node_uid=gone.node_uid, node_name=gone.node_name, state="changed", state_since=NOON
    )

    assert f"back on {plan.from_version}" not in before
    assert f"1 back on {plan.from_version}" in page(viewer, f"/plans/{plan.pk}").text


def test_of_each_node_it_makes_one_row_and_reads_no_more_than_it_shows(
    viewer, django_assert_max_num_queries, monkeypatch
):
    """Each viewer has it again every five seconds: rows of nodes, and what was written of each, were most of it."""
    plans = [make.a_plan(make.a_fleet(nodes=nodes)) for nodes in (10, 60)]
    monkeypatch.setattr(make, "counted", lambda: None)  # with every request, of all nodes
    few, many = (made_for(viewer, plan) for plan in plans)

    assert {model for model in many if many[model] > 2 * few[model]} == {"Target"}
    with django_assert_max_num_queries(33) as asked:
        viewer.get(f"/parts/plans/{plans[-1].pk}")
    of_targets = [one["sql"] for one in asked.captured_queries if 'FROM "rollouts_target"' in one["sql"]]
    assert of_targets
    assert not [sql for sql in of_targets if '"baseline"' in sql or '"facts"' in sql]


def made_for(client, plan) -> Counter[str]:
    """How many rows of each model were made for the part of a plan, once it was asked for before."""
    client.get(f"/parts/plans/{plan.pk}")
    made: Counter[str] = Counter()

    def note(sender, **_):
        made[sender.__name__] += 1

    post_init.connect(note)
    try:
        client.get(f"/parts/plans/{plan.pk}")
    finally:
        post_init.disconnect(note)
    return made


NO_EVICTION = "gpu-0 failed. PodDisruptionBudget team-a/web allows no eviction of team-a/web-0."


def a_stage_halted_by(gate: str, reason: str, *, state: str):
    """A canary whose one node is in this state. Every gate but one passes."""
    stage = make.a_stage_to_approve()
    type(stage).objects.filter(pk=stage.pk).update(state="halted", reason=reason)
    Target.objects.filter(stage=stage).update(state=state)
    Plan.objects.filter(pk=stage.plan_id).update(state="halted", reason=reason, state_since=NOON)
    for each in stage.gates:
        title, _, summary = reason.partition(". ")
        failed = {"title": title, "summary": summary, "evidence": [an_item("Failed nodes", 1)]}
        failed |= {"nodes": ["gpu-0"], "rested_on_at": NOON}
        an_answer(stage, each.key, **{"answer": "fail", **failed} if each.key == gate else {"answer": "pass"})
    return stage


def test_the_gate_that_failed_comes_first_and_its_numbers_stand_under_the_cause(viewer):
    stage = a_stage_halted_by("failure_budget", NO_EVICTION, state="failed")

    html = viewer.get(f"/plans/{stage.plan_id}").content.decode()

    assert f"Halted at 12:00:00 because {NO_EVICTION} Failure budget of Canary Failed nodes 1" in Page(html).text
    assert re.findall(r'<li class="gate[^"]*"', html)[0] == '<li class="gate is-fail"'


def test_a_node_that_a_gate_fails_for_is_red_in_the_bar_of_its_stage(viewer):
    """Its target is changed: the bar would be full and green."""
    stage = a_stage_halted_by("driver_version", "gpu-0 runs 570.172.08.", state="changed")

    html = viewer.get(f"/plans/{stage.plan_id}").content.decode()

    bar = html.partition(f'id="stage-{stage.pk}"')[2].partition('<svg class="bar"')[2].partition("</svg>")[0]
    assert '<rect class="t-failed" x="0.00" width="100.00"' in bar
    assert "t-changed" not in bar
