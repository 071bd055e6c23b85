"""Four eyes: a stage goes unasked only where cluster or pool say so, and never in production."""

from dataclasses import replace

import pytest

from fleet.models import Cluster, Pool
from fleet.pools.approval_rules import ProductionAsks, set_approval
from fleet.pools.changes import change_pool, create_pool
from people.models import AuditEntry
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked
from rollouts.models import Stage, Target
from tests.make import NOON, a_pool
from tests.rollouts.rows import CANARY, REST, a_draft, opened

BARE = {"driver_version": {}}
UNASKED = (CANARY, replace(REST, gate_options=BARE))
H200 = "nvidia.com/gpu.product=NVIDIA-H200"


@pytest.fixture
def none_says(cluster: Cluster) -> Cluster:
    set_approval(cluster, "none", actor="root", reason="Nobody's work is on it.", now=NOON)
    return cluster


def started(plan, owner):
    start(plan, actor=owner, reason="It is time.", expected_revision=1, now=NOON)
    plan.refresh_from_db()
    return plan


def test_a_stage_that_names_no_approval_has_one(cluster, owner):
    plan = a_draft(cluster, owner, stages=UNASKED)

    assert [stage.gate_options.get("approval") for stage in plan.stages.forward()] == [{"needed": 1}, {}]


def test_it_has_none_where_the_cluster_says_so_and_preview_and_audit_name_it(none_says, owner):
    plan = a_draft(none_says, owner, stages=UNASKED)

    (check,) = [check for check in preview(plan, now=NOON).warnings if check.code == "approval-none"]
    started(plan, owner)

    assert check.is_grave
    assert check.title == "Rest starts without an approval"
    evidence = AuditEntry.objects.get(subject=plan.mark, verb="start").evidence
    assert [each["stage"] for each in evidence["unasked"]] == ["Rest"]


def test_a_pool_may_say_so_for_its_stage_alone(cluster, owner):
    pool = create_pool(cluster=cluster, actor="root", now=NOON, name="lab", selector=H200, approval="none")
    stages = (replace(CANARY, gate_options=BARE), replace(UNASKED[1], pool_id=pool.pk))

    canary, rest = a_draft(cluster, owner, stages=stages).stages.forward()

    assert "approval" in canary.gate_options
    assert "approval" not in rest.gate_options


@pytest.mark.parametrize("environment", ["production", "Production ", "PROD", "eu-prod-1", "ｐｒｏｄ", "live"])
def test_production_cannot_say_none(cluster, environment):
    with pytest.raises(ProductionAsks):
        create_pool(
            cluster=cluster, actor="root", now=NOON, name="p", selector=H200, environment=environment, approval="none"
        )
    assert not Pool.objects.exists()


def test_a_pool_that_says_none_cannot_become_production(cluster):
    pool = create_pool(cluster=cluster, actor="root", now=NOON, name="p", selector=H200, approval="none")

    with pytest.raises(ProductionAsks):
        change_pool(pool, actor="root", now=NOON, environment="production")

    pool.refresh_from_db()
    assert pool.environment == ""


def test_neither_can_a_pool_of_a_cluster_that_says_none_unless_it_asks_itself(none_says):
    pool = create_pool(cluster=none_says, actor="root", now=NOON, name="p", selector=H200)

    with pytest.raises(ProductionAsks, match="for the pool"):
        change_pool(pool, actor="root", now=NOON, environment="production")

    change_pool(pool, actor="root", now=NOON, environment="production", approval="required")


def test_a_cluster_with_production_cannot_say_none(cluster):
    a_pool(cluster, "p", environment="production")

    with pytest.raises(ProductionAsks, match="Pool p is production"):
        set_approval(cluster, "none", actor="root", reason="Faster.", now=NOON)

    cluster.refresh_from_db()
    assert cluster.approval == "required"


def test_what_became_production_after_the_draft_is_refused_at_the_start(none_says, owner):
    plan = a_draft(none_says, owner, stages=UNASKED)
    create_pool(
        cluster=none_says, actor="root", now=NOON, name="p", selector=H200, environment="production",
        approval="required",
    )  # fmt: skip

    with pytest.raises(Blocked) as refusal:
        started(plan, owner)

    (blocker,) = refusal.value.blockers
    assert blocker["code"] == "unasked"
    assert "pool p is production" in str(blocker["evidence"])


def test_a_cluster_that_asks_again_after_the_draft_is_asked_at_the_start(none_says, owner):
    plan = a_draft(none_says, owner, stages=UNASKED)
    set_approval(none_says, "required", actor="root", reason="It has users now.", now=NOON)

    with pytest.raises(Blocked):
        started(plan, owner)


def test_what_becomes_production_under_way_waits_for_an_approval(none_says, owner):
    plan = started(a_draft(none_says, owner, stages=UNASKED), owner)
    rest = opened(plan, 1)

    create_pool(
        cluster=none_says, actor="root", now=NOON, name="p", selector=H200, environment="production",
        approval="required",
    )  # fmt: skip

    rest.refresh_from_db()
    assert "approval" in rest.gate_options
    assert AuditEntry.objects.filter(subject=plan.mark, verb="ask").exists()


def test_a_round_that_looked_before_has_lost_its_lease(none_says, owner):
    plan = started(a_draft(none_says, owner, stages=UNASKED), owner)
    before = plan.epoch

    set_approval(none_says, "required", actor="root", reason="It has users now.", now=NOON)

    plan.refresh_from_db()
    assert plan.epoch == before + 1


def test_a_stage_that_has_begun_halts_with_the_reason(none_says, owner):
    plan = started(a_draft(none_says, owner, stages=UNASKED), owner)
    opened(plan, 1)
    Stage.objects.filter(plan=plan, index=1).update(state="promoting")

    set_approval(none_says, "required", actor="root", reason="It has users now.", now=NOON)

    plan.refresh_from_db()
    rest = plan.stages.get(index=1)
    assert (plan.state, rest.state) == ("halted", "halted")
    assert "approval" in rest.gate_options
    assert "an approval before the change" in plan.reason


def test_a_stage_with_nothing_left_to_go_is_left_alone(none_says, owner):
    plan = started(a_draft(none_says, owner, stages=UNASKED), owner)
    opened(plan, 1)
    Stage.objects.filter(plan=plan, index=1).update(state="soaking")
    Target.objects.filter(stage__plan=plan, stage__index=1).update(state="changed")

    set_approval(none_says, "required", actor="root", reason="It has users now.", now=NOON)

    plan.refresh_from_db()
    assert plan.state == "promoting"
    assert "approval" not in plan.stages.get(index=1).gate_options


def test_who_said_it_is_kept(none_says):
    entry = AuditEntry.objects.get(subject=f"cluster:{none_says.pk}", verb="cluster.approval")

    assert (entry.actor, entry.evidence["before"], entry.evidence["approval"]) == ("root", "required", "none")
