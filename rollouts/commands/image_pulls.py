"""Requests and cancels the pull of a plan's image before it is needed (Z36). A worker creates the Jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from edges.idempotency import CarriedOut, IdempotencyKey, is_done
from fleet.models import ClusterMode, Node, Operand, Pod
from gpu.driver_images import image_for, system_of
from people.models import AuditEntry, User
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.components.driver import is_version
from rollouts.image_pulls.latest_pulls import why_no_pull
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import ImagePull, Plan, PullJob, Target
from rollouts.models.transitions import record_event
from rollouts.preflight.picks import forward, pick
from rollouts.queries.driver_nodes import driver_daemonsets, nodes_of, row_age
from rollouts.queries.restraints import restraints_of
from wording.lists import names
from wording.numbers import count, either

MOST_EACH = 50  # nodes of one operating system: more would be a load on the registry, and prove little more
MOST = 200  # of all
HOW_MANY = f"Choose 1 to {MOST_EACH} nodes of each operating system."


def ask(plan: Plan, *, actor: User, reason: str, nodes_each: int = 1, key: str = "", now: datetime) -> ImagePull:
    """Requests that each OS's image be pulled on the first nodes that need it. Repeating the key returns the same pull.

    :raises Refusal: when the cluster may not be changed, or the image is unknown
    """
    asked = _key_of(actor.get_username(), key, reason, nodes_each)
    if (given := _pull_of_key(plan, asked)) is not None:
        return given
    if not 1 <= nodes_each <= MOST_EACH:
        raise BadPlan(("nodes_each", HOW_MANY))
    _check_request(plan, now=now)
    chosen, left_out = _choose(plan, nodes_each, now=now)
    if not chosen:
        raise Refusal(left_out or "The plan has no node that needs an image.")
    who = actor.get_username()
    try:
        with transaction.atomic():
            Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
            pull = ImagePull.objects.create(
                plan=plan, to_version=plan.to_version, nodes_each=nodes_each, asked_by=who, asked_at=now,
                reason=reason, key=key, left_out=left_out[:500], next_look_at=now, lease_until=now,
            )  # fmt: skip
            PullJob.objects.bulk_create(_new_pull_job(pull, position, one) for position, one in enumerate(chosen, 1))
            evidence = {"version": plan.to_version, "nodes": {one.node.name: one.image for one in chosen}}
            AuditEntry.record(plan.mark, verb="pull-image", actor=who, reason=reason, evidence=evidence, now=now)
            record_event(plan=plan, what="note", was="", to="image-pull", now=now, actor=who, reason=reason)
    except IntegrityError as clash:
        # The same request was sent twice at once: the first one does not refuse the second.
        if (given := _pull_of_key(plan, asked)) is not None:
            return given
        raise Refusal("An image pull of this plan is already in progress. Wait until it ends, or cancel it.") from clash
    ImagePull.queue_round(pull.pk)
    return pull


def cancel(pull: ImagePull, *, actor: User, reason: str, now: datetime) -> None:
    """Cancels a pull and deletes its Jobs; results stay.

    :raises Refusal: when it has ended or is ending
    """
    if not call_off(pull, by=actor.get_username(), reason=reason, now=now):
        raise Refusal("The image pull has already ended, or is ending.")


def call_off(pull: ImagePull, *, by: str, reason: str, now: datetime) -> bool:
    """Cancels a pull for any author; returns False if the pull has ended or is ending."""
    with transaction.atomic():
        Plan.objects.select_for_update(no_key=True).get(pk=pull.plan_id)
        if not pull.stop(f"{by} cancelled the pull: {reason}", by=by, now=now):
            return False
        AuditEntry.record(pull.plan.mark, verb="cancel-pull", actor=by, reason=reason, now=now)
        record_event(plan=pull.plan, what="note", was="", to="pull-cancelled", now=now, actor=by, reason=reason)
    ImagePull.queue_round(pull.pk)
    return True


def _key_of(who: str, key: str, reason: str, nodes_each: int) -> IdempotencyKey:
    return IdempotencyKey.of(key, person=who, verb="pull-image", body={"reason": reason, "nodes_each": nodes_each})


def _pull_of_key(plan: Plan, asked: IdempotencyKey) -> ImagePull | None:
    """Returns the pull that this person's key has already made; None if there is none.

    :raises Refusal: when the key made another pull, or one for an earlier version
    """
    same = ImagePull.objects.filter(plan=plan, asked_by=asked.person, key=asked.key).select_related("plan")
    pull = same.first() if asked.key else None
    if pull is None:
        return None
    earlier = CarriedOut(
        _key_of(pull.asked_by, pull.key, pull.reason, pull.nodes_each),
        pull.asked_at,
        holds=not pull.ends_reason and pull.to_version == pull.plan.to_version,
        now_is=lambda: (
            pull.ends_reason or f"The pull was for {pull.to_version}, and the plan's target is {pull.plan.to_version}."
        ),
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
    daemonset: Operand
    pod: Pod
    image: str
    system: str


def _new_pull_job(pull: ImagePull, position: int, one: NodeToPullOn) -> PullJob:
    return PullJob(
        pull=pull, position=position, node_uid=one.node.uid, node_name=one.node.name,
        daemonset_uid=one.daemonset.uid, namespace=one.daemonset.namespace, daemonset_name=one.daemonset.name,
        driver_pod=one.pod.name, system=one.system[:128], image=one.image,
    )  # fmt: skip


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
    chosen = [one for _, those in sorted(by_system.items()) for one in _choose_nodes(those, nodes_each)]
    untold = [node.name for node in nodes if node.uid not in known]
    have = either(len(untold), "has", "have")
    told = f"{count(len(untold), 'node')} {have} no driver pod that shows the image: {names(untold)}." if untold else ""
    if len(chosen) > MOST:
        raise BadPlan(
            (
                "nodes_each",
                (
                    f"{len(chosen)} nodes are more than the limit of {MOST}. Choose fewer nodes of each "
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
        daemonset = daemonsets[pod.owner_uid]
        image = image_for(daemonset.image, from_version=plan.from_version, to_version=plan.to_version)
        if image:
            found[node.uid] = NodeToPullOn(node, daemonset, pod, image, system_of(image, plan.to_version))
    return found
