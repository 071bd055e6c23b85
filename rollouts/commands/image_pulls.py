"""Requests the pull of a plan's image before it is needed (Z36), by an operation, and cancels one without a purpose."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from django.db import transaction

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import ClusterMode, Node, Pod
from gpu.driver_images import image_for
from operations import commands
from operations.lifecycle import OperationState
from operations.refusals import OperationRefused
from operations.test_jobs.pull_job import MOST_DRIVER_NODES, DriverPull
from people.models import User
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.components.driver import is_version
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Plan, PlanPull, Target
from rollouts.models.transitions import record_event
from rollouts.preflight.picks import forward, pick
from rollouts.queries.driver_nodes import driver_daemonsets, nodes_of, row_age
from rollouts.queries.image_pulls import why_no_pull, why_obsolete
from rollouts.queries.restraints import restraints_of
from wording.lists import names
from wording.numbers import count, either

KIND = "pull-image"  # of operations
BY_ITSELF = "quarterdeck"
MOST_EACH = 50  # nodes of one operating system: more would be a load on the registry, and prove little more
HOW_MANY = f"Choose 1 to {MOST_EACH} nodes of each operating system."


def ask(plan: Plan, *, actor: User, reason: str, nodes_each: int = 1, key: str = "", now: datetime) -> PlanPull:
    """Requests that each OS's image be pulled on the first nodes that need it. Repeating the key returns the same pull.

    :raises Refusal: when the cluster may not be changed, or the image is unknown
    """
    who = actor.get_username()
    asked = _key_of(who, key, reason, nodes_each)
    if (given := _pull_of_key(plan, asked)) is not None:
        return given
    if not 1 <= nodes_each <= MOST_EACH:
        raise BadPlan(("nodes_each", HOW_MANY))
    _check_request(plan, now=now)
    chosen, left_out = _choose(plan, nodes_each, now=now)
    if not chosen:
        raise Refusal(left_out or "The plan has no node that needs an image.")
    images = DriverPull(plan.from_version, plan.to_version, {one.node.uid: one.image for one in chosen})
    with transaction.atomic():
        plan = Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        if (given := _pull_of_key(plan, asked)) is not None:
            return given
        if PlanPull.objects.in_progress().filter(plan=plan).exists():
            raise Refusal("An image pull of this plan is already in progress. Wait until it ends, or cancel it.")
        if plan.to_version != images.to_version:
            raise Refusal(f"The draft was edited. Its target is now {plan.to_version}.")
        try:
            operation = commands.start(
                plan.cluster, KIND, [one.node for one in chosen], actor=who, reason=reason, options=images.as_option,
                typed_count=len(chosen), key=key, now=now,
            )  # fmt: skip
        except OperationRefused as refusal:
            raise Refusal(str(refusal)) from refusal
        record_event(plan=plan, what="note", was="", to="image-pull", now=now, actor=who, reason=reason)
        return PlanPull.objects.create(
            plan=plan, operation=operation, to_version=plan.to_version, nodes_each=nodes_each, left_out=left_out[:500]
        )


def cancel_obsolete_pulls(*, now: datetime) -> None:
    """Cancels the pulls that no plan needs any more. Safe to repeat."""
    for pull in PlanPull.objects.in_progress().select_related("plan", "operation"):
        if reason := why_obsolete(pull):
            with suppress(IllegalMove, LostRace):  # somebody moved it meanwhile: the next sweep looks again
                commands.cancel(pull.operation, actor=BY_ITSELF, reason=reason, now=now)


def _key_of(who: str, key: str, reason: str, nodes_each: int) -> IdempotencyKey:
    return IdempotencyKey.of(key, person=who, verb="pull-image", body={"reason": reason, "nodes_each": nodes_each})


def _pull_of_key(plan: Plan, asked: IdempotencyKey) -> PlanPull | None:
    """Returns the pull that this person's key has already made; None if there is none.

    :raises Refusal: when the key made another pull, or one for an earlier version
    """
    same = PlanPull.objects.filter(plan=plan, operation__asked_by=asked.person, operation__key=asked.key)
    pull = same.select_related("plan", "operation__cluster").first() if asked.key else None
    if pull is None:
        return None
    operation, obsolete = pull.operation, why_obsolete(pull)
    is_cancelled = operation.state == OperationState.CANCELLED
    earlier = EarlierCommand(
        _key_of(operation.asked_by, operation.key, operation.reason, pull.nodes_each),
        operation.asked_at,
        holds=not is_cancelled and not obsolete,
        now_is=lambda: operation.state_reason if is_cancelled else obsolete,
    )
    return pull if is_done(asked, earlier, refusal=Refusal) else None


def _check_request(plan: Plan, *, now: datetime) -> None:
    cluster = plan.cluster
    if reason := why_no_pull(plan):
        raise Refusal(reason)
    if not is_version(plan.to_version):
        raise Refusal(f"“{plan.to_version}” is not a full driver version, so its image is unknown.")
    if cluster.mode != ClusterMode.OPERATE:
        raise Refusal(
            f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}. It creates no Job there."
        )
    if stale := row_age(plan, now=now).stale_reason:
        raise Refusal(stale)
    if frozen := restraints_of(plan, now=now).first:
        raise Refusal(frozen.sentence)


@dataclass(frozen=True)
class NodeToPullOn:
    node: Node
    image: str


def _choose(plan: Plan, nodes_each: int, *, now: datetime) -> tuple[list[NodeToPullOn], str]:
    """Returns the first nodes of each OS, and why there are no more.

    A node that is not Ready is chosen only if its OS has no other.
    """
    nodes = _nodes_in_order(plan, now=now)
    known = _images_of_nodes(plan, nodes)
    by_system: dict[str, list[NodeToPullOn]] = {}
    for node in nodes:
        if node.uid in known:
            by_system.setdefault(known[node.uid].image, []).append(known[node.uid])
    each = [_choose_nodes(those, nodes_each) for _, those in sorted(by_system.items())]
    chosen = [one for turn in zip_longest(*each) for one in turn if one]  # each system's first node, then its second
    untold = [node.name for node in nodes if node.uid not in known]
    have = either(len(untold), "has", "have")
    told = f"{count(len(untold), 'node')} {have} no driver pod that shows the image: {names(untold)}." if untold else ""
    if len(chosen) > MOST_DRIVER_NODES:
        raise BadPlan(
            (
                "nodes_each",
                (
                    f"{len(chosen)} nodes are more than the limit of {MOST_DRIVER_NODES}. Choose fewer nodes of each "
                    "operating system."
                ),
            )
        )
    return chosen, told


def _choose_nodes(those: Sequence[NodeToPullOn], nodes_each: int) -> Sequence[NodeToPullOn]:
    ready = [one for one in those if one.node.is_ready]
    return ready[:nodes_each] if ready else those[:1]


def _nodes_in_order(plan: Plan, *, now: datetime) -> list[Node]:
    """Returns the nodes in release order; in a started plan, those that have not changed."""
    nodes = list(nodes_of(plan).prefetch_related("pools"))
    if plan.state == PlanState.DRAFT:
        return pick(forward(plan), nodes, now=now).nodes
    through = (TargetState.CHANGED, TargetState.EXCLUDED)
    targets = Target.objects.filter(stage__plan=plan).forward().exclude(state__in=through)
    by_uid = {node.uid: node for node in nodes}
    uids = targets.order_by("stage__index", "position").values_list("node_uid", flat=True)
    return [by_uid[uid] for uid in uids if uid in by_uid]


def _images_of_nodes(plan: Plan, nodes: Sequence[Node]) -> Mapping[str, NodeToPullOn]:
    """Returns the image of each node by UID, from its driver DaemonSet. Two queries."""
    daemonsets = {row.uid: row for row in driver_daemonsets(plan)}
    pods = Pod.objects.filter(cluster=plan.cluster_id, owner_uid__in=daemonsets, deleted_at=None).order_by("pk")
    by_node = {pod.node_name: pod for pod in pods}
    found: dict[str, NodeToPullOn] = {}
    for node in nodes:
        if (pod := by_node.get(node.name)) is None:
            continue
        image = image_for(daemonsets[pod.owner_uid].image, from_version=plan.from_version, to_version=plan.to_version)
        if image:
            found[node.uid] = NodeToPullOn(node, image)
    return found
