"""The requirements of a pod without a node, and the conditions that its scheduler reported.

Stored only while the pod waits, so that rows of running pods stay small. A part that cannot be decoded is listed in
`unread`, so that a reader does not take it for absent.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from fleet.observer.mirror.rows.node_terms import TERMS_AT_MOST, TOLERATIONS_AT_MOST, are_whole, term_of, toleration_of
from fleet.observer.mirror.rows.text import INTEGER_MOST, KEY_AT_MOST, fitted, fitted_instant, fitted_labels
from kube.structs import PodSeen
from kube.structs.meta import UNREAD, Condition, Struct
from kube.structs.node_affinity import Affinity, PodAffinity, SchedulingGate, Toleration, TopologySpread

T = TypeVar("T")
USUAL_SCHEDULER = "default-scheduler"  # corev1.DefaultSchedulerName
NEVER_PREEMPTS = "Never"
AT_MOST = 64  # parts of a list
CONDITIONS_AT_MOST = 16
AFFINITY_AT_MOST = 128 * 1024  # bytes of JSON; a larger one would fill the row
MESSAGE_AT_MOST = 8_000  # the scheduler's sentence has a part for each reason and is not truncated


class HostPort(Struct, frozen=True):
    host_port: int | None = 0


SELECTOR = msgspec.json.Decoder(dict[str, str] | None)
AFFINITY = msgspec.json.Decoder(Affinity | None)
TOLERATIONS = msgspec.json.Decoder(list[Toleration] | None)
SPREAD = msgspec.json.Decoder(list[TopologySpread] | None)
GATES = msgspec.json.Decoder(list[SchedulingGate] | None)
PORTS = msgspec.json.Decoder(list[HostPort] | None)


def placement_of(seen: PodSeen) -> dict[str, Any]:
    """Returns the non-empty parts, at least the scheduler; empty for a pod that has a node or does not wait."""
    if seen.spec.node_name or seen.status.phase != "Pending":
        return {}
    spec, unread = seen.spec, list[str]()
    affinity = _decode_part(AFFINITY, spec.affinity, "affinity", unread) or Affinity()
    node = affinity.node_affinity
    terms = (node.required.node_selector_terms if node and node.required else None) or []
    tolerations = _decode_part(TOLERATIONS, spec.tolerations, "tolerations", unread) or []
    unread += [] if are_whole(terms) else ["affinity"]
    unread += ["tolerations"] if len(tolerations) > TOLERATIONS_AT_MOST else []
    found: dict[str, Any] = {
        "scheduler": fitted(spec.scheduler_name, 253) or USUAL_SCHEDULER,
        "priority": max(-INTEGER_MOST, min(spec.priority or 0, INTEGER_MOST)),
        "preemption_policy": NEVER_PREEMPTS if spec.preemption_policy == NEVER_PREEMPTS else "",
        "nominated_node": fitted(seen.status.nominated_node_name, 253),
        "gates": _fitted_names(gate.name for gate in _decode_part(GATES, spec.scheduling_gates, "gates", unread) or ()),
        "node_selector": fitted_labels(_decode_part(SELECTOR, spec.node_selector, "node_selector", unread) or {}),
        "node_affinity": [term_of(term) for term in terms[:TERMS_AT_MOST]],
        "tolerations": [toleration_of(each) for each in tolerations[:TOLERATIONS_AT_MOST]],
        "spread": _fitted_names(
            _hard_spread(_decode_part(SPREAD, spec.topology_spread_constraints, "spread", unread) or ())
        ),
        "pod_affinity": _fitted_names(_topologies(affinity.pod_affinity)),
        "pod_anti_affinity": _fitted_names(_topologies(affinity.pod_anti_affinity)),
        "host_ports": sorted(set(_host_ports(seen, unread)))[:AT_MOST],
        "volume_claims": _fitted_names(_volume_claims(seen)),
        "conditions": [_condition(each) for each in (seen.status.conditions or ())[:CONDITIONS_AT_MOST]],
        "unread": sorted(set(unread)),
    }
    if len(msgspec.json.encode(found["node_affinity"])) > AFFINITY_AT_MOST:
        found |= {"node_affinity": [], "unread": sorted({*unread, "affinity"})}
    return {name: value for name, value in found.items() if value}


def _decode_part(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw, name: str, unread: list[str]) -> T | None:
    if raw is UNREAD:
        return None
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError:
        unread.append(name)
        return None


def _fitted_names(names: Iterable[str]) -> list[str]:
    return [fitted(name, KEY_AT_MOST) for name in list(dict.fromkeys(names))[:AT_MOST] if name]


def _hard_spread(constraints: Iterable[TopologySpread]) -> Iterator[str]:
    """Yields the topology keys of constraints that keep a pod from nodes. DoNotSchedule is the default."""
    return (each.topology_key for each in constraints if each.when_unsatisfiable != "ScheduleAnyway")


def _topologies(affinity: PodAffinity | None) -> Iterator[str]:
    return (term.topology_key for term in (affinity.required if affinity else None) or ())


def _host_ports(seen: PodSeen, unread: list[str]) -> Iterator[int]:
    for container in (*(seen.spec.containers or ()), *(seen.spec.init_containers or ())):
        for port in _decode_part(PORTS, container.ports, "host_ports", unread) or ():
            if port.host_port and 0 < port.host_port < 65536:
                yield port.host_port


def _volume_claims(seen: PodSeen) -> Iterator[str]:
    for volume in seen.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{seen.name}-{volume.name}"


def _condition(seen: Condition) -> dict[str, str]:
    at = fitted_instant(seen.last_transition_time)
    found: dict[str, Any] = {
        "type": fitted(seen.type, KEY_AT_MOST),
        "status": fitted(seen.status, 16),
        "reason": fitted(seen.reason, 256),
        "message": fitted(seen.message, MESSAGE_AT_MOST),
        "at": at.isoformat() if at else "",
    }
    return {name: value for name, value in found.items() if value}
