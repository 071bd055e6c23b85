from dataclasses import replace
from datetime import timedelta

import pytest

from edges.transition_errors import IllegalMove
from people.models import AuditEntry
from rollouts.commands.plan_drafts import discard, draft, edit, suggest_stages
from rollouts.commands.refusals import BadPlan, OutOfDate
from rollouts.commands.stage_drafts import StageDraft, gates_by_default
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, StageKind
from tests.make import NOON, a_pool, a_user
from tests.rollouts.make import NEW, OLD
from tests.rollouts.rows import CANARY, REST, a_draft


def test_a_draft_says_who_wrote_it_and_what_it_starts_from(cluster, owner):
    plan = a_draft(cluster, owner)

    assert (plan.author, plan.last_editor, plan.revision) == ("owner", "owner", 1)
    assert (plan.from_version, plan.to_version) == (OLD, NEW)
    assert plan.state == PlanState.DRAFT
    assert plan.title == f"h200 to {NEW}"


def test_who_says_nothing_has_one_node_go_at_a_time_and_the_first_that_fails_halts(cluster, owner):
    """And somebody else is asked, and no gate waits without an end."""
    plan = a_draft(
        cluster, owner, stages=(StageDraft("Canary", StageKind.CANARY, count=1), StageDraft("Rest", StageKind.POOL))
    )

    for stage in plan.stages.forward():
        gates = {gate.key: gate for gate in stage.gates}
        assert (stage.max_unavailable, gates["failure_budget"].tolerate, gates["approval"].needed) == (1, 0, 1)
        assert gates["soak"].duration > timedelta(0)
        assert stage.timeout_s > 0


def test_a_test_job_is_usual_where_a_pool_alone_names_an_image(cluster, settings):
    settings.TEST_IMAGES = {}
    tested = a_pool(cluster, "a", test_images="vectoradd=registry.example/vectoradd:13")
    other = a_pool(cluster, "b", test_images="dcgm=registry.example/dcgm:4")

    usual = [gates_by_default(cluster.pk, pool) for pool in (tested.pk, other.pk, None)]

    assert ["test_job" in gates for gates in usual] == [True, False, True]


def test_a_test_job_that_no_image_can_run_is_refused(cluster, owner, settings):
    settings.TEST_IMAGES = {}
    stages = (replace(CANARY, gate_options={"test_job": {}}),)

    with pytest.raises(BadPlan, match="names an image of vectoradd"):
        a_draft(cluster, owner, stages=stages)

    a_pool(cluster, "a", test_images="vectoradd=registry.example/vectoradd:13")
    assert a_draft(cluster, owner, stages=stages).state == PlanState.DRAFT


def test_a_title_that_nobody_wrote_fits_its_column_and_names_the_version(cluster, owner):
    """A name in Kubernetes has up to 253 characters, and PostgreSQL refuses what a title has not."""
    cluster.driver_objects.filter(kind="NVIDIADriver").update(name="h200" * 63)

    plan = a_draft(cluster, owner)

    assert len(plan.title) == Plan._meta.get_field("title").max_length
    assert plan.title.endswith(f" to {NEW}")


def test_the_rollback_is_drafted_with_it_and_asks_for_no_approval(cluster, owner):
    """Z32."""
    plan = a_draft(cluster, owner, stages=(CANARY, replace(REST, max_unavailable=3)))

    back = plan.stages.get(kind=StageKind.ROLLBACK)
    assert back.index == 2
    assert back.max_unavailable == 3
    assert "approval" not in back.gate_options


PROBLEMS = {
    "version": ({"to_version": "latest"}, "to_version"),
    "no stages": ({"stages": ()}, "stages"),
    "no canary": ({"stages": (REST,)}, "stages"),
    "no name": ({"stages": (replace(CANARY, name=" "),)}, "stages.0.name"),
    "kind": ({"stages": (CANARY, replace(REST, kind="rollback"))}, "stages.1.kind"),
    "canary of how many": ({"stages": (replace(CANARY, count=None),)}, "stages.0.count"),
    "canary of none": ({"stages": (replace(CANARY, count=0),)}, "stages.0.count"),
    "no budget": ({"stages": (CANARY, replace(REST, max_unavailable=0))}, "stages.1.max_unavailable"),
    "pool of nowhere": ({"stages": (CANARY, replace(REST, pool_id=10**6))}, "stages.1.pool"),
    "selector": ({"stages": (CANARY, replace(REST, selector="a==b==c"))}, "stages.1.selector"),
    "no gate": ({"stages": (CANARY, replace(REST, gate_options={}))}, "stages.1.gate_options"),
    "advisory only": (
        {"stages": (CANARY, replace(REST, gate_options={"approval": {}, "driver_version": {"advisory": True}}))},
        "stages.1.gate_options",
    ),
    "impatient": (
        {"stages": (CANARY, replace(REST, gate_options={"driver_version": {"wait_timeout_s": 5}}))},
        "stages.1.gate_options",
    ),
    "approval only": ({"stages": (CANARY, replace(REST, gate_options={"approval": {}}))}, "stages.1.gate_options"),
    "unknown gate": ({"stages": (CANARY, replace(REST, gate_options={"luck": {}}))}, "stages.1.gate_options"),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_each_problem_names_its_field(cluster, owner, what: str):
    given, field = PROBLEMS[what]

    with pytest.raises(BadPlan) as refusal:
        a_draft(cluster, owner, **given)

    assert [problem["field"] for problem in refusal.value.problems] == [field]
    assert refusal.value.problems[0]["sentence"]
    assert not Plan.objects.exists()


def test_all_problems_are_named_at_once(cluster, owner):
    with pytest.raises(BadPlan) as refusal:
        a_draft(cluster, owner, to_version="x", stages=(replace(CANARY, name="", max_unavailable=0),))

    assert len(refusal.value.problems) == 3


def changed(plan: Plan, actor, *, expected_revision: int = 1) -> Plan:
    return edit(
        plan, title="Now", to_version="580.1.2", stages=[CANARY], expected_revision=expected_revision, actor=actor,
        now=NOON,
    )  # fmt: skip


def test_an_edit_counts_and_names_the_last_editor(cluster, owner):
    plan = changed(a_draft(cluster, owner), a_user("eve"))

    assert (plan.revision, plan.author, plan.last_editor) == (2, "owner", "eve")
    assert [stage.name for stage in plan.stages.all()] == ["Canary", "Rollback"]


def test_an_edit_of_what_somebody_else_has_edited_loses(cluster, owner):
    plan = a_draft(cluster, owner)
    changed(plan, a_user("eve"))

    with pytest.raises(OutOfDate, match="eve has changed this draft since you opened it"):
        changed(plan, owner, expected_revision=1)

    plan.refresh_from_db()
    assert (plan.revision, plan.last_editor) == (2, "eve")


def test_an_edit_of_another_day_is_named_with_its_day(cluster, owner):
    plan = a_draft(cluster, owner)
    changed(plan, a_user("eve"))
    yesterday = NOON - timedelta(days=1)
    Plan.objects.filter(pk=plan.pk).update(edited_at=yesterday)

    with pytest.raises(OutOfDate, match=f"at {yesterday.day} {yesterday:%B %Y} 12:00 UTC"):
        changed(plan, owner, expected_revision=1)


def test_a_plan_that_has_started_cannot_be_edited(cluster, owner):
    plan = a_draft(cluster, owner)
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.HOLDING)

    with pytest.raises(OutOfDate):
        changed(plan, owner)


def test_a_draft_can_be_thrown_away_and_nothing_else_can(cluster, owner):
    plan = a_draft(cluster, owner)
    discard(plan, actor=owner, reason="Wrong object.", now=NOON)

    assert plan.state == PlanState.DISCARDED
    with pytest.raises(IllegalMove):
        discard(plan, actor=owner, reason="Again.", now=NOON)


def test_what_is_written_is_audited(cluster, owner):
    plan = changed(a_draft(cluster, owner), owner)

    assert [entry.verb for entry in AuditEntry.objects.filter(subject=plan.mark)] == ["draft", "edit"]


def test_suggests_a_canary_then_each_pool_then_what_is_in_none(cluster, owner):
    pool = a_pool(cluster, "training")
    for node in cluster.nodes.all()[:2]:
        node.pools.add(pool)

    stages = suggest_stages(cluster.driver_objects.get(kind="NVIDIADriver"))

    assert [stage.name for stage in stages] == ["Canary", "training", "Nodes in no pool"]
    assert stages[0].count == 2
    drafted = draft(
        cluster=cluster, title="", driver_object=cluster.driver_objects.get(kind="NVIDIADriver"), to_version=NEW,
        stages=stages, actor=owner, now=NOON,
    )  # fmt: skip
    assert drafted.stages.count() == 4
