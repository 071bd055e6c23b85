"""Every option of a gate at its ends: what can never be met is refused, what holds nothing back is said in red."""

from dataclasses import replace

import pytest

from rollouts.commands.plan_drafts import edit
from rollouts.commands.preview import preview
from rollouts.commands.refusals import BadPlan
from tests.make import NOON, a_pool, a_user
from tests.rollouts.make import NEW
from tests.rollouts.rows import CANARY, REST, a_draft

GOOD = {"approval": {}, "driver_version": {}, "failure_budget": {}, "soak": {"duration_s": 600}}


def rest(gates=None, **given):
    return replace(REST, gate_options=GOOD if gates is None else GOOD | gates, **given)


def grave(plan) -> str:
    return " ".join(check.sentence for check in preview(plan, now=NOON).warnings if check.code == "meaningless")


@pytest.mark.parametrize(
    "gates",
    [
        {"approval": {}, "soak": {"duration_s": 60}},
        {"approval": {"valid_for_s": 0}, "driver_version": {}},
        {"approval": {"needed": 0}, "driver_version": {}},
        {"driver_version": {"timeout_s": 0}},
        {"operands_ready": {"timeout_s": 0}},
        {"allocatable_restored": {"settle_s": 0}},
        {"workloads_ready": {"timeout_s": 0}},
        {"driver_version": {}, "window": {"must_last_s": 7 * 86400 + 1}},
    ],
)
def test_what_can_never_be_met_is_refused(cluster, owner, gates):
    with pytest.raises(BadPlan) as refusal:
        a_draft(cluster, owner, stages=(CANARY, replace(REST, gate_options=gates)))

    assert refusal.value.problems[0]["field"] == "stages.1.gate_options"


@pytest.mark.parametrize(("needed", "are_barred"), [(1, False), (2, True), (99, True)])
def test_more_approvals_than_people_bar_the_start(cluster, owner, needed, are_barred):
    plan = a_draft(cluster, owner, stages=(CANARY, rest({"approval": {"needed": needed}})))

    codes = [check.code for check in preview(plan, now=NOON).blockers]

    assert codes == (["approvers"] if are_barred else [])


def test_who_wrote_or_changed_it_is_not_counted(cluster, owner):
    amy = a_user("amy", role="admin")
    plan = a_draft(cluster, owner, stages=(CANARY, rest({"approval": {"needed": 2}})))
    assert preview(plan, now=NOON).blockers == []

    edit(
        plan, title="", to_version=NEW, stages=(CANARY, rest({"approval": {"needed": 2}})), expected_revision=1,
        actor=amy, now=NOON,
    )  # fmt: skip

    (check,) = preview(plan, now=NOON).blockers
    assert (
        check.sentence == "Rest has too few approvers. Rest needs 2 approvals, and only 1 person may approve: on-call."
    )


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_nobody_counts_who_may_not_approve(cluster, owner, role):
    a_user("bob", role=role)
    a_user("cy", role="approver", on=type(cluster)(pk=cluster.pk + 1))

    plan = a_draft(cluster, owner, stages=(CANARY, rest({"approval": {"needed": 2}})))

    assert [check.code for check in preview(plan, now=NOON).blockers] == ["approvers"]


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (rest({"failure_budget": {"tolerate": 999}}), "tolerates 999 failures and takes 2 nodes: it never stops"),
        (rest({"failure_budget": {"tolerate": 2}}), "tolerates 2 failures and takes 2 nodes"),
        (rest({"soak": {"duration_s": 0}}), "soak has no duration"),
        (rest({"driver_version": {"timeout_s": 366 * 86400}}), "366 d"),
        (rest({"approval": {"valid_for_s": 30 * 86400}}), "valid for 30 d"),
        (rest({"workloads_ready": {"tolerate": 50}}), "tolerates 50 broken pods, and 0 GPU pods are on its nodes"),
        (rest({"workloads_ready": {"max_restarts": 1000}}), "may restart 1000 times"),
        (replace(REST, gate_options={"driver_version": {}}), "It has no soak"),
        (replace(REST, gate_options={"driver_version": {}}), "It has no failure budget"),
    ],
)
def test_what_holds_nothing_back_is_said_in_red(cluster, owner, stage, words):
    assert words in grave(a_draft(cluster, owner, stages=(CANARY, stage)))


@pytest.mark.parametrize("allowed", [2, 100_000])
def test_a_budget_that_lets_all_go_is_said_in_red_unless_their_pool_allows_fewer(cluster, owner, allowed):
    plan = a_draft(cluster, owner, stages=(replace(CANARY, gate_options=GOOD), rest(max_unavailable=allowed)))

    assert grave(plan) == (
        "Rest has a setting without effect. Its budget releases all 2 nodes at once, so no wave can stop the next."
    )

    pool = a_pool(cluster, "narrow", max_unavailable=1)
    pool.nodes.add(*cluster.nodes.all())

    assert grave(plan) == ""


def test_the_usual_gates_are_not_called_meaningless(cluster, owner):
    canary = replace(CANARY, gate_options=GOOD)

    assert grave(a_draft(cluster, owner, stages=(canary, rest()))) == ""
