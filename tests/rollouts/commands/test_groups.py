"""An approval by N of M from groups: refused where nobody can give it, void when who gave it leaves the group."""

import json

import pytest
from django.contrib.auth.models import Group

from edges.digests import digest
from people.models import AuditEntry
from people.roster import groups
from rollouts.approvals.bundles import bundle_for
from rollouts.approvals.decisions import awaited, waiting_for_approval
from rollouts.commands.documents.parser import parse_plan_document
from rollouts.commands.documents.serializer import write
from rollouts.commands.plan_approvals import approve, reject
from rollouts.commands.preview import preview
from rollouts.commands.refusals import BadPlan, NotYours
from rollouts.commands.stage_drafts import StageDraft
from rollouts.engine.approvals import void_approvals
from rollouts.evidence.export import evidence_of
from rollouts.evidence.file import bytes_of, hashes_of_parts
from rollouts.evidence.verification import verify
from rollouts.models import Approval, Plan, Stage, StageKind
from tests.make import NOON, a_user
from tests.rollouts.rows import a_draft, a_started_plan, in_state, opened

ACTING = {"actor": "root", "now": NOON}


def asking(**gate) -> tuple[StageDraft, ...]:
    return (StageDraft("Canary", StageKind.CANARY, count=1, gate_options={"approval": gate, "driver_version": {}}),)


def a_group(name: str, *people) -> Group:
    group = groups.add(name, **ACTING)
    for person in people:
        groups.join(group, person, **ACTING)
    return group


@pytest.fixture
def amy():
    return a_user("amy", role="approver")


@pytest.fixture
def bob():
    return a_user("bob", role="approver")


@pytest.fixture
def stage(cluster, owner, amy, bob) -> Stage:
    a_group("sre", amy)
    a_group("platform", bob)
    plan = a_started_plan(cluster, owner, stages=asking(groups={"sre": 1, "platform": 1}))
    return opened(in_state(plan, "promoting"))


def approved(stage: Stage, actor) -> Approval:
    return approve(stage, actor=actor, bundle_hash=bundle_for(stage).hash, reason="Fine.", now=NOON)


def blockers(plan: Plan) -> list[str]:
    return [check.sentence for check in preview(plan, now=NOON).blockers if check.code == "approvers"]


def test_a_group_that_is_not_there_is_refused_by_name(cluster, owner):
    with pytest.raises(BadPlan) as refusal:
        a_draft(cluster, owner, stages=asking(groups={"srw": 1}))

    (problem,) = refusal.value.problems
    assert problem["field"] == "stages.0.gate_options"
    assert "Group srw does not exist" in problem["sentence"]


def test_a_group_that_cannot_give_so_many_stands_against_the_start(cluster, owner, amy):
    a_group("sre", amy)
    a_user("cid", role="approver")

    plan = a_draft(cluster, owner, stages=asking(groups={"sre": 2}))

    assert blockers(plan) == [
        "Canary has too few approvers. Canary needs 2 approvals, 2 of group sre, and only the members amy may approve."
    ]


def test_a_group_of_the_author_alone_gives_none(cluster, owner, amy):
    a_group("sre", owner)

    plan = a_draft(cluster, owner, stages=asking(groups={"sre": 1}))

    assert blockers(plan) == [
        (
            "Canary has too few approvers. Canary needs 1 approval, 1 of group sre, and no member may approve "
            "except the author of the plan."
        )
    ]


def test_members_who_may_not_approve_there_are_not_counted(cluster, owner):
    a_group("sre", a_user("vic", role="viewer"))

    assert len(blockers(a_draft(cluster, owner, stages=asking(groups={"sre": 1})))) == 1


def test_whoever_is_in_no_group_may_reject_and_not_approve(stage):
    cid = a_user("cid", role="approver")
    (mine,) = awaited(list(waiting_for_approval(Stage.objects.all())), user=cid)

    assert (mine.why_not, mine.needed) == ("", 2)
    assert mine.counts_not == (
        "Your approval would not count: only 1 of platform and 1 of sre are missing, and you are not a member."
    )
    with pytest.raises(NotYours, match="would not count"):
        approved(stage, cid)
    reject(stage, actor=cid, bundle_hash=bundle_for(stage).hash, reason="Month end.", now=NOON)


def test_the_list_says_who_has_and_who_still_can(stage, amy):
    approved(stage, amy)

    (mine,) = awaited(list(waiting_for_approval(Stage.objects.all())), user=amy)

    assert [(each.group, each.wanted, each.given, each.can) for each in mine.shares] == [
        ("platform", 1, (), ("bob",)),
        ("sre", 1, ("amy",), ()),
    ]


def after_a_round(stage: Stage) -> list[str]:
    plan = Plan.objects.get(pk=stage.plan_id)
    plan.take_lease(owner="worker-1", now=NOON)
    void_approvals(plan, plan.stages.all(), now=NOON)
    return list(Approval.objects.values_list("void_reason", flat=True))


def test_an_approval_ends_with_the_membership_that_it_was_given_by(stage, amy):
    approved(stage, amy)
    assert after_a_round(stage) == [""]

    groups.leave(Group.objects.get(name="sre"), amy, **ACTING)

    assert after_a_round(stage) == ["amy is no longer a member of sre."]


def test_an_approval_ends_with_its_group(stage, amy):
    approved(stage, amy)
    groups.remove(Group.objects.get(name="sre"), **ACTING)

    assert after_a_round(stage) == ["amy is no longer a member of sre."]


def test_evidence_proves_of_which_group_somebody_was(stage, amy):
    approved(stage, amy)
    entry = AuditEntry.objects.filter(subject=stage.plan.mark).last()
    file = evidence_of(stage.plan)

    assert entry.evidence["groups"] == ["sre"]
    assert verify(file).flaws == []


def test_a_group_that_was_written_in_later_is_found(stage, amy):
    approved(stage, amy)
    content = json.loads(evidence_of(stage.plan))
    content["decisions"][0]["bundle"]["groups"] = ["platform"]
    content["parts"] = hashes_of_parts(content)
    content["hash"] = digest({key: value for key, value in content.items() if key != "hash"})

    (flaw,) = verify(bytes_of(content)).flaws

    assert flaw.field == "decisions[0]"


def test_a_document_says_the_groups_as_people_write_them(cluster, owner, amy):
    a_group("sre", amy)
    plan = a_draft(cluster, owner, stages=asking(groups={"sre": 1}))

    said = write(plan)

    assert "groups:\n        sre: 1\n" in said
    assert parse_plan_document(said).stages[0].gate_options["approval"] == {"groups": {"sre": 1}}
