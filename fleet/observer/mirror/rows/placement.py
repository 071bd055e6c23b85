"""The requirements of a pod without a node, and the conditions that its scheduler reported.

Stored only while the pod waits, so that rows of running pods stay small: of these only what keeps other pods away is
stored. A part that cannot be decoded is listed in `unread`, so that a reader does not take it for absent.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from fleet.observer.mirror.rows.nested_json import fitted_json
from fleet.observer.mirror.rows.node_terms import TERMS_AT_MOST, TOLERATIONS_AT_MOST, are_whole, term_of, toleration_of
from fleet.observer.mirror.rows.text import INTEGER_MOST, KEY_AT_MOST, fitted, fitted_instant, fitted_labels
from fleet.states.pod import ENDED
from kube.structs import PodSeen
from kube.structs.meta import UNREAD, Condition, Struct
from kube.structs.node_affinity import Affinity, GroupOfPod, PodAffinity, SchedulingGate, Toleration, TopologySpread

T = TypeVar("T")
USUAL_SCHEDULER = "default-scheduler"  # corev1.DefaultSchedulerName
NEVER_PREEMPTS = "Never"
AT_MOST = 64  # parts of a list
CONDITIONS_AT_MOST = 16
AFFINITY_AT_MOST = 128 * 1024  # bytes of JSON; a larger one would fill the row
MESSAGE_AT_MOST = 8_000  # the scheduler's sentence has a part for each reason and is not truncated


EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - of the kubelet
SIDECAR = "Always"  # restartPolicy of an init container that runs beside the others


class HostPort(Struct, frozen=True):
    host_port: int | None = 0
    protocol: str | None = ""
    host_ip: str | None = msgspec.field(default="", name="hostIP")


SELECTOR = msgspec.json.Decoder(dict[str, str] | None)
AFFINITY = msgspec.json.Decoder(Affinity | None)
TOLERATIONS = msgspec.json.Decoder(list[Toleration] | None)
SPREAD = msgspec.json.Decoder(list[TopologySpread] | None)
GATES = msgspec.json.Decoder(list[SchedulingGate] | None)
GROUP = msgspec.json.Decoder(GroupOfPod | None)
PORTS = msgspec.json.Decoder(list[HostPort] | None)


def placement_of(seen: PodSeen) -> dict[str, Any]:
    """Returns the non-empty parts, at least the scheduler; empty for a pod that has a node or does not wait."""
    if seen.spec.node_name or seen.status.phase != "Pending":
        return {}
    spec = seen.spec
    unread: list[str] = []
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
        "pod_group": _pod_group(seen, unread),
        "node_selector": fitted_labels(_decode_part(SELECTOR, spec.node_selector, "node_selector", unread) or {}),
        "node_affinity": [term_of(term) for term in terms[:TERMS_AT_MOST]],
        "tolerations": [toleration_of(each) for each in tolerations[:TOLERATIONS_AT_MOST]],
        "spread": _hard_spread(_decode_part(SPREAD, spec.topology_spread_constraints, "spread", unread) or [], unread),
        "pod_affinity": _pod_terms(affinity.pod_affinity, unread),
        "pod_anti_affinity": _pod_terms(affinity.pod_anti_affinity, unread),
        "host_ports": sorted(set(_host_ports(seen, unread)))[:AT_MOST],
        "volume_claims": _fitted_names(_volume_claims(seen)),
        "conditions": [_condition(each) for each in (seen.status.conditions or ())[:CONDITIONS_AT_MOST]],
        "unread": sorted(set(unread)),
    }
    if len(msgspec.json.encode(found["node_affinity"])) > AFFINITY_AT_MOST:
        found |= {"node_affinity": [], "unread": sorted({*unread, "affinity"})}
    return {name: value for name, value in found.items() if value}


def _pod_group(seen: PodSeen, unread: list[str]) -> str:
    """Returns the name of the gang of kube-scheduler. Blank: none."""
    for raw in (seen.spec.scheduling_group, seen.spec.workload_ref):
        if group := _decode_part(GROUP, raw, "pod_group", unread):
            return fitted(group.pod_group_name or group.pod_group, 253)
    return ""


def exclusions_of(seen: PodSeen) -> dict[str, Any] | None:
    """Returns host ports, anti-affinity and claims, by which a pod on a node keeps others away. None: it has none."""
    if not seen.spec.node_name or seen.status.phase in ENDED:
        return None
    unread: list[str] = []
    has_terms = b'"podAntiAffinity"' in bytes(seen.spec.affinity)  # most pods have other affinities, not decoded here
    affinity = _decode_part(AFFINITY, seen.spec.affinity, "affinity", unread) if has_terms else None
    found: dict[str, Any] = {
        "anti_affinity": _pod_terms(affinity.pod_anti_affinity, unread) if affinity else [],
        "host_ports": sorted(set(_host_ports(seen, unread)))[:AT_MOST],
        "volume_claims": _fitted_names(_volume_claims(seen)),
        "unread": sorted(set(unread)),
    }
    return {name: value for name, value in found.items() if value} or None


def _decode_part(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw, name: str, unread: list[str]) -> T | None:
    if raw is UNREAD:
        return None
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError:
        unread.append(name)
        return None


def _fitted_names(names: Iterator[str]) -> list[str]:
    return [fitted(name, KEY_AT_MOST) for name in list(dict.fromkeys(names))[:AT_MOST] if name]


def _hard_spread(constraints: Sequence[TopologySpread], unread: list[str]) -> list[dict[str, Any]]:
    """Returns the constraints that keep a pod from nodes. DoNotSchedule is the default."""
    hard = [each for each in constraints if each.when_unsatisfiable != "ScheduleAnyway"]
    unread += ["spread"] if len(hard) > AT_MOST else []
    return [_non_empty(_spread(each)) for each in hard[:AT_MOST]]


def _spread(constraint: TopologySpread) -> dict[str, Any]:
    return {
        "key": fitted(constraint.topology_key, KEY_AT_MOST),
        "max_skew": constraint.max_skew,
        "selector": fitted_json(constraint.label_selector),
        "min_domains": constraint.min_domains,
        "ignores_affinity": constraint.node_affinity_policy == "Ignore",
        "honors_taints": constraint.node_taints_policy == "Honor",
        "match_label_keys": _fitted_names(iter(constraint.match_label_keys or ())),
    }


def _pod_terms(affinity: PodAffinity | None, unread: list[str]) -> list[dict[str, Any]]:
    terms = (affinity.required if affinity else None) or []
    unread += ["pod_affinity"] if len(terms) > AT_MOST else []
    return [
        _non_empty(
            {
                "key": fitted(term.topology_key, KEY_AT_MOST),
                "selector": fitted_json(term.label_selector),
                "namespaces": _fitted_names(iter(term.namespaces or ())),
                "namespace_selector": fitted_json(term.namespace_selector),
            }
        )
        for term in terms[:AT_MOST]
    ]


def _non_empty(part: dict[str, Any]) -> dict[str, Any]:
    """Returns the part without what is absent. An empty selector is kept: it selects everything."""
    return {name: value for name, value in part.items() if value or value == {}}


def _host_ports(seen: PodSeen, unread: list[str]) -> Iterator[str]:
    """Yields `8080/TCP`, or with an address of the node `10.0.0.1:8080/TCP`."""
    sidecars = [each for each in seen.spec.init_containers or () if each.restart_policy == SIDECAR]
    every = [*(seen.spec.containers or ()), *sidecars]
    for ports in [each.ports for each in every if b'"hostPort"' in bytes(each.ports)]:
        for port in _decode_part(PORTS, ports, "host_ports", unread) or ():
            if port.host_port and 0 < port.host_port < 65536:
                address = f"{port.host_ip}:" if port.host_ip and port.host_ip not in EVERY_ADDRESS else ""
                yield fitted(f"{address}{port.host_port}/{port.protocol or 'TCP'}", KEY_AT_MOST)


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
