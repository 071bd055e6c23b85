"""Every operand of one node, from its rows: wanted here? scheduled? ready? which version? and why not."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.models import Node, Operand, Pod
from gpu import operands
from gpu.labels import DEPLOY_DRIVER
from gpu.operands import DEVICE_PLUGIN, DRIVER, KMM, TESTS, VALIDATOR, WAITS_FOR, title_of
from gpu.versions import agree, version_of
from health.stack import causes
from health.stack.causes import Cause, Weight
from health.stack.causes.entries import entry
from health.stack.causes.placement import is_selected
from health.stack.desired import Desired, desired_of, driver_object_of
from health.stack.rows import StackRows
from health.stack.signs import pod_signs, signs_of

ORDER = list(operands.TITLES)
PLUGIN_ELSEWHERE = entry("no_plugin_selects")
NOT_OF_THE_POLICY = operands.OF_OTHERS | {operands.NFD}  # a chart of its own has its settings
WITHOUT_DAEMON_SETS = frozenset(
    {"no_driver_selects", "no_driver_made", "no_driver_managed"}
)  # text for an operand that is not observed


@dataclass(frozen=True)
class OperandOnNode:
    operand: str
    title: str
    daemon_set: str  # namespace/name; blank: none selects this node
    is_wanted: bool
    is_ready: bool
    is_current: bool | None  # whether the pod is of the newest template; None: not known, or no pod
    ready_since: datetime | None
    not_ready_since: datetime | None
    restarts: int | None  # None: no pod
    pod: str  # namespace/name; blank: none
    image: str  # of the pod; without one, of the template that it would be made from
    version: str  # of the pod's image; blank: no pod
    desired: Desired
    cause: Cause | None  # why it is not as it should be; None: it is
    log: tuple[str, ...] = ()  # the last lines of the container that crashed
    log_refused: str = ""  # why the logs could not be read
    status: str = ""  # of the pod, as kubectl spells it; blank: no pod
    is_silent: bool = False  # the node's kubelet does not report: all values are the last reported ones

    @property
    def reason(self) -> str:
        return self.cause.sentence if self.cause else ""

    @property
    def disagreement(self) -> str:
        """Returns where the pod differs from the wanted version; empty if equal or not comparable."""
        if not self.version or agree(self.version, self.desired.version) is not False:
            return ""
        return f"The pod has version {self.version}, but {self.desired.by} requests {self.desired.version}."


def operands_on(node: Node, rows: StackRows) -> list[OperandOnNode]:
    """Every operand that has a pod here, should have one, or has none because somebody wants it so."""
    pairs = list(_daemon_sets_with_pods(node, rows))
    ready = _ready(node, pairs)
    found = [_operand_on_node(node, rows, daemon_set, pod, ready) for daemon_set, pod in pairs]
    found += _driver_without_daemon_set(node, rows, pairs)
    found += _plugin_without_daemon_set(node, rows, found)
    shown = [row for row in found if row.pod or row.cause]
    return sorted(shown, key=lambda row: (ORDER.index(row.operand) if row.operand in ORDER else 99, row.daemon_set))


def _daemon_sets_with_pods(node: Node, rows: StackRows) -> Iterator[tuple[Operand | None, Pod | None]]:
    """DaemonSets with their pod here. Of the driver there is one for each system or kernel: only those of this node.

    A test of the validator's that once failed is no news where the validator is content. One that is done is none, nor
    is a pod that has loaded its kernel module.
    """
    here = {pod.uid: pod for pod in rows.pods if pod.node_name == node.name}
    by_owner = {pod.owner_uid: pod for pod in here.values()}
    for daemon_set in rows.operands:
        pod = by_owner.get(daemon_set.uid)
        if pod is not None:
            here.pop(pod.uid, None)
        if pod is not None or daemon_set.operand != DRIVER or is_selected(signs_of(node, DRIVER, daemon_set)):
            yield daemon_set, pod
    is_validated = any(pod.operand == VALIDATOR and pod.is_ready for pod in rows.pods if pod.node_name == node.name)
    for pod in here.values():
        is_done = pod.phase == "Succeeded" and (pod.operand in TESTS or pod.operand == KMM)
        if not is_done and not (is_validated and pod.operand in TESTS):
            yield None, pod


def _ready(node: Node, pairs: Iterable[tuple[Operand | None, Pod | None]]) -> dict[str, bool]:
    """Returns by operand whether what others wait for is there. Unwanted operands are not waited for."""
    ready: dict[str, bool] = {}
    for daemon_set, pod in pairs:
        operand = pod.operand if pod else daemon_set.operand if daemon_set else ""
        is_ready = pod is not None and pod.is_ready and pod.deleted_at is None
        if pod is not None or (daemon_set and _is_wanted(node, daemon_set)):
            ready[operand] = ready.get(operand, False) or is_ready
    return ready


def _is_wanted(node: Node, daemon_set: Operand) -> bool:
    cause = causes.cause_of(signs_of(node, daemon_set.operand, daemon_set))
    return cause is not None and cause.weight is not Weight.CHOSEN


def _operand_on_node(
    node: Node, rows: StackRows, daemon_set: Operand | None, pod: Pod | None, ready: Mapping[str, bool]
) -> OperandOnNode:
    operand = pod.operand if pod else daemon_set.operand if daemon_set else ""
    signs = replace(
        signs_of(node, operand, daemon_set),
        sees_pods=rows.sees_pods,
        has_operator=rows.has_operator and operand not in NOT_OF_THE_POLICY,
        is_driver_off=rows.is_driver_off,
        slice_devices=rows.devices_of(operand),
        sees_slices=rows.sees_slices,
    )
    log = rows.log_of(pod)
    if daemon_set is not None:
        lost = next((each for each in rows.pods if not each.node_name and each.owner_uid == daemon_set.uid), None)
        signs = replace(
            signs,
            daemon_set_events=rows.events_by_uid.get(daemon_set.uid, []),
            unscheduled=lost.waiting_reason if lost else "",
        )
    if pod is not None:
        signs = replace(
            signs,
            pod=pod_signs(pod, log, rows),
            not_ready=[title_of(other) for other in _awaited(operand, pod) if not ready.get(other, True)],
            is_held_by_validator=_is_held(operand, pod) and not ready.get(VALIDATOR, True),
        )
    cause = causes.cause_of(signs)
    newest = rows.newest.get(daemon_set.uid, "") if daemon_set else ""
    return OperandOnNode(
        operand=operand,
        title=title_of(operand),
        daemon_set=f"{daemon_set.namespace}/{daemon_set.name}" if daemon_set else "",
        is_wanted=pod is not None or (cause is not None and cause.weight is not Weight.CHOSEN),
        is_ready=pod is not None and pod.is_ready and pod.deleted_at is None,
        is_current=pod.revision_hash == newest if pod and newest and pod.revision_hash else None,
        ready_since=pod.ready_since if pod and pod.is_ready else None,
        not_ready_since=(pod.ready_since or pod.created_at) if pod and not pod.is_ready else None,
        restarts=pod.restarts if pod else None,
        pod=str(pod) if pod else "",
        image=pod.image if pod else daemon_set.image if daemon_set else "",
        version=version_of(pod.image) if pod else "",
        desired=desired_of(operand, node, rows.driver_objects, daemon_set),
        cause=cause,
        log=tuple(log.lines.splitlines()) if log else (),
        log_refused=log.refused if log else "",
        status=pod.status if pod else "",
        is_silent=pod is not None and node.is_ready is None,
    )


def _awaited(operand: str, pod: Pod) -> tuple[str, ...]:
    """The validator starts before the device plugin, which waits for its step before: it waits for it only at last."""
    awaited = WAITS_FOR.get(operand, ())
    if operand == VALIDATOR and pod.stuck_container != "plugin-validation":
        return tuple(other for other in awaited if other != DEVICE_PLUGIN)
    return awaited


def _is_held(operand: str, pod: Pod) -> bool:
    return operand != VALIDATOR and pod.stuck_container == "toolkit-validation"


def _driver_without_daemon_set(
    node: Node, rows: StackRows, pairs: Iterable[tuple[Operand | None, Pod | None]]
) -> list[OperandOnNode]:
    """No DaemonSet of the driver is for this node: perhaps rightly so."""
    if any((pod.operand if pod else each.operand if each else "") == DRIVER for each, pod in pairs):
        return []
    others = any(each.operand == DRIVER for each in rows.operands)
    asks = driver_object_of(node, rows.driver_objects)
    cause = causes.cause_of(
        replace(
            signs_of(node, DRIVER, None),
            selector={DEPLOY_DRIVER: "true"},
            has_operator=rows.has_operator,
            others_have_one=others or any(each.kind == "NVIDIADriver" for each in rows.driver_objects),
            driver_asked_by=str(asks) if asks else "",
            is_driver_off=rows.is_driver_off,
        )
    )
    if cause is None or (not rows.sees_daemon_sets and cause.key in WITHOUT_DAEMON_SETS):
        return []
    return [_without_pod(DRIVER, cause, node, rows)]


def _plugin_without_daemon_set(node: Node, rows: StackRows, found: Iterable[OperandOnNode]) -> list[OperandOnNode]:
    """No DaemonSet of the device plugin has anything to say of this node: nobody offers its GPUs."""
    others = any(each.operand == DEVICE_PLUGIN for each in rows.operands)
    if not others or any(row.operand == DEVICE_PLUGIN and (row.pod or row.cause) for row in found):
        return []
    cause = PLUGIN_ELSEWHERE(replace(signs_of(node, DEVICE_PLUGIN, None), others_have_one=True))
    return [_without_pod(DEVICE_PLUGIN, cause, node, rows)] if cause else []


def _without_pod(operand: str, cause: Cause, node: Node, rows: StackRows) -> OperandOnNode:
    """A row of an operand that has neither a pod here nor a DaemonSet for this node."""
    return OperandOnNode(
        operand=operand,
        title=title_of(operand),
        daemon_set="",
        is_wanted=cause.weight is not Weight.CHOSEN,
        is_ready=False,
        is_current=None,
        ready_since=None,
        not_ready_since=None,
        restarts=None,
        pod="",
        image="",
        version="",
        desired=desired_of(operand, node, rows.driver_objects, None),
        cause=cause,
    )
