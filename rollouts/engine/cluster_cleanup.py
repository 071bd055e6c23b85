"""Removes every label, annotation, Job and Lease of Quarterdeck from a cluster.

It finds them through the API server, not through rows, since it is meant for the day on which rows cannot be trusted.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from fleet.models import Cluster
from gpu.cordons import sentinel_keeps
from gpu.driver_hold import is_requeued, requeued, without_hold
from gpu.external_controllers import EXTERNAL_CONTROLLERS, Metadata, as_before, earlier_values
from gpu.labels import (
    CORDONED_BY,
    EXCLUDED_BY,
    HELD_BY,
    HELD_SINCE,
    MANAGED_BY,
    OURS,
    PROVES_FOR,
    PUT_BACK,
    UPGRADE_STATE,
    WAS_CORDONED,
)
from kube import client
from kube.structs import LeaseSeen, NodeSeen
from operations.models import WriterLease
from operations.node_writer import TRIES
from operations.writer_lease import LEASE_NAME
from rollouts.components.base import BEGUN
from rollouts.components.driver import Driver
from rollouts.models.plan import MARK

MANAGED = f"{MANAGED_BY}={OURS}"  # the label of every Job of ours, which its pod has, too
LONGEST_WAIT = timedelta(minutes=1)  # for an API server that is busy, before the same node is tried again


@dataclass(frozen=True)
class Mark:
    """A node that carries a label, annotation or cordon of ours."""

    node: str
    uid: str
    plan: str
    since: str
    has_label: bool  # the hold as we write it; with another value it is somebody else's
    is_held: bool = True  # our annotation is beside the label, or where it was
    is_queued: bool = False  # in the operator's queue; only our label holds it there
    is_cordoned: bool = False  # until its test Job has completed, by its annotation
    kept_by: str = ""  # mark by which NVSentinel keeps a node with our cordon out of service
    has_exclusions: bool = False
    exclusions: tuple[str, ...] = ()  # labels and annotations by which controllers leave it alone, as we wrote them
    unclear: tuple[str, ...] = ()  # marks that may be ours, but whose previous value is unreadable


def marks(connection: client.Connection) -> tuple[list[Mark], list[str]]:
    """Returns the marks of all nodes from one list, and the names of nodes that cannot be read."""
    nodes, unread = client.list_nodes_and_unread(connection)
    found = (_mark_of_node(node) for node in nodes)
    return [mark for mark in found if mark], sorted(one.name for one in unread)


def remove(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
    """Removes the marks node by node. Yields each with the reason of a failure; empty means removed.

    :raises Unreachable: when the cluster stops answering
    """
    for mark in found:
        yield mark, _remove(connection, mark)


def jobs(connection: client.Connection) -> list[client.JobSeen]:
    return [job for job in client.list_jobs(connection, label_selector=MANAGED) if is_for(job.labels)]


def pods(connection: client.Connection) -> list[client.PodSeen]:
    """Returns the Jobs' pods, which end some seconds after their Job."""
    return [pod for pod in client.list_pods(connection, label_selector=MANAGED) if is_for(pod.labels)]


def is_for(labels: Mapping[str, str]) -> str:
    """Returns a clause about the purpose of a Job with these labels; empty means that it is not ours."""
    owner = labels.get(PROVES_FOR, "")
    return f"tests a node for {owner}" if owner.startswith(MARK) else f"runs for {owner}" if owner else ""


def remove_jobs(connection: client.Connection, found: list[client.JobSeen]) -> Iterator[tuple[client.JobSeen, str]]:
    """Deletes Jobs with their pods. Yields each with the reason of a failure; empty means deleted."""
    for job in found:
        try:
            client.delete_job(connection, job)
        except client.Absent:
            yield job, ""
        except client.ClusterError as error:
            yield job, str(error)
        else:
            yield job, ""


def lease(connection: client.Connection, cluster: Cluster) -> LeaseSeen | None:
    """Returns the Lease that names who writes to the cluster; None if there is none."""
    return client.get_lease(connection, cluster.own_namespace, LEASE_NAME)


def is_of_another(seen: LeaseSeen) -> bool:
    """Returns whether another Quarterdeck was the last writer, so that a plan's name may be one of its plans (Z10)."""
    ours = WriterLease.objects.values_list("instance", flat=True).first()  # made once per database
    return bool(seen.spec.holder_identity) and seen.spec.holder_identity != ours


def _remove(connection: client.Connection, mark: Mark) -> str:
    """Removes one mark and returns the reason of a failure; empty means removed, or the node is gone."""
    trouble = "The node changed during each attempt to write it."
    for _ in range(TRIES):
        try:
            node = client.get_node(connection, mark.node)
            now = _mark_of_node(node)
            if now and (why_left := _why_left(now)):
                return why_left
            if patch := _without_marks(node):
                client.patch_node(connection, mark.node, patch)
        except client.Absent:
            return ""
        except client.Conflict:
            continue
        except client.TooManyRequests as busy:
            trouble = str(busy)
            time.sleep(min(busy.retry_after_s or 1.0, LONGEST_WAIT.total_seconds()))
        except client.Unreachable:
            raise
        except client.ClusterError as error:
            return str(error)
        else:
            return ""
    return trouble


def unclear_mark_text(mark: Mark) -> str:
    there = " and ".join(mark.unclear)
    by_hand = "restore it by hand, and remove its annotations"
    return f"{PUT_BACK} does not contain the value before {there}: {by_hand}."


def _why_left(mark: Mark) -> str:
    if mark.unclear:
        return unclear_mark_text(mark)
    return kept_cordon_text(mark) if mark.kept_by else ""


def kept_cordon_text(mark: Mark) -> str:
    by_hand = f"If NVSentinel left the mark behind, remove it: kubectl annotate node {mark.node} {mark.kept_by}-"
    return f"NVSentinel quarantines or validates the node ({mark.kept_by}). Wait for it, then run this again. {by_hand}"


def _mark_of_node(node: NodeSeen) -> Mark | None:
    """Returns the node's mark; None if it has none. An annotation of our name without a plan is somebody else's."""
    has = node.annotations
    is_held = _is_plan_mark(has.get(HELD_BY)) or (HELD_SINCE in has and HELD_BY not in has)
    has_exclusions = _is_plan_mark(has.get(EXCLUDED_BY)) or (PUT_BACK in has and EXCLUDED_BY not in has)
    is_cordoned = _is_plan_mark(has.get(CORDONED_BY))
    if not (is_held or has_exclusions or is_cordoned):
        return None
    known = earlier_values(_metadata(node)) if has_exclusions else {}
    left_alone = [one for one in EXTERNAL_CONTROLLERS.values() if _metadata(node).value(one) == one.value]
    has_label = HELD_BY in has and _is_on(node)
    return Mark(
        node=node.name,
        uid=node.uid,
        plan=has.get(HELD_BY) or has.get(EXCLUDED_BY) or has.get(CORDONED_BY, ""),
        since=has.get(HELD_SINCE, ""),
        has_label=has_label,
        is_held=is_held,
        is_queued=has_label
        and is_requeued(_metadata(node), is_unschedulable=node.is_unschedulable, is_our_cordon=is_cordoned),
        is_cordoned=is_cordoned,
        # An uncordon would cancel NVSentinel's break-fix (lifecycle R2), and it never removes a cordon from before.
        kept_by=sentinel_keeps(node.labels, has) if is_cordoned and node.is_unschedulable else "",
        has_exclusions=has_exclusions,
        exclusions=tuple(EXTERNAL_CONTROLLERS[key].mark for key in known),
        unclear=tuple(one.mark for one in left_alone) if has_exclusions and not known else (),
    )


def _is_plan_mark(value: str | None) -> bool:
    return value is not None and value.startswith(MARK)


def _is_on(node: NodeSeen) -> bool:
    return Driver.hold is not None and Driver.hold.is_on(node.labels)


def _without_marks(node: NodeSeen) -> client.Patch:
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    mark = _mark_of_node(node)
    if mark and mark.is_held:
        free = without_hold(Metadata(node.labels if mark.has_label else {}, {}))
        labels |= free.labels
        annotations |= free.annotations
    if mark and mark.is_queued:
        again = requeued()
        labels |= again.labels
        annotations |= again.annotations
    if mark and mark.has_exclusions:
        before = as_before(_metadata(node), {})
        labels |= before.labels
        annotations |= before.annotations
    uncordons = mark is not None and mark.is_cordoned
    if uncordons:
        annotations |= {CORDONED_BY: None, WAS_CORDONED: None}
    # The operator has also cordoned nodes in its own upgrade states, and uncordons them itself.
    is_left = Driver("").phase(node.labels.get(UPGRADE_STATE, "")) in BEGUN
    is_unschedulable = False if uncordons and not is_left else None
    return client.node_patch(node, labels=labels, annotations=annotations, is_unschedulable=is_unschedulable)


def _metadata(node: NodeSeen) -> Metadata:
    return Metadata(node.labels, node.annotations)
