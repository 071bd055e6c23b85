"""A gate passed over by a person: who may, what may be, for how long, and that it is seen."""

import json
from datetime import timedelta

import pytest

from edges.digests import digest
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from people.rights import NotAllowed
from rollouts.approvals.bundles import bundle_for
from rollouts.commands.break_glass import acknowledge, override_gate
from rollouts.commands.refusals import BadPlan, NotYours, Refusal
from rollouts.evidence.export import evidence_of
from rollouts.evidence.file import bytes_of, hashes_of_parts
from rollouts.evidence.verification import verify
from rollouts.findings.plan_findings import UNACKNOWLEDGED_OVERRIDES
from rollouts.gates import GATES
from rollouts.models import GateAnswer, GateOverride, Plan, Stage
from tests.make import NOON, a_user
from tests.rollouts.rows import a_started_plan, answered, in_state, opened

REASON = "The exporter is down, the nodes are fine."


@pytest.fixture
def stage(cluster, owner) -> Stage:
    plan = in_state(a_started_plan(cluster, owner), "promoting")
    stage = opened(plan, 0)
    answered(stage, answer="wait", title="It cannot tell", cause="unsure")
    answered(stage, "approval", "wait", title="0 of 1 approval given", cause="not-given")
    return Stage.objects.select_related("plan__cluster").get(pk=stage.pk)


def broken(stage: Stage, actor, gate: str = "driver_version", **given) -> GateOverride:
    row = {"reason": REASON, "confirm": stage.plan.title, "now": NOON} | given
    return override_gate(stage, gate, actor=actor, **row)


def test_who_why_and_what_the_gate_said_is_kept(stage, owner):
    override = broken(stage, owner)

    entry = AuditEntry.objects.filter(subject=stage.plan.mark).last()
    assert (override.by, override.reason, override.said) == (owner.username, REASON, "It cannot tell.")
    assert override.until == NOON + timedelta(hours=4)
    assert (entry.verb, entry.actor, entry.evidence["gate"]) == ("break-glass", owner.username, "driver_version")
    assert list(broken_links(AuditEntry.objects.filter(subject=stage.plan.mark))) == []
    assert stage.plan.events.filter(to="break-glass").exists()
    said = f"{stage.name}: {owner.username} overrode {GATES['driver_version'].title}; every gate is evaluated again."
    assert Plan.objects.get(pk=stage.plan_id).waiting_for == said


def test_after_its_time_the_gate_counts_again(stage, owner):
    broken(stage, owner, valid_for=timedelta(hours=1))

    assert [*stage.overrides_now(now=NOON + timedelta(minutes=59))] == ["driver_version"]
    assert stage.overrides_now(now=NOON + timedelta(hours=1)) == {}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"confirm": "yes"}, "confirm"),
        ({"valid_for": timedelta(seconds=59)}, "valid_for"),
        ({"valid_for": timedelta(hours=25)}, "valid_for"),
    ],
)
def test_what_is_missing_is_named(stage, owner, wrong, field):
    with pytest.raises(BadPlan) as refusal:
        broken(stage, owner, **wrong)

    assert [problem["field"] for problem in refusal.value.problems] == [field]


def test_an_operator_overrides_no_approval_and_an_admin_does(stage, owner):
    """Owner is an operator: with the word of one more person it is four eyes again."""
    operator, admin = a_user("op", role="operator"), a_user("root", role="admin")

    with pytest.raises(NotAllowed, match="can override an approval"):
        broken(stage, operator, "approval")
    broken(stage, admin, "approval")

    ((_, wrong),) = UNACKNOWLEDGED_OVERRIDES.say(stage.plan.cluster, now=NOON)
    assert wrong.severity.value == "critical"
    assert wrong.title == f"Gate Approval of plan #{stage.plan_id} “{stage.plan.title}” overridden"
    assert [item.value for item in wrong.evidence[::2]] == ["root", "Canary"]
    assert UNACKNOWLEDGED_OVERRIDES.page(wrong.facts) == f"/plans/{stage.plan_id}"


@pytest.mark.parametrize("part", ["author", "last_editor", "started_by"])
def test_no_admin_overrides_the_approval_of_a_plan_of_their_own(stage, part):
    """Four eyes stay four, whatever the role."""
    root = a_user("root", role="admin")
    Plan.objects.update(**{part: "root"})
    stage.refresh_from_db()

    with pytest.raises(NotAllowed, match="whatever your role"):
        broken(stage, root, "approval")

    assert not GateOverride.objects.exists()


def test_who_only_approves_passes_nothing_over(stage, approver):
    with pytest.raises(NotAllowed):
        broken(stage, approver)


def rejected(stage: Stage) -> str:
    GateAnswer.objects.filter(stage=stage).update(answer="fail", cause="rejected", title="amy rejected it")
    return "A rejection cannot be overridden"


def unseen(stage: Stage) -> str:
    GateAnswer.objects.filter(stage=stage).update(cause="unseen", title="node-1 cannot be seen")
    return "node-1 cannot be seen. Missing evidence cannot be overridden"


def to_come(stage: Stage) -> str:
    GateAnswer.objects.filter(stage=stage).update(cause="to-come", title="2 nodes to come")
    return "2 nodes to come. The gate waits for the remaining nodes and delays nothing"


def passes(stage: Stage) -> str:
    GateAnswer.objects.filter(stage=stage).update(answer="pass")
    return "Driver version passes and delays nothing"


def not_asked(stage: Stage) -> str:
    GateAnswer.objects.filter(stage=stage).delete()
    return "was not evaluated yet"


def advisory(stage: Stage) -> str:
    Stage.objects.filter(pk=stage.pk).update(gate_options={"driver_version": {"advisory": True}})
    stage.refresh_from_db()
    return "is advisory in"


def another_gate(stage: Stage) -> str:
    Stage.objects.filter(pk=stage.pk).update(gate_options={"soak": {}})
    stage.refresh_from_db()
    return "has no gate “driver_version”"


def is_going_back(stage: Stage) -> str:
    Plan.objects.filter(pk=stage.plan_id).update(state="rolling-back")
    return "in a plan that is rolling back: no gate delays it"


def once_before(stage: Stage) -> str:
    GateOverride.objects.create(
        stage=stage, gate="driver_version", by="amy", at=NOON, reason="x", until=NOON + timedelta(hours=1)
    )
    return "amy has already overridden this gate until 13:00 UTC"


def once_for_a_day(stage: Stage) -> str:
    tomorrow = NOON + timedelta(hours=24)
    GateOverride.objects.create(stage=stage, gate="driver_version", by="amy", at=NOON, reason="x", until=tomorrow)
    return f"amy has already overridden this gate until {tomorrow:%A} 12:00 UTC"


@pytest.mark.parametrize(
    "change",
    [once_for_a_day, rejected, unseen, to_come, passes, not_asked, advisory, another_gate, is_going_back, once_before],
)
def test_what_holds_nothing_up_or_may_not_be_overridden_is_not(stage, owner, change):
    """Loses to whoever changed the plan, the stage or the answer since it was read."""
    reason = change(stage)

    with pytest.raises(Refusal, match=reason):
        broken(stage, owner)

    assert not AuditEntry.objects.filter(verb="break-glass").exists()


def test_the_gates_of_a_rollback_only_warn(stage, owner):
    back = Stage.objects.select_related("plan__cluster").get(plan=stage.plan, kind="rollback")

    with pytest.raises(Refusal, match="gates only warn"):
        broken(back, owner)


def test_it_is_a_finding_until_somebody_else_has_looked(stage, owner, approver):
    override = broken(stage, owner)
    ((subject, _),) = UNACKNOWLEDGED_OVERRIDES.say(stage.plan.cluster, now=NOON)
    assert subject == f"override {override.pk}"

    with pytest.raises(NotYours):
        acknowledge(override, actor=owner, now=NOON)
    acknowledge(override, actor=approver, now=NOON)
    acknowledge(override, actor=a_user("amy", role="approver"), now=NOON)

    assert GateOverride.objects.get().acknowledged_by == approver.username
    assert list(UNACKNOWLEDGED_OVERRIDES.say(stage.plan.cluster, now=NOON)) == []


def test_an_approver_of_a_later_stage_is_bound_to_it(stage, owner):
    later = stage.plan.stages.get(index=1)
    before = bundle_for(later).hash

    broken(stage, owner)

    assert bundle_for(later).hash != before
    assert bundle_for(later).content["overrides"]["0:driver_version"] == {"by": owner.username, "reason": REASON}


def test_evidence_proves_it_and_finds_what_was_taken_out(stage, owner, approver):
    override = broken(stage, owner)
    acknowledge(override, actor=approver, now=NOON)
    file = evidence_of(stage.plan)
    content = json.loads(file)
    without = {key: value for key, value in content.items() if key != "overrides"}
    other = content | {"overrides": [content["overrides"][0] | {"by": "mallory"}]}
    why = content | {"overrides": [content["overrides"][0] | {"reason": "It was fine."}]}
    twice = content | {"overrides": content["overrides"] * 2}

    assert verify(file).flaws == []
    assert [flaw.field for flaw in verify(made_anew(without)).flaws] == ["overrides"]
    assert [flaw.field for flaw in verify(made_anew(other)).flaws] == ["overrides[0]", "overrides"]
    assert [flaw.field for flaw in verify(made_anew(why)).flaws] == ["overrides[0]", "overrides"]
    assert [flaw.field for flaw in verify(made_anew(twice)).flaws] == ["overrides[1]"]


def made_anew(content: dict) -> bytes:
    content["parts"] = hashes_of_parts(content)
    content["hash"] = digest({key: value for key, value in content.items() if key != "hash"})
    return bytes_of(content)
