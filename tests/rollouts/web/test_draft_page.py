from html.parser import HTMLParser

import pytest
from django.http import QueryDict

from people.roster import groups
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import Plan
from rollouts.web import stage_form
from rollouts.web.draft_form import DraftForm
from tests import make
from tests.pages import HOSTILE, Page, page, visiting

FORM = "application/x-www-form-urlencoded"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def fleet():
    return make.a_fleet()


@pytest.fixture
def ada():
    return visiting(make.a_user("ada", role="operator"))


def counted_as(number: int) -> dict[str, str]:
    return {"stage-TOTAL_FORMS": str(number), "stage-INITIAL_FORMS": "0"}


def written(fleet, **changed):
    """A form that is right but for what is changed."""
    canary = {
        "name": "Canary", "kind": "canary", "pool": "", "selector": "", "count": "1", "max_unavailable": "1",
        "timeout_min": "90", "approvals": "1", "soak_min": "5", "tolerate": "0",
        "gates": ["driver_version", "operands_ready"],
        "options": '{"operands_ready": {"timeout_s": 90}}',
    }  # fmt: skip
    rest = {
        "name": "Rest", "kind": "pool", "pool": fleet.pools.get().pk, "selector": "", "count": "",
        "max_unavailable": "2", "timeout_min": "60", "approvals": "0", "soak_min": "0", "tolerate": "1",
        "gates": ["driver_version"],
        "options": "{}",
    }  # fmt: skip
    asked = {"object": fleet.driver_objects.get(kind="NVIDIADriver").pk, "title": "", "to_version": "580.126.20"}
    stages = {f"stage-{at}-{name}": value for at, row in enumerate((canary, rest)) for name, value in row.items()}
    return {**asked, "revision": "0", **counted_as(2), **stages, **changed}


class Sent(HTMLParser):
    """What a browser sends of the form on a page, when nobody has changed anything."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.post = QueryDict(mutable=True)
        self.select = ""
        self.is_kept_for_later = False  # inside a template
        self.feed(html[html.index('id="draft"') :].partition("</form>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.is_kept_for_later |= tag == "template"
        if tag == "select":
            self.select = given["name"] or ""
        if self.is_kept_for_later or (given.get("type") == "checkbox" and "checked" not in given):
            return
        if tag == "input":
            self.post.appendlist(given["name"] or "", given["value"] or "")
        if tag == "option" and (self.select not in self.post or "selected" in given):
            self.post[self.select] = given["value"] or ""

    def handle_endtag(self, tag: str) -> None:
        self.is_kept_for_later &= tag != "template"


def sent_again(response) -> QueryDict:
    return Sent(response.content.decode()).post


def as_sent(stage: dict[str, str | list[str]]) -> QueryDict:
    post = QueryDict(mutable=True)
    post.update(counted_as(1) | {"revision": "1"})
    for name, value in stage.items():
        post.setlist(f"stage-0-{name}", value if isinstance(value, list) else [value])
    return post


def without_stages(fleet, **changed):
    return {name: value for name, value in written(fleet, **changed).items() if not name.startswith("stage-")}


def shown_again(response) -> Page:
    assert response.status_code == 400
    assert not Plan.objects.exists()
    return Page(response.content.decode())


def test_suggests_a_canary_and_the_pool(ada, fleet):
    seen = ada.get("/plans/new").content.decode()

    assert 'value="Canary"' in seen
    assert 'value="h200"' in seen


def test_saves_what_was_written(ada, fleet):
    response = ada.post("/plans/new", written(fleet))

    plan = Plan.objects.get()
    canary, rest = plan.stages.forward()
    assert response["Location"] == f"/plans/{plan.pk}"
    assert (canary.count, rest.count, rest.max_unavailable) == (1, None, 2)
    assert (canary.timeout_s, rest.timeout_s) == (5400, 3600)
    assert canary.gate_options["operands_ready"] == {"timeout_s": 90}
    assert canary.gate_options["soak"] == {"duration_s": 300.0}
    assert rest.gate_options["approval"] == {}  # nothing says that it may go unasked
    assert rest.gate_options["failure_budget"] == {"tolerate": 1}


def test_a_gate_is_made_advisory_with_a_reason_and_counted_again(ada, fleet):
    asked = written(fleet) | {"stage-0-advisory": ["operands_ready", "approval"], "stage-0-advisory_reason": "Try it."}
    ada.post("/plans/new", asked)
    plan = Plan.objects.get()
    canary = plan.stages.get(index=0)

    seen = page(ada, f"/parts/plans/{plan.pk}/preview").text

    assert canary.gate_options["operands_ready"] == {"timeout_s": 90, "advisory": True, "reason": "Try it."}
    assert canary.gate_options["approval"] == {"needed": 1}
    assert "advisory yes reason Try it." in seen
    again = sent_again(ada.get(f"/plans/{plan.pk}/edit"))
    again.setlist("stage-0-advisory", [])
    assert DraftForm(again).stages()[0].gate_options["operands_ready"] == {"timeout_s": 90}


def test_a_service_level_has_fields_of_its_own(ada, fleet):
    gates = ["driver_version", "slo"]
    asked = written(fleet) | {
        "stage-0-gates": gates,
        "stage-0-slo_indicator": "nim-ttft-p99",
        "stage-0-slo_worse": "10",
    }
    asked |= {"stage-1-gates": gates, "stage-1-slo_expression": "up", "stage-1-slo_at_most": "0.5"}

    refused = ada.post("/plans/new", asked)

    assert "slo: expression: Write up{pod=~" in shown_again(refused).text
    own = 'max(up{pod=~"{{pods}}"})'
    ada.post("/plans/new", asked | {"stage-1-slo_expression": own, "stage-1-slo_worse": "0"})
    plan = Plan.objects.get()
    kept = [stage.gate_options["slo"] for stage in plan.stages.forward()]
    assert kept == [
        {"indicator": "nim-ttft-p99", "at_most_worse_percent": 10},
        {"expression": own, "at_most": 0.5, "at_most_worse_percent": 0},
    ]
    again = DraftForm(sent_again(ada.get(f"/plans/{plan.pk}/edit"))).stages()
    assert [stage.gate_options["slo"] for stage in again] == kept


def test_a_second_and_a_third_service_level_have_fields_too(ada, fleet):
    gates = ["driver_version", "slo", "slo_2", "slo_3"]
    own = 'sum(errors{pod=~"{{pods}}"})'
    asked = written(fleet) | {
        "stage-0-gates": gates,
        "stage-0-slo_2_indicator": "nim-ttft-p99",
        "stage-0-slo_3_expression": own,
        "stage-0-slo_3_at_most": "0.01",
    }
    ada.post("/plans/new", asked)
    plan = Plan.objects.get()

    kept = plan.stages.get(index=0).gate_options
    (again, _) = DraftForm(sent_again(ada.get(f"/plans/{plan.pk}/edit"))).stages()

    assert (kept["slo_2"], kept["slo_3"]) == ({"indicator": "nim-ttft-p99"}, {"expression": own, "at_most": 0.01})
    assert again.gate_options == kept


def test_values_of_a_gate_that_is_not_chosen_are_named_once_and_kept_on_the_form(ada, fleet):
    asked = written(fleet) | {"stage-0-slo_expression": "up", "stage-1-test_without_cordon": "true"}

    refused = ada.post("/plans/new", asked)

    seen = shown_again(refused).text
    assert seen.count("Not used: the gate Service level is not chosen.") == 1
    assert seen.count("Not used: the gate Test Job is not chosen.") == 1
    again = sent_again(refused)
    assert (again["stage-0-slo_expression"], again["stage-1-test_without_cordon"]) == ("up", "true")
    again["stage-1-slo_expression"] = "down"
    assert shown_again(ada.post("/plans/new", again)).text.count("Not used:") == 1
    del again["stage-1-slo_expression"]
    assert ada.post("/plans/new", again).status_code == 302
    assert "slo" not in Plan.objects.get().stages.get(index=0).gate_options


def test_a_test_job_has_fields_of_its_own_with_the_checks_of_rest(ada, fleet):
    asked = written(fleet) | {"stage-0-gates": ["driver_version", "test_job"], "stage-0-test_metric": "sum"}
    asked |= {
        "stage-0-test_image": "nvbandwidth:0.8",
        "stage-0-test_command": "nvbandwidth -j",
        "stage-0-test_gpus": "8",
    }

    refused = ada.post("/plans/new", asked)

    assert "test_job: metric needs at_least, at_most or at_most_worse_percent" in shown_again(refused).text
    ada.post("/plans/new", asked | {"stage-0-test_worse": "5", "stage-0-test_lower_is_better": "true"})
    plan = Plan.objects.get()
    kept = plan.stages.get(index=0).gate_options["test_job"]
    assert kept == {
        "image": "nvbandwidth:0.8", "command": "nvbandwidth -j", "gpus": 8, "metric": "sum",
        "at_most_worse_percent": 5, "higher_is_better": False,
    }  # fmt: skip
    again = sent_again(ada.get(f"/plans/{plan.pk}/edit"))
    assert DraftForm(again).stages()[0].gate_options["test_job"] == kept
    del again["stage-0-test_lower_is_better"]
    again["stage-0-test_without_cordon"] = "true"
    assert DraftForm(again).stages()[0].gate_options["test_job"] == {
        **{name: value for name, value in kept.items() if name != "higher_is_better"}, "cordon": False,
    }  # fmt: skip


def test_a_new_reason_of_an_advisory_gate_takes_the_place_of_its_old_one(ada, fleet):
    asked = written(fleet) | {"stage-0-advisory": ["operands_ready"], "stage-0-advisory_reason": "Try it."}
    ada.post("/plans/new", asked)
    again = sent_again(ada.get(f"/plans/{Plan.objects.get().pk}/edit"))
    assert DraftForm(again).stages()[0].gate_options["operands_ready"]["reason"] == "Try it."

    again["stage-0-advisory_reason"] = "It is proven."

    assert DraftForm(again).stages()[0].gate_options["operands_ready"]["reason"] == "It is proven."


def test_advisory_gates_keep_reasons_of_their_own_while_nobody_writes_another():
    gates = {
        "driver_version": {"advisory": True, "reason": "B."},
        "soak": {"duration_s": 60.0, "advisory": True, "reason": "C."},
        "allocatable_restored": {"advisory": True, "reason": "A."},
        "failure_budget": {"tolerate": 0},
    }
    given = stage_form.stage_form_data(StageDraft("Canary", "canary", count=1, gate_options=gates))
    assert given["advisory_reason"] == "A."

    (kept,) = DraftForm(as_sent(given)).stages()
    (changed,) = DraftForm(as_sent(given | {"advisory_reason": "D."})).stages()

    assert kept.gate_options == gates
    assert {each["reason"] for each in changed.gate_options.values() if each.get("advisory")} == {"D."}


def test_options_that_are_long_are_kept_whole():
    reasons = {key: {"advisory": True, "reason": "深\n" * 100} for key, _ in stage_form.advisable()}
    given = stage_form.stage_form_data(StageDraft("Canary", "canary", count=1, gate_options=reasons))

    (kept,) = DraftForm(as_sent(given)).stages()

    assert {options["reason"] for options in kept.gate_options.values()} == {"深\n" * 100}


@pytest.mark.parametrize("options", ["nope", "[]", '{"soak": 1}', "[" * 9_000, '{"soak": {}}' + " " * 30_000 + "x"])
def test_options_that_cannot_be_read_are_said_at_their_stage(ada, fleet, options):
    seen = shown_again(ada.post("/plans/new", written(fleet, **{"stage-1-options": options})))

    assert stage_form.NOT_KEPT in seen.text


def test_groups_are_written_as_people_say_them(ada, fleet):
    for name in ("sre", "platform"):
        groups.add(name, actor="root", now=make.NOON)
    ada.post("/plans/new", written(fleet, **{"stage-0-groups": "platform, sre: 2", "stage-1-groups": "sre"}))
    plan = Plan.objects.get()
    canary, rest = plan.stages.forward()

    assert canary.gate_options["approval"] == {"needed": 1, "groups": {"platform": 1, "sre": 2}}
    assert rest.gate_options["approval"] == {"needed": 1, "groups": {"sre": 1}}
    assert stage_form.stage_form_data(canary)["groups"] == "platform: 1, sre: 2"
    assert "groups 1 of platform, 2 of sre" in page(ada, f"/parts/plans/{plan.pk}/preview").text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"stage-0-groups": "sre two"}, "“sre two” is invalid."),
        ({"stage-0-groups": "sre, sre"}, "“sre” is invalid. Write each group once"),
        ({"stage-0-groups": "sre: 0"}, "the number of people of sre must be from 1 to 20"),
        ({"stage-0-groups": "srw"}, "Group srw does not exist"),
        ({"to_version": "newest"}, "” is not a full driver version"),
        ({"stage-0-count": "many"}, "“many” is not a whole number."),
        ({"stage-0-count": "", "stage-0-selector": ""}, "Give the number of canary nodes, or a selector"),
        ({"stage-0-selector": "a b c"}, "is not a label selector"),
        ({"stage-1-max_unavailable": "0"}, "no node could ever change"),
        ({"stage-1-timeout_min": "0"}, "between a minute and a week"),
        ({"stage-0-kind": "pool"}, "The first stage must be a canary."),
        ({"stage-0-name": ""}, "A stage needs a name."),
    ],
)
def test_says_beside_the_field_what_is_wrong(ada, fleet, changed, sentence):
    response = ada.post("/plans/new", written(fleet, **changed))

    assert response.status_code == 400
    assert sentence in Page(response.content.decode()).text
    assert not Plan.objects.exists()


def test_says_all_that_is_wrong_at_once_and_each_thing_once(ada, fleet):
    wrong = {
        "to_version": "newest", "stage-0-soak_min": "abc", "stage-0-count": "-3", "stage-0-tolerate": "-1",
        "stage-1-max_unavailable": "0", "stage-1-selector": "a b c", "stage-1-soak_min": "-1",
        "stage-1-tolerate": "-2",
    }  # fmt: skip

    seen = shown_again(ada.post("/plans/new", written(fleet, **wrong))).text

    for sentence in (
        "” is not a full driver version",
        "“abc” is not a number.",
        "A stage needs at least one node.",
        "failure_budget: tolerate must be a number of 0 or more.",
        "no node could ever change",
        "is not a label selector",
        "soak: duration_s must be a number of 0 or more.",
    ):
        assert sentence in seen
    assert seen.count("tolerate must be a number") == 2
    assert seen.count("“abc” is not a number.") == 1


@pytest.mark.parametrize(
    ("changed", "sentence", "besides"),
    [
        ({"stage-0-count": "many"}, "“many” is not a whole number.", "Give the number of canary nodes, or a selector"),
        ({"stage-1-max_unavailable": "two"}, "“two” is not a whole number.", "no node could ever change"),
        ({"stage-1-timeout_min": "long"}, "“long” is not a number.", "between a minute and a week"),
        (
            {"stage-0-soak_min": "abc", "stage-0-advisory": ["failure_budget"], "stage-0-gates": []},
            "“abc” is not a number.",
            "a gate that counts",
        ),
        ({"stage-0-advisory": ["operands_ready"], "stage-0-advisory_reason": "x" * 1001}, "1000", "advisory gate"),
        ({"to_version": "5" * 65}, "at most 64 characters", "driver version"),
    ],
)
def test_of_what_cannot_be_read_nothing_else_is_said(ada, fleet, changed, sentence, besides):
    seen = shown_again(ada.post("/plans/new", written(fleet, **changed))).text

    assert sentence in seen
    assert besides not in seen


def test_what_was_written_is_shown_again_as_it_was(ada, fleet):
    response = ada.post("/plans/new", written(fleet, **{"stage-0-count": HOSTILE}))

    seen = Page(response.content.decode())
    assert f"“{HOSTILE}” is not a whole number." in seen.text


def test_a_plan_without_a_stage_is_refused(ada, fleet):
    seen = shown_again(ada.post("/plans/new", without_stages(fleet) | counted_as(0)))

    assert "needs at least one stage" in seen.text


@pytest.mark.parametrize(
    "counted",
    [
        {},
        {"stage-TOTAL_FORMS": "2"},
        {"stage-TOTAL_FORMS": "1", "stage-INITIAL_FORMS": "0"},
        {"stage-TOTAL_FORMS": "3", "stage-INITIAL_FORMS": "0"},
        {"stage-TOTAL_FORMS": "-1", "stage-INITIAL_FORMS": "0"},
        {"stage-TOTAL_FORMS": "two", "stage-INITIAL_FORMS": "0"},
        {"stage-TOTAL_FORMS": ["2", "1"], "stage-INITIAL_FORMS": "0"},
    ],
)
def test_stages_that_are_not_as_many_as_were_counted_are_refused_and_shown_again(ada, fleet, counted):
    asked = written(fleet, title="Mine")
    rows = {name: value for name, value in asked.items() if not name.endswith("_FORMS")}

    response = ada.post("/plans/new", rows | counted)

    seen = shown_again(response)
    assert stage_form.NOT_AS_SENT in seen.text
    again = sent_again(response)
    assert (again["title"], again["stage-0-name"], again["stage-1-name"]) == ("Mine", "Canary", "Rest")
    assert ada.post("/plans/new", again.urlencode(), content_type=FORM).status_code == 302
    assert [stage.name for stage in Plan.objects.get().stages.forward()] == ["Canary", "Rest"]


@pytest.mark.parametrize("number", [10**9, 10**30, 101])
def test_no_number_makes_more_forms_than_there_are_stages(ada, fleet, number):
    response = ada.post("/plans/new", written(fleet, **{"stage-TOTAL_FORMS": str(number)}))

    assert "A plan has at most 50 stages." in shown_again(response).text
    assert sent_again(response)["stage-TOTAL_FORMS"] == "2"


def whole_stages(asked: QueryDict, number: int) -> str:
    """As a browser sends the first stage so many times, with every box ticked but one: a gate must count."""
    first = {name.removeprefix("stage-0-"): of for name, of in asked.lists() if name.startswith("stage-0-")}
    first["gates"] = [key for key, _ in stage_form.gate_choices()]
    first["advisory"] = [key for key, _ in stage_form.advisable() if key != "driver_version"]
    first["advisory_reason"] = ["Try them."]
    first |= {name: ["true"] for name in stage_form.TEST_SWITCHES.values()}
    post = QueryDict(mutable=True)
    for name, of in asked.lists():
        if not name.startswith("stage-"):
            post.setlist(name, of)
    post.update(counted_as(number) | {"to_version": "580.126.20"})
    for at in range(number):
        for name, of in first.items():
            post.setlist(f"stage-{at}-{name}", of)
        post[f"stage-{at}-name"] = f"Canary {at}"
    return post.urlencode()


def test_a_plan_of_as_many_whole_stages_as_there_can_be_is_saved(ada, fleet):
    asked = sent_again(ada.get("/plans/new"))

    answer = ada.post("/plans/new", whole_stages(asked, 50), content_type=FORM)

    assert answer.status_code == 302
    assert Plan.objects.get().stages.forward().count() == 50


def test_more_stages_than_a_plan_can_have_are_refused_and_none_is_lost(ada, fleet):
    asked = sent_again(ada.get("/plans/new"))

    response = ada.post("/plans/new", whole_stages(asked, 51), content_type=FORM)

    assert "A plan has at most 50 stages." in shown_again(response).text
    assert sent_again(response)["stage-50-name"] == "Canary 50"


def test_whatever_the_form_can_show_again_can_be_sent(ada, fleet, settings):
    asked = sent_again(ada.get("/plans/new"))

    most = whole_stages(asked, 2 * stage_form.MOST).count("&") + 1 + 2 * stage_form.MOST

    assert 0 < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS - most < 2 * stage_form.MOST, most


def test_a_stage_that_is_left_out_in_between_is_not_passed_over(ada, fleet):
    gap = {name.replace("stage-1-", "stage-2-"): value for name, value in written(fleet).items()}

    response = ada.post("/plans/new", gap | counted_as(3))

    assert "A stage needs a name." in shown_again(response).text
    again = sent_again(response)
    assert [again[f"stage-{at}-name"] for at in range(3)] == ["Canary", "", "Rest"]


@pytest.mark.parametrize("asked", ["x", "999999"])
def test_what_was_written_for_an_object_that_is_gone_comes_back(ada, fleet, asked):
    refused = ada.post("/plans/new", written(fleet, object=asked, title=HOSTILE))

    assert refused.status_code == 409
    assert "The driver object is gone, or you may not change it" in Page(refused.content.decode()).text
    again = sent_again(refused)
    assert (again["title"], again["to_version"], again["stage-0-name"]) == (HOSTILE, "580.126.20", "Canary")
    assert again["stage-1-pool"] == str(fleet.pools.get().pk)
    assert again["object"] == ""  # nobody has chosen another one
    assert ada.post("/plans/new", again).status_code == 409
    assert Plan.objects.count() == 0
    again["object"] = str(fleet.driver_objects.get(kind="NVIDIADriver").pk)
    assert ada.post("/plans/new", again).status_code == 302


def test_what_was_written_comes_back_also_where_no_object_is_left(ada, fleet):
    asked = written(fleet)
    fleet.driver_objects.all().delete()

    refused = ada.post("/plans/new", asked)

    assert refused.status_code == 409
    assert "580.126.20" in refused.content.decode()


def test_of_a_field_that_is_sent_twice_the_last_counts(ada, fleet):
    ada.post("/plans/new", written(fleet, **{"stage-0-name": ["First", "Second"]}))

    assert [stage.name for stage in Plan.objects.get().stages.forward()] == ["Second", "Rest"]


@pytest.mark.parametrize(
    ("field", "most"), [("title", 200), ("to_version", 64), ("stage-1-selector", 1000), ("stage-0-groups", 1000)]
)
def test_what_is_too_long_is_not_cut(ada, fleet, field, most):
    response = ada.post("/plans/new", written(fleet, **{field: "x" * (most + 1)}))

    seen = shown_again(response)
    assert f"at most {most} characters (it has {most + 1})" in seen.text
    assert sent_again(response)[field] == "x" * (most + 1)


def test_a_gate_that_there_is_not_is_said_with_its_stage(ada, fleet):
    response = ada.post("/plans/new", written(fleet, **{"stage-1-gates": ["driver_version", "luck"]}))

    shown_again(response)
    assert "luck" in str(response.context["form"].rows[1].non_field_errors())


def test_a_viewer_has_nothing_to_draft_for(fleet):
    viewer = visiting(make.a_user(role="viewer"))

    assert "no driver object you may change" in page(viewer, "/plans/new").text
    assert viewer.post("/plans/new", written(fleet)).status_code == 404


def test_an_edit_on_an_older_revision_is_refused(ada, fleet):
    ada.post("/plans/new", written(fleet))
    plan = Plan.objects.get()

    first = ada.post(f"/plans/{plan.pk}/edit", written(fleet, revision="1", title="Mine"))
    second = ada.post(f"/plans/{plan.pk}/edit", written(fleet, revision="1", title="Theirs"))

    plan.refresh_from_db()
    assert (first.status_code, second.status_code) == (302, 409)
    assert plan.title == "Mine"


def test_a_plan_that_has_started_is_not_edited(ada):
    plan = make.a_plan()

    assert ada.get(f"/plans/{plan.pk}/edit")["Location"] == f"/plans/{plan.pk}"


def test_a_change_that_comes_after_the_start_is_refused_with_what_was_written(ada):
    plan = make.a_plan()

    late = ada.post(f"/plans/{plan.pk}/edit", written(plan.cluster, revision="1", title="Mine <all>"))

    assert late.status_code == 409
    assert "Mine &lt;all&gt;" in late.content.decode()
    assert "so it is no longer a draft" in Page(late.content.decode()).text


def test_a_stranger_gets_404():
    plan = make.a_draft()

    assert visiting(make.a_user()).get(f"/plans/{plan.pk}/edit").status_code == 404


def test_a_plan_read_into_the_form_and_back_is_the_same_plan():
    plan = make.a_draft()
    asked = visiting(make.a_user(role="operator")).get(f"/plans/{plan.pk}/edit")

    drafts = DraftForm(sent_again(asked)).stages()

    assert [draft.gate_options for draft in drafts] == [stage.gate_options for stage in plan.stages.forward()]
