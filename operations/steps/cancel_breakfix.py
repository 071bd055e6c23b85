"""Cancel of NVSentinel's break-fix: an uncordon, which NVSentinel takes as a person's word to end its session (R2).

It ends the cordon, the drain and the repair, and the same event does not cordon again. docs.nvidia.com/nvsentinel,
components/cancelling-breakfix; NVIDIA/NVSentinel, fault-quarantine/pkg/reconciler (handleManualUncordon) and
pkg/informer (checkStaleUncordonState); read 2026-11-30. Newer versions leave the taints of the session on the node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from edges.digests import digest
from fleet.models import Node
from fleet.observer.mirror.rows.node import kept_annotations
from gpu.cordons import (
    SENTINEL_CORDONED,
    SENTINEL_EVENT,
    SENTINEL_PRE_EXISTING,
    SENTINEL_TAINTED,
    SENTINEL_VALIDATES,
    event_title,
    is_in_breakfix,
    sentinel_events,
    whose_other_cordon,
)
from gpu.external_owners import SENTINEL
from gpu.labels import CORDONED_BY, SENTINEL_STATE
from kube import client
from kube.structs import NodeSeen
from operations.external_owner import external_owner_on
from operations.models import MaintenanceRequest, Quarantine
from operations.restraints import release_vetoes
from operations.steps.base import HELD, NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.steps.uncordon import driver_change, release_patch
from wording.lists import names

EVENTS = "sentinel_events"  # option: digest of the events that the asker saw, by node UID; people cannot set it
RECORDED_WITHIN = timedelta(minutes=5)  # after the uncordon, until NVSentinel removed its annotation; it watches nodes


def vetoes_of_quarantined(node_uids: Collection[str]) -> dict[str, str]:
    """Returns why quarantined nodes may not be released: the cancel ends Quarterdeck's quarantine, too."""
    return release_vetoes(list(Quarantine.objects.of_nodes(node_uids).values_list("node_uid", flat=True)))


class CancelBreakfixStep(NodeStep):
    key: ClassVar[str] = "cancel_breakfix"
    effect: ClassVar[str] = "NVSentinel's cordon, drain and repair end. New pods start there."
    needs_seen: ClassVar[bool] = True
    vetoes = (vetoes_of_quarantined,)
    waits_for_others: ClassVar[bool] = True
    acts_on: ClassVar[str] = SENTINEL
    progress: ClassVar[str] = "For a cancel of NVSentinel's break-fix: `uncordoned_at`."

    def why_not_offered(self, nodes: Sequence[Node]) -> dict[str, str]:
        held = {node.uid for node in nodes if is_in_breakfix(node.annotations, is_unschedulable=node.is_unschedulable)}
        found = {node.uid: "NVSentinel does not quarantine the node." for node in nodes if node.uid not in held}
        own = MaintenanceRequest.objects.in_force().filter(node_uid__in=held) if held else ()
        return found | {request.node_uid: _is_own(request) for request in own}

    def effect_on(self, nodes: Sequence[Node]) -> str:
        by_node = {node.uid: sentinel_events(node.annotations) for node in nodes}
        return f"{self.effect} Events: {sum(map(len, by_node.values()))} (digest {digest(by_node)[:12]})."

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        return dict(options) | {EVENTS: {node.uid: digest(sentinel_events(node.annotations)) for node in nodes}}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        yield "The same event does not cordon the node again. NVSentinel does not take the cancel back."
        why_not = self.why_not_offered(nodes)
        for node in nodes:
            if node.uid in why_not:
                yield f"{node.name}: the cancel fails. {why_not[node.uid]}"
                continue
            titles = list(dict.fromkeys(map(event_title, sentinel_events(node.annotations))))
            yield f"{node.name}: NVSentinel cordoned it for {names(titles)}."
            if node.labels.get(SENTINEL_STATE) == "remediating":
                yield f"{node.name}: a reboot or reset that NVSentinel requested already may still come."

    def run(self, work: NodeWork) -> StepResult:
        if since := work.node.progress.get("uncordoned_at"):
            return _followed(work, datetime.fromisoformat(since), work.node.progress.get("taints", ""))
        row = Quarantine.objects.of_nodes([work.node.node_uid]).select_related("operation").first()
        taints = why = busy = ""

        def uncordoned(observed: NodeSeen) -> client.Patch:
            nonlocal taints, why, busy
            taints, why = observed.annotations.get(SENTINEL_TAINTED, ""), _why_not(observed, work, row)
            busy = driver_change(observed) if observed.is_unschedulable else ""
            if why or busy:
                return []
            return release_patch(row, observed) if row else client.node_patch(observed, is_unschedulable=False)

        work.change_node(uncordoned)
        if why:
            return failed(why)
        if busy:
            return wait(busy, again_after=timedelta(seconds=15))
        if row is not None:
            row.end(now=work.clock())
        now = work.clock().isoformat()
        return wait("Uncordoned. NVSentinel records the cancel next.", uncordoned_at=now, taints=taints)


def _why_not(observed: NodeSeen, work: NodeWork, row: Quarantine | None) -> str:
    """Returns why an uncordon would not cancel the break-fix, or end more than that. Blank: it does, or did."""
    if not observed.is_unschedulable:
        is_uncordoned = SENTINEL_CORDONED in observed.annotations or SENTINEL_EVENT not in observed.annotations
        return "" if is_uncordoned else "NVSentinel did not cordon the node: an uncordon cancels nothing."
    if SENTINEL_VALIDATES in observed.annotations:
        return f"NVSentinel validates the node ({SENTINEL_VALIDATES}): its break-fix is over. Wait for the result."
    if not is_in_breakfix(observed.annotations, is_unschedulable=observed.is_unschedulable):
        return f"NVSentinel does not quarantine the node. It is cordoned{_whose(observed)}."
    if SENTINEL_EVENT not in kept_annotations(observed):
        return (
            f"NVSentinel's events are too long to compare. Read them: kubectl uncordon {work.node.node_name} cancels."
        )
    if digest(sentinel_events(observed.annotations)) != work.operation.options[EVENTS].get(work.node.node_uid):
        return "NVSentinel's events changed since you saw them. Read them, then cancel again."
    if request := MaintenanceRequest.objects.of_node(work.node.node_uid):
        return _is_own(request)
    if (owner := external_owner_on(observed)) and owner.name != SENTINEL:
        return f"{HELD}: {owner.sentence}"
    own = row.operation.mark if row else None
    if observed.annotations.get(CORDONED_BY) != own:
        return f"Cordoned before NVSentinel's event{_whose(observed)}. Quarterdeck does not remove that cordon."
    if own is None and SENTINEL_PRE_EXISTING in observed.annotations:
        return "Somebody cordoned the node before NVSentinel's event. Quarterdeck does not remove that cordon."
    return ""


def _is_own(request: MaintenanceRequest) -> str:
    return f"Operation {request.operation_id} asked NVSentinel for the maintenance. End maintenance releases the node."


def _whose(observed: NodeSeen) -> str:
    return whose_other_cordon(observed.annotations, observed.cordoned_by, observed.labels)


def _followed(work: NodeWork, since: datetime, taints: str) -> StepResult:
    observed = work.read_node()
    told: dict[str, Any] = {"uncordoned_at": since.isoformat()}
    if observed.is_unschedulable:
        return failed(f"Uncordoned, and cordoned again{_whose(observed)}.", **told)
    if SENTINEL_EVENT in observed.annotations:
        if work.clock() - since < RECORDED_WITHIN:
            return wait("Uncordoned. NVSentinel has not recorded the cancel yet.", taints=taints, **told)
        why = f"NVSentinel has not recorded the cancel for {int(RECORDED_WITHIN.total_seconds() // 60)} min."
        return failed(f"Uncordoned. {why} Check its fault-quarantine: at its start it reads the uncordon.", **told)
    left = [taint.key for taint in observed.spec.taints or () if f'"{taint.key}"' in taints]
    stay = f" Its taints stay: kubectl taint node {work.node.node_name} {' '.join(f'{key}-' for key in left)}"
    return done_result(f"NVSentinel ended its break-fix.{stay if left else ' New pods may start here.'}", **told)
