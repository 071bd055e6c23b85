"""Rows of Events on GPU nodes, stored pods and their owners, and of rejected pods of other owners.

A cluster sends many others, which cost only a check.
"""

import re
from typing import Any

from fleet.observer.mirror.rows.text import fitted, fitted_count, fitted_instant
from fleet.observer.mirror.watch_scope import WatchScope
from gpu.rejections import DELETED_FOR_TAINT, ENDED_BY_PROBE, FAILED_CREATE, POD_REJECTED, TROUBLE
from kube.structs.events import EventSeen, EventSeries, EventSource, Involved

# all objects of these kinds; `watch_scope` selects those with GPUs
WATCHED = frozenset({"", "Pod", "Node", "Job", "ReplicaSet", "StatefulSet", "DaemonSet"})
POD = re.compile(r"\bpods?\b", re.IGNORECASE)


def event_row(seen: EventSeen, scope: WatchScope) -> dict[str, Any] | None:
    """Returns the row. None: the event concerns nothing stored."""
    about = seen.about
    if not (is_kept(about, scope) or is_rejection(seen)):
        return None
    series, source = seen.series or EventSeries(), seen.source or EventSource()
    made_at = seen.metadata.creation_timestamp
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "about_kind": fitted(about.kind, 63),
        "about_namespace": fitted(about.namespace, 63),
        "about_name": fitted(about.name, 253),
        "about_uid": fitted(about.uid, 64),
        "is_warning": is_warning(seen),
        "reason": fitted(seen.reason, 128),
        "message": fitted(seen.message, 1000),
        "source": fitted(" on ".join(part for part in (_reporter(seen), source.host) if part), 253),
        "count": fitted_count(series.count or seen.count or 1),
        "first_at": fitted_instant(seen.first_timestamp or seen.event_time or made_at),
        "last_at": fitted_instant(series.last_observed_time or seen.last_timestamp or seen.event_time or made_at),
    }


def is_warning(seen: EventSeen) -> bool:
    """Returns whether it reports trouble. Detectors write types of their own: NVSentinel the name of its check.

    An unknown reason counts as its type says; some trouble has the type Normal.
    """
    said = seen.message or ""
    is_known = seen.reason in TROUBLE or any(pattern.match(said) for pattern in (ENDED_BY_PROBE, DELETED_FOR_TAINT))
    return seen.type not in ("Normal", "", None) or is_known


def is_kept(about: Involved, scope: WatchScope) -> bool:
    if about.kind == "Node":
        return about.name in scope.gpu_nodes
    return about.namespace in scope.operator_namespaces or scope.is_mirrored(about.uid or "")


def is_rejection(seen: EventSeen) -> bool:
    """Tells whether a pod of an owner of an unwatched kind was rejected."""
    if seen.type != "Warning" or seen.about.kind in WATCHED:
        return False
    return seen.reason in POD_REJECTED or (seen.reason == FAILED_CREATE and POD.search(seen.message or "") is not None)


def _reporter(seen: EventSeen) -> str:
    return (seen.source.component if seen.source else "") or seen.reporting_component or ""
