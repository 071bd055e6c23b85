"""Leave a cluster as if we had never been there: every label, annotation, Job and Lease of ours, found there itself.

It asks the API server and not our rows, for it is made for the day on which those cannot be trusted.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from fleet.models import Cluster
from gpu.external_controllers import NEIGHBOURS, Metadata, as_before, earlier_values
from gpu.labels import (
    CORDONED_BY,
    HELD_BY,
    HELD_SINCE,
    MANAGED_BY,
    OPTED_OUT_BY,
    OURS,
    PROVES_FOR,
    PULLS_FOR,
    PUT_BACK,
    UPGRADE_SKIP,
    UPGRADE_STATE,
    WAS_CORDONED,
)
from gpu.upgrade_controller import UPGRADE_REQUIRED
from kube import client
from kube.structs import LeaseSeen, NodeSeen
from rollouts.components.base import BEGUN
from rollouts.components.driver import Driver
from rollouts.engine.act.writer import TRIES
from rollouts.engine.writer_lease import LEASE_NAME
from rollouts.models import WriterLease
from rollouts.models.plan import MARK

MANAGED = f"{MANAGED_BY}={OURS}"  # the label of every Job of ours, which its pod has, too
LONGEST_WAIT = timedelta(minutes=1)  # for an API server that is busy, before the same node is tried again


@dataclass(frozen=True)
class Mark:
    """A node that carries something of ours."""

    node: str
    uid: str
    plan: str
    since: str
    has_label: bool  # the hold as we write it; with another value it is somebody else's
    is_held: bool = True  # our annotation is beside the label, or where it was
    is_queued: bool = False  # in the operator's queue, which our label alone keeps it in
    is_cordoned: bool = False  # until its test Job has completed, by its annotation
    is_opted_out: bool = False
    opted_out: tuple[str, ...] = ()  # labels and annotations by which neighbours leave it alone, as we wrote them
    unclear: tuple[str, ...] = ()  # such as may be ours, where what was there before cannot be read


def marks(connection: client.Connection) -> tuple[list[Mark], list[str]]:
    """Of one list of all nodes: those that carry something, and the names of those that cannot be read."""
    nodes, unread = client.list_nodes_and_unread(connection)
    found = (_mark(node) for node in nodes)
    return [mark for mark in found if mark], sorted(one.name for one in unread)


def remove(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
    """Take the marks off, one node after another. With each, why it could not be done; blank: it is done.

    :raises Unreachable: when the cluster does not answer any more
    """
    for mark in found:
        yield mark, _remove(connection, mark)


def jobs(connection: client.Connection) -> list[client.JobSeen]:
    """Every Job of ours, in whichever namespace."""
    return [job for job in client.list_jobs(connection, label_selector=MANAGED) if is_for(job.labels)]


def pods(connection: client.Connection) -> list[client.PodSeen]:
    """Theirs: they end some seconds after their Job was deleted."""
    return [pod for pod in client.list_pods(connection, label_selector=MANAGED) if is_for(pod.labels)]


def is_for(labels: Mapping[str, str]) -> str:
    """What a Job of ours with these does, as a sentence goes on after it. Blank: it is none."""
    if pulls := labels.get(PULLS_FOR):
        return f"pulls an image for {pulls}"
    proves = labels.get(PROVES_FOR)
    return f"tests a node for {proves}" if proves else ""


def remove_jobs(connection: client.Connection, found: list[client.JobSeen]) -> Iterator[tuple[client.JobSeen, str]]:
    """Delete them with their pods. With each, why it could not be done; blank: it is done."""
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
    """The Lease that names who writes there. None: there is none."""
    return client.get_lease(connection, cluster.own_namespace, LEASE_NAME)


def is_of_another(seen: LeaseSeen) -> bool:
    """Another Quarterdeck has written there last, so that what carries a plan's name may be that one's (Z10)."""
    ours = WriterLease.objects.values_list("instance", flat=True).first()  # made once per database
    return bool(seen.spec.holder_identity) and seen.spec.holder_identity != ours


def _remove(connection: client.Connection, mark: Mark) -> str:
    """Why it could not be done. Blank: it is done, or the node is gone."""
    trouble = "It changed each time we tried to write it."
    for _ in range(TRIES):
        try:
            node = client.get_node(connection, mark.node)
            now = _mark(node)
            if now and now.unclear:
                return said_of_unclear(now)
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


def said_of_unclear(mark: Mark) -> str:
    there = " and ".join(mark.unclear)
    by_hand = "make it what it was by hand, and take its annotations off"
    return f"{PUT_BACK} does not say what was there before {there}: {by_hand}."


def _mark(node: NodeSeen) -> Mark | None:
    """None: it carries nothing of ours. An annotation of our name that names no plan is somebody else's."""
    has = node.annotations
    is_held = _is_of_a_plan(has.get(HELD_BY)) or (HELD_SINCE in has and HELD_BY not in has)
    is_opted_out = _is_of_a_plan(has.get(OPTED_OUT_BY)) or (PUT_BACK in has and OPTED_OUT_BY not in has)
    is_cordoned = _is_of_a_plan(has.get(CORDONED_BY))
    if not (is_held or is_opted_out or is_cordoned):
        return None
    known = earlier_values(_metadata(node)) if is_opted_out else {}
    left_alone = [one for one in NEIGHBOURS.values() if _metadata(node).value(one) == one.value]
    has_label = HELD_BY in has and _is_on(node)
    return Mark(
        node=node.name,
        uid=node.uid,
        plan=has.get(HELD_BY) or has.get(OPTED_OUT_BY) or has.get(CORDONED_BY, ""),
        since=has.get(HELD_SINCE, ""),
        has_label=has_label,
        is_held=is_held,
        is_queued=has_label and _is_queued(node, is_cordoned=is_cordoned),
        is_cordoned=is_cordoned,
        is_opted_out=is_opted_out,
        opted_out=tuple(NEIGHBOURS[key].mark for key in known),
        unclear=tuple(one.mark for one in left_alone) if is_opted_out and not known else (),
    )


def _is_of_a_plan(value: str | None) -> bool:
    return value is not None and value.startswith(MARK)


def _is_on(node: NodeSeen) -> bool:
    return Driver.hold is not None and Driver.hold.is_on(node.labels)


def _is_queued(node: NodeSeen, *, is_cordoned: bool) -> bool:
    """It can be judged afresh. A node in the queue goes through all of it once it is let go, also one whose driver is
    the wanted one again (ProcessUpgradeRequiredNodes, nvidia.md 2.8); one without a state is first asked whether it
    has to.

    Not where the cordon may be the operator's own, of a try that failed: it uncordons at the end of the next one only.
    """
    is_free = is_cordoned or not node.is_unschedulable or WAS_CORDONED in node.annotations
    return node.labels.get(UPGRADE_STATE) == UPGRADE_REQUIRED and is_free


def _without_marks(node: NodeSeen) -> client.Patch:
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    mark = _mark(node)
    if mark and mark.is_held:
        labels |= {UPGRADE_SKIP: None} if mark.has_label else {}
        annotations |= {HELD_BY: None, HELD_SINCE: None}
    if mark and mark.is_queued:  # the operator writes its note again with the state, where it is still right
        labels |= {UPGRADE_STATE: None}
        annotations |= {WAS_CORDONED: None}
    if mark and mark.is_opted_out:
        before = as_before(_metadata(node), {})
        labels |= before.labels
        annotations |= before.annotations
    uncordons = mark is not None and mark.is_cordoned
    if uncordons:
        annotations |= {CORDONED_BY: None, WAS_CORDONED: None}
    # Who is at work on it, or gave up, has cordoned it as well, and uncordons it when it is through.
    is_left = Driver("").phase(node.labels.get(UPGRADE_STATE, "")) in BEGUN
    is_unschedulable = False if uncordons and not is_left else None
    return client.node_patch(node, labels=labels, annotations=annotations, is_unschedulable=is_unschedulable)


def _metadata(node: NodeSeen) -> Metadata:
    return Metadata(node.labels, node.annotations)
