"""What lets a plan go on, taken back before its next round: an approval, or the right to write to the cluster."""

from collections.abc import Callable
from datetime import timedelta

from benchmarks.crashing.oracle import MAY_WRITE, VOID, WATCH_ONLY
from benchmarks.crashing.world import World
from fleet.models import Cluster, ClusterMode
from people.models import RoleBinding
from rollouts.approvals.bundles import bundle_for
from rollouts.commands import plan_approvals
from rollouts.commands.refusals import Refusal
from rollouts.gates.approval import ApprovalGate
from rollouts.models import GateOverride, Plan, Stage

TOO_OLD = ApprovalGate().valid_for + timedelta(seconds=1)


def expire(world: World) -> None:
    """It is too old when the next round comes, and all that is seen is new."""
    world.clock.move(TOO_OLD.total_seconds())
    world.rows.look(now=world.clock())
    world.say("carol", VOID)


def take_role(world: World) -> None:
    """Who has given it may not any more."""
    RoleBinding.objects.filter(user=world.person("carol")).delete()
    world.is_taken_back = True
    world.say("carol", VOID)


def take_role_and_approve_own(world: World) -> None:
    """And whoever wrote the plan would like to approve it."""
    take_role(world)
    stage = _opening(world)
    try:
        plan_approvals.approve(
            stage, actor=world.person("ada"), bundle_hash=bundle_for(stage).hash, reason="Mine.", now=world.clock()
        )
    except Refusal:
        return
    world.say("ada", "approve her own")


def pass_over(world: World) -> None:
    """Somebody passes a gate over that it was given with: it is not what was approved any more."""
    now = world.clock()
    GateOverride.objects.create(
        stage=_opening(world), gate="soak", by="bob", at=now, reason="No time.", until=now + timedelta(minutes=1)
    )
    world.say("bob", VOID)


def watch_only(world: World) -> None:
    Cluster.objects.filter(pk=world.cluster.pk).update(mode=ClusterMode.OBSERVE_ONLY)
    world.is_taken_back = True
    world.say("bob", WATCH_ONLY)


def give_back(world: World) -> None:
    if world.is_taken_back:
        world.is_taken_back = False
        world.give_roles("carol")
        Cluster.objects.filter(pk=world.cluster.pk).update(mode=ClusterMode.OPERATE)
        world.say("bob", MAY_WRITE)


def _opening(world: World) -> Stage:
    plan = Plan.objects.select_related("cluster").get(pk=world.plan.pk)
    return plan.stages.get(state="opening")


APPROVALS: tuple[Callable[[World], None], ...] = (expire, take_role, take_role_and_approve_own, pass_over)
