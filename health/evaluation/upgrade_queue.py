"""The progress of the operator's queue of driver upgrades, and what blocks it."""

from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils.text import Truncator

from fleet.models import Cluster, Node, NodeEvent, Pod
from fleet.states.node import AT_REST
from gpu.operands import DRIVER
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from health.rules.base import Blocker
from health.rules.upgrade_queue_still import STILL_FOR
from wording.lists import names
from wording.numbers import either

REASON_CHARS = 150  # of the scheduler's message, which counts nodes of each kind
FIT_IT = (
    (
        "Check the events of the pod and its DaemonSet. Free resources for the pod, or change the node "
        "selector of its NVIDIADriver."
    ),
)
FREE_THEM = (
    "Repair these nodes.",
    "Or let more nodes upgrade at once: maxParallelUpgrades and maxUnavailable of the upgradePolicy.",
)


def queued_for_upgrade(cluster: Cluster) -> int:
    """Returns how many nodes wait in the queue without a hold, with one query."""
    return _queued(cluster).count()


def upgrades_are_still(cluster: Cluster, *, now: datetime) -> bool:
    """Returns whether no upgrade in the queue moves, with one query."""
    return not NodeEvent.objects.filter(cluster=cluster, kind="upgrade", at__gt=now - STILL_FOR).exists()


def blocker_of_queue(cluster: Cluster) -> tuple[str, Blocker]:
    """Returns the identity of the cause, and the blocker; empty if unknown. Two queries.

    Slots are counted among the nodes of one NVIDIADriver, or of the ClusterPolicy (k8s-operator-libs,
    GetUpgradesAvailable). Failed nodes take a slot, and so do nodes that are cordoned or not ready for any reason.
    """
    homeless = Pod.objects.filter(cluster=cluster, operand=DRIVER, node_name="", deleted_at=None).not_done()
    if (pod := homeless.order_by("pk").first()) is not None:
        reason = f" ({Truncator(pod.waiting_reason).chars(REASON_CHARS)})" if pod.waiting_reason else ""
        has_none = (
            f"The driver pod {pod} is not scheduled to a node{reason}. Until then, the operator upgrades no node."
        )
        return f"pod {pod}", Blocker((has_none,), FIT_IT)
    owners = _queued(cluster).order_by().values("driver_owner")
    those = Node.objects.filter(cluster=cluster, driver_owner__in=owners).with_gpus().order_by("name")
    taking = those.filter(
        Q(is_unschedulable=True)
        | Q(is_ready=False)
        | Q(is_ready=None)
        | ~Q(upgrade_state__in=AT_REST - {UPGRADE_FAILED})
    )
    found: dict[str, list[str]] = {}
    for node in taking.only("name", "is_unschedulable", "is_ready", "upgrade_state"):
        found.setdefault(_takes_a_slot_by(node), []).append(node.name)
    said = [f"{names(found[how])} {either(len(found[how]), *WORDS[how])}" for how in WORDS if how in found]
    causes = tuple(f"A slot is taken: {each}." for each in said)
    return "; ".join(said), Blocker(causes, FREE_THEM) if said else Blocker()


WORDS = {
    "failed": ("failed its upgrade", "failed their upgrades"),
    "in progress": ("is in progress", "are in progress"),
    "not ready": ("is not ready", "are not ready"),
    "cordoned": ("is cordoned", "are cordoned"),
}


def _takes_a_slot_by(node: Node) -> str:
    if node.upgrade_state == UPGRADE_FAILED:
        return "failed"
    if node.upgrade_state not in AT_REST:
        return "in progress"
    return "cordoned" if node.is_ready else "not ready"


def _queued(cluster: Cluster) -> "QuerySet[Node]":
    return Node.objects.filter(cluster=cluster, upgrade_state=UPGRADE_REQUIRED, is_held=False).with_gpus()
