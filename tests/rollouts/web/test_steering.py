import re

import pytest

from fleet.models import Node
from rollouts.commands.preview import preview
from rollouts.models import Plan, Stage, Target
from rollouts.queries.completion import completion_of
from tests import make
from tests.callers import calling
from tests.pages import Page, page, visiting
from tests.rollouts.rows import a_started_plan, in_state

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def tell(client, plan, verb, **asked):
    response = client.post(f"/plans/{plan.pk}/commands/{verb}", {"reason": "Because.", **asked}, follow=True)
    return response, Page(response.content.decode()).text


@pytest.mark.parametrize(
    ("verb", "state"), [("halt", "halted"), ("abort", "aborting"), ("pause", "holding")], ids=["halt", "abort", "pause"]
)
def test_an_operator_stops_a_plan(verb, state):
    plan = make.a_plan()

    tell(visiting(make.a_user("ada", role="operator")), plan, verb)

    plan.refresh_from_db()
    assert plan.state == state
    assert plan.commands.first().reason == "Because."


def test_the_start_of_a_draft_is_asked_for_from_what_was_seen():
    plan = make.a_draft()
    ada = visiting(make.a_user("ada", role="operator"))

    _, refused = tell(ada, plan, "start", revision="7")
    _, said = tell(ada, plan, "start", revision="1")

    assert "The draft has changed since you read it. Read it again before you start it" in refused
    assert "Start requested: the cluster is checked first" in said
    assert "The start is requested" in said
    assert plan.live_check.is_start


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"revision": "one"}, "The revision of the plan is missing"),
        ({}, "The revision of the plan is missing"),
        ({"revision": "1", "reason": "a" * 1001}, "at most 1000 characters (it has 1001)"),
        ({"revision": "1", "key": "k" * 101}, "at most 100 characters (it has 101)"),
    ],
)
def test_nothing_that_a_start_says_is_cut_off_or_made_up(asked, said):
    """A key that is cut is that of another press; a reason, one that nobody wrote."""
    plan = make.a_draft()

    _, refused = tell(visiting(make.a_user("ada", role="operator")), plan, "start", **asked)

    plan.refresh_from_db()
    assert said in refused
    assert plan.state == "draft"


def test_what_stands_against_a_start_is_said_on_the_page():
    plan = make.a_draft(make.a_fleet(mode="observe-only"))

    ada = visiting(make.a_user(role="operator"))

    _, said = tell(ada, plan, "start", revision="1")

    assert page(ada, f"/parts/plans/{plan.pk}/preview").text.count("Its mode is observe-only") == 1
    assert "Not started: the blocker stands below. Your input is kept." in said


def test_what_was_written_for_a_refused_start_comes_back_once():
    plan = make.a_draft(make.a_fleet(mode="observe-only"))
    ada = visiting(make.a_user("ada", role="operator"))

    _, said = tell(ada, plan, "start", revision="1", reason="The <b>long</b> typed reason.")

    html = ada.get(f"/plans/{plan.pk}").content.decode()
    assert "The <b>long</b> typed reason." in said
    assert "not saved." not in said
    assert "typed reason" not in html


def test_why_it_starts_all_the_same_comes_back_once_where_the_start_is_refused():
    """Another blocker, which nobody may override, stands beside the one that may be."""
    plan = make.a_draft(make.a_fleet(mode="observe-only"), to_version="999.1.1")
    ada = visiting(make.a_user("ada", role="operator"))

    _, said = tell(ada, plan, "start", revision="1", override_reason="NVIDIA <b>asked</b> us to.")

    html = ada.get(f"/plans/{plan.pk}").content.decode()
    plan.refresh_from_db()
    assert plan.state == "draft"
    assert "NVIDIA <b>asked</b> us to." in said
    assert "asked</b> us" not in html


def test_a_reason_in_a_hidden_field_overrides_no_blocker_that_came_meanwhile():
    plan = make.a_draft(make.a_fleet(mode="operate"), to_version="999.1.1")
    ada = visiting(make.a_user("ada", role="operator"))

    said = [
        tell(ada, plan, "start", revision="1", override_reason="An old reason.", **shown)[1]
        for shown in ({}, {"overrides": ""}, {"overrides": "on"})
    ]

    assert ["blocker stands below" in each for each in said] == [True, True, False]


def test_a_blocker_that_may_be_overridden_is_said_once():
    plan = make.a_draft(to_version="999.1.1")
    ada = visiting(make.a_user("ada", role="operator"))

    html = ada.get(f"/parts/plans/{plan.pk}/preview").content.decode()

    (check,) = [check for check in preview(plan, now=make.NOON).blockers if check.may_be_overridden]
    assert Page(html).text.count(check.title) == 1
    assert 'data-overrides="Why it starts despite the blocker that may be overridden (' in html


def test_a_reason_is_asked_for():
    plan = make.a_plan()

    _, said = tell(visiting(make.a_user(role="operator")), plan, "halt", reason=" ")

    plan.refresh_from_db()
    assert "Give a reason" in said
    assert plan.state == "holding"


def test_a_viewer_is_told_what_is_missing():
    plan = make.a_plan()

    _, said = tell(visiting(make.a_user(role="viewer")), plan, "halt")

    plan.refresh_from_db()
    assert "you need the role" in said
    assert plan.state == "holding"


def test_a_stranger_gets_404():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    eve = visiting(make.a_user())

    assert eve.post(f"/plans/{plan.pk}/commands/halt", {"reason": "x"}).status_code == 404
    assert eve.post(f"/targets/{target.pk}/exclusions", {"reason": "x"}).status_code == 404


def test_the_same_click_twice_is_one_command():
    plan = make.a_plan()
    ada = visiting(make.a_user(role="operator"))

    tell(ada, plan, "pause", key="one-click")
    tell(ada, plan, "pause", key="one-click")

    assert plan.commands.filter(verb="pause").count() == 1


def test_a_halt_that_somebody_undid_is_offered_again_when_its_form_comes_back():
    plan = in_state(make.a_plan(), "promoting")
    ada, ben = (visiting(make.a_user(name, role="operator")) for name in ("ada", "ben"))
    tell(ada, plan, "halt", key="one-click", reason="Fans are loud.")
    tell(ben, plan, "resume")

    response, said = tell(ada, plan, "halt", key="one-click", reason="Fans are loud.")

    assert "Halted: no more nodes are released" not in said
    assert "is no longer in effect. The plan is promoting: ben resumed it at" in said
    form = response.content.decode().partition(f'action="/plans/{plan.pk}/commands/halt"')[2]
    key = re.search(r'name="key" value="([^"]+)"', form)[1]
    assert "Fans are loud." in form.partition("</form>")[0]
    tell(ada, plan, "halt", key=key, reason="Fans are loud.")
    assert Plan.objects.get(pk=plan.pk).state == "halted"


def test_going_on_rests_on_what_was_seen_and_stopping_does_not():
    plan = make.a_plan()
    ada = visiting(make.a_user(role="operator"))

    tell(ada, plan, "halt", expected_state="promoting")
    _, said = tell(ada, plan, "resume", expected_state="promoting")

    assert Plan.objects.get(pk=plan.pk).state == "halted"
    assert "It was promoting when you read it" in said


def test_an_unknown_verb_is_not_found():
    plan = make.a_plan()

    assert visiting(make.a_user(role="admin")).post(f"/plans/{plan.pk}/commands/explode").status_code == 404


def test_a_command_needs_a_csrf_token():
    from django.test import Client

    plan = make.a_plan()
    client = Client(enforce_csrf_checks=True)
    client.force_login(make.a_user(role="admin"))

    assert client.post(f"/plans/{plan.pk}/commands/halt", {"reason": "x"}).status_code == 403


def test_a_node_is_taken_out_with_a_reason():
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).last()
    ada = visiting(make.a_user(role="operator"))

    ada.post(f"/targets/{target.pk}/exclusions", {"reason": "In repair."})

    target.refresh_from_db()
    assert target.state == "excluded"
    assert target.reason == "In repair."


def test_a_failed_node_is_tried_again_with_a_reason():
    plan = make.a_plan()
    ada, target = visiting(make.a_user("ada", role="operator")), plan.stages.get(index=0).targets.get()
    Plan.objects.filter(pk=plan.pk).update(state="halted")
    Stage.objects.filter(pk=target.stage_id).update(state="halted")
    Target.objects.filter(pk=target.pk).update(state="failed")
    Node.objects.filter(uid=target.node_uid).update(upgrade_state="upgrade-failed")

    shown = ada.get(f"/plans/{plan.pk}").content.decode()
    without = Page(ada.post(f"/targets/{target.pk}/retries", {"reason": " "}, follow=True).content.decode()).text
    said = Page(ada.post(f"/targets/{target.pk}/retries", {"reason": "Mended."}, follow=True).content.decode()).text

    assert f'aria-label="Try {target.node_name} again"' in shown
    assert "Give a reason why another try may succeed." in without
    assert f"{target.node_name} is held for another try. A wave releases it once you resume." in said


def test_who_only_looks_tries_nothing_again():
    plan = make.a_plan()
    target = plan.stages.get(index=0).targets.get()
    eve = make.a_user("eve", role="viewer")

    reply = calling(eve).post(f"/api/v1/targets/{target.pk}/retries", {"reason": "So."}, format="json")

    assert reply.status_code == 403
    assert "you need the role operator or admin" in reply.json()["detail"]


def with_failed_nodes(plan):
    Plan.objects.filter(pk=plan.pk).update(state="halted")
    first, last = plan.stages.forward()
    Stage.objects.filter(pk=first.pk).update(state="passed")
    first.targets.update(state="changed")
    Stage.objects.filter(pk=last.pk).update(state="halted")
    last.targets.update(state="failed", wave=last.waves.create(number=1, decided_at=make.NOON, reason=""))
    return Plan.objects.get(pk=plan.pk)


def test_completing_says_what_it_leaves_out_also_on_a_page_that_is_open_for_long(cluster, owner):
    """Its dialog is made with the page, the button with each part: the one fills the other."""
    plan = with_failed_nodes(a_started_plan(cluster, owner))
    ada = visiting(make.a_user("ada", role="operator"))
    says, seen = completion_of(plan).says, completion_of(plan).seen

    part = ada.get(f"/parts/plans/{plan.pk}").content.decode()
    _, refused = tell(ada, plan, "complete", seen="Left out: none of these.")

    assert f'data-says="{says}" data-seen="{seen}"' in part
    assert f"The excluded nodes have changed since you read the plan. {says}" in refused
    assert not plan.commands.filter(verb="complete").exists()
    tell(ada, plan, "complete", seen=seen)
    assert plan.commands.filter(verb="complete").exists()


def test_of_a_reason_in_several_lines_nothing_is_cut_off():
    """A browser lets 1,000 characters be typed, and sends two for each end of a line."""
    plan = make.a_plan()

    tell(visiting(make.a_user("ada", role="operator")), plan, "halt", reason="x\r\n" * 499 + "xx")

    assert plan.commands.get(verb="halt").reason == "x\n" * 499 + "xx"


def test_what_was_written_for_what_somebody_else_has_done_is_said_once():
    """Its button is locked by then: nobody opens the form that has it."""
    plan = make.a_plan()
    ada = visiting(make.a_user("ada", role="operator"))
    tell(visiting(make.a_user("amy", role="operator")), plan, "halt")

    _, refused = tell(ada, plan, "halt", reason="The <tenants> call.")

    assert "Your text was not saved: The <tenants> call." in refused
    assert "not saved." not in page(ada, f"/plans/{plan.pk}").text


@pytest.mark.parametrize("act", ["exclusions", "retries"])
def test_what_was_written_for_a_node_comes_back_where_it_is_refused(act):
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    Target.objects.filter(pk=target.pk).update(state="excluded")
    ada = visiting(make.a_user("ada", role="operator"))

    response = ada.post(f"/targets/{target.pk}/{act}", {"reason": "Its board is dead."}, follow=True)

    assert "Your text was not saved: Its board is dead." in Page(response.content.decode()).text


FOREIGN = {"says": "spec.env was changed by somebody else", "spec": {"env": "x"}, "old": {}, "new": {}, "owners": []}


def shown(page: str, name: str) -> str:
    """Returns the value of the field in the dialog that hands over."""
    dialog = page[page.index('id="dialog-handover"') :]
    return re.search(rf'name="{name}" value="([^"]*)"', dialog)[1]


def test_handing_over_says_what_the_nodes_go_to_and_sends_it(cluster, owner):
    """Hazard Z38: the decision is of the version and template that were shown."""
    plan = in_state(a_started_plan(cluster, owner), "aborting", is_written=False)
    cluster.driver_objects.filter(kind="NVIDIADriver").update(version="590.44.1")
    ada = visiting(make.a_user("ada", role="operator"))

    page = ada.get(f"/plans/{plan.pk}").content.decode()
    Plan.objects.filter(pk=plan.pk).update(template_change=FOREIGN)
    _, text = tell(ada, plan, "handover", seen=shown(page, "seen"))
    plan.refresh_from_db()
    refused = plan.handed_to
    page = ada.get(f"/plans/{plan.pk}").content.decode()
    tell(ada, plan, "handover", seen=shown(page, "seen"))
    plan.refresh_from_db()

    assert "The object has changed since you read the plan. The object requests 590.44.1. spec.env was" in text
    assert "The object requests 590.44.1. spec.env was changed by somebody else." in Page(page).text
    assert (refused, plan.handed_to) == ("", "590.44.1")


def test_rest_shows_what_a_handover_compares(cluster, owner):
    plan = in_state(a_started_plan(cluster, owner), "aborting", is_written=False)
    cluster.driver_objects.filter(kind="NVIDIADriver").update(version="590.44.1")
    Plan.objects.filter(pk=plan.pk).update(template_change=FOREIGN)
    ada = calling(make.a_user("ada", role="operator"))

    (verb,) = (one for one in ada.get(f"/api/v1/plans/{plan.pk}").json()["buttons"] if one["verb"] == "handover")
    asked = {"reason": "The fleet needs it.", "version": "590.44.1"}
    without, right = (
        ada.post(f"/api/v1/plans/{plan.pk}/handovers", asked | seen, format="json")
        for seen in ({}, {"seen": verb["seen"]})
    )

    assert "spec.env was changed by somebody else" in verb["says"]
    assert (without.status_code, right.status_code) == (409, 204)
    assert "Send `seen` as well." in without.json()["detail"]


def test_rest_hands_over_the_version_that_was_seen(cluster, owner):
    plan = in_state(a_started_plan(cluster, owner), "aborting", is_written=False)
    cluster.driver_objects.filter(kind="NVIDIADriver").update(version="590.44.1")
    ada = calling(make.a_user("ada", role="operator"))
    where = f"/api/v1/plans/{plan.pk}/handovers"

    without, other, right = (
        ada.post(where, {"reason": "The fleet needs it.", **version}, format="json").status_code
        for version in ({}, {"version": "595.0.1"}, {"version": "590.44.1"})
    )

    assert (without, other, right) == (400, 409, 204)
