import pytest

from people import groups
from rollouts.models import Plan
from rollouts.web.draft_form import DraftForm, StageFields
from tests import make
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def fleet():
    return make.a_fleet()


@pytest.fixture
def ada():
    return visiting(make.a_user("ada", role="operator"))


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
    return {**asked, "revision": "0", "stage": ["0", "1"], **stages, **changed}


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
    asked = written(fleet) | {"stage-0-advisory": ["operands_ready", "approval"], "stage-0-advisory_because": "Try it."}
    ada.post("/plans/new", asked)
    plan = Plan.objects.get()
    canary = plan.stages.get(index=0)

    seen = page(ada, f"/plans/{plan.pk}").text

    assert canary.gate_options["operands_ready"] == {"timeout_s": 90, "advisory": True, "because": "Try it."}
    assert canary.gate_options["approval"] == {"needed": 1}
    assert "advisory yes because Try it." in seen
    form = StageFields.of(canary, "0")
    form.advisory = []
    assert form.draft().gate_options["operands_ready"] == {"timeout_s": 90}


def test_groups_are_written_as_people_say_them(ada, fleet):
    for name in ("sre", "platform"):
        groups.add(name, actor="root", now=make.NOON)
    ada.post("/plans/new", written(fleet, **{"stage-0-groups": "platform, sre: 2", "stage-1-groups": "sre"}))
    plan = Plan.objects.get()
    canary, rest = plan.stages.forward()

    assert canary.gate_options["approval"] == {"needed": 1, "groups": {"platform": 1, "sre": 2}}
    assert rest.gate_options["approval"] == {"needed": 1, "groups": {"sre": 1}}
    assert StageFields.of(canary, "0").groups == "platform: 1, sre: 2"
    assert "groups 1 of platform, 2 of sre" in page(ada, f"/plans/{plan.pk}").text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"stage-0-groups": "sre two"}, "“sre two” is not read."),
        ({"stage-0-groups": "sre, sre"}, "“sre” is not read. Each group once"),
        ({"stage-0-groups": "sre: 0"}, "of sre between 1 and 20 people can be asked"),
        ({"stage-0-groups": "srw"}, "There is no group srw"),
        ({"to_version": "newest"}, "is no full driver version"),
        ({"stage-0-count": "many"}, "“many” is no whole number."),
        ({"stage-0-count": "", "stage-0-selector": ""}, "Say how many canary nodes"),
        ({"stage-0-selector": "a b c"}, "is no label selector"),
        ({"stage-1-max_unavailable": "0"}, "nothing could ever change"),
        ({"stage-1-timeout_min": "0"}, "between a minute and a week"),
        ({"stage-0-kind": "pool"}, "The first stage must be a canary."),
        ({"stage": []}, "needs at least one stage"),
        ({"stage-0-name": ""}, "A stage needs a name."),
    ],
)
def test_says_beside_the_field_what_is_wrong(ada, fleet, changed, sentence):
    response = ada.post("/plans/new", written(fleet, **changed))

    assert response.status_code == 400
    assert sentence in Page(response.content.decode()).text
    assert not Plan.objects.exists()


def test_what_was_written_is_shown_again_as_it_was(ada, fleet):
    response = ada.post("/plans/new", written(fleet, **{"stage-0-count": HOSTILE}))

    seen = Page(response.content.decode())
    assert f"“{HOSTILE}” is no whole number." in seen.text


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


def test_a_stranger_gets_404():
    plan = make.a_draft()

    assert visiting(make.a_user()).get(f"/plans/{plan.pk}/edit").status_code == 404


def test_a_plan_read_into_the_form_and_back_is_the_same_plan():
    plan = make.a_draft()

    drafts = DraftForm.of(plan).stages()

    assert [draft.gate_options for draft in drafts] == [stage.gate_options for stage in plan.stages.forward()]
