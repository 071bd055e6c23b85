"""An approval holds as long as the right to give it."""

import pytest

from people.models import RoleBinding, User
from people.roster import accounts
from rollouts.approvals.bundles import bundle_for
from rollouts.commands.plan_approvals import approve
from rollouts.engine.approvals import void_approvals
from rollouts.models import Approval, Plan, Stage
from tests.make import NOON, a_pool, a_stage_to_approve, a_user

pytestmark = pytest.mark.django_db
REASON = "amy may no longer approve here: the role was removed, or the account was disabled."


@pytest.fixture
def approval() -> Approval:
    a_user("root", role="admin")
    stage = Stage.objects.select_related("plan__cluster").get(pk=a_stage_to_approve().pk)
    amy = a_user("amy", role="approver")
    found = approve(stage, actor=amy, bundle_hash=bundle_for(stage).hash, reason="Fine.", now=NOON)
    plan = Plan.objects.get(pk=stage.plan_id)
    plan.take_lease(owner="worker-1", now=NOON)
    found.stage.plan = plan
    return found


def after_a_round(approval: Approval) -> Approval:
    void_approvals(approval.stage.plan, approval.stage.plan.stages.all(), now=NOON)
    return Approval.objects.get(pk=approval.pk)


def amy() -> User:
    return User.objects.get(username="amy")


def test_while_the_role_stands_so_does_the_approval(approval):
    assert after_a_round(approval).void_at is None


def take_the_role(approval: Approval) -> None:
    amy().bindings.all().delete()


def switch_off(approval: Approval) -> None:
    accounts.switch_off(amy(), actor="root", now=NOON)


def move_the_role_to_a_pool(approval: Approval) -> None:
    pool = a_pool(approval.stage.plan.cluster)
    RoleBinding.objects.filter(user=amy()).update(scope="pool", scope_id=pool.pk)


def leave_only_what_sees(approval: Approval) -> None:
    RoleBinding.objects.filter(user=amy()).update(role="viewer")


@pytest.mark.parametrize("change", [take_the_role, switch_off, move_the_role_to_a_pool, leave_only_what_sees])
def test_when_the_right_goes_the_approval_is_void(approval, change):
    change(approval)

    void = after_a_round(approval)

    assert (void.void_at, void.void_reason) == (NOON, REASON)
    assert approval.stage.plan.events.filter(what="approval", to="void").count() == 1


def test_a_rejection_stays(approval):
    Approval.objects.update(is_rejection=True)
    take_the_role(approval)

    assert after_a_round(approval).void_at is None
