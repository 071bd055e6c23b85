"""The settings by which containers of a GPU pod get GPUs, and the last failed end of one of them.

For the checklist of the pod. Usual settings are left out, so that most rows stay empty.
"""

from typing import Any

import msgspec

from fleet.observer.mirror.rows.environment import device_lists_of
from fleet.observer.mirror.rows.gpu_requests import requests_of_container
from fleet.observer.mirror.rows.pod_status import failed_ends
from fleet.observer.mirror.rows.stuck_containers import words_of
from fleet.observer.mirror.rows.text import fitted, fitted_instant
from kube.quantity import whole_quantity
from kube.structs import PodSeen
from kube.structs.meta import UNREAD, Struct
from kube.structs.pod import Container

AT_MOST = 32  # containers in a list
MOST_OF_NAME, MOST_OF_REASON = 253, 63


class SecurityContext(Struct, frozen=True):
    privileged: bool | None = None


SECURITY = msgspec.json.Decoder(SecurityContext | None)


def container_settings(seen: PodSeen) -> dict[str, Any]:
    """Returns the parts that are not usual."""
    containers = (seen.spec.containers or [])[:AT_MOST]
    found: dict[str, Any] = {
        "without_gpus": _without_gpus([*containers, *(seen.spec.init_containers or [])[:AT_MOST]]),
        "privileged": [_name(each) for each in containers if _is_privileged(each)],
        "visible": [
            {"container": _name(each), "variable": variable, "devices": devices}
            for each in containers
            for variable, devices in device_lists_of(each).items()
        ],
        "ended": _last_failed_end(seen),
        "had_ended_well": _had_ended_well(seen),
    }
    return {name: value for name, value in found.items() if value}


def _without_gpus(containers: list[Container]) -> list[str]:
    """Returns the containers that request no GPU, if others of the pod do."""
    names = [_name(each) for each in containers if not requests_of_container(each)]
    return names if len(names) < len(containers) else []


def _is_privileged(container: Container) -> bool:
    if container.security_context is UNREAD:
        return False
    try:
        found = SECURITY.decode(container.security_context)
    except msgspec.MsgspecError:
        return False
    return found is not None and bool(found.privileged)


def _last_failed_end(seen: PodSeen) -> dict[str, Any]:
    ends = [(at, name, ended) for name, ended in failed_ends(seen) if (at := fitted_instant(ended.finished_at))]
    if not ends:
        return {}
    at, name, ended = max(ends, key=lambda each: each[0])
    every = (*(seen.spec.containers or ()), *(seen.spec.init_containers or ()))
    container = next((each for each in every if each.name == name), Container())
    limits = (container.resources.limits if container.resources else None) or {}
    found = {
        "container": fitted(name, MOST_OF_NAME),
        "reason": fitted(ended.reason, MOST_OF_REASON),
        "exit_code": ended.exit_code,
        "at": at.isoformat(),
        "memory_limit_bytes": whole_quantity(limits.get("memory")) or 0,
        "has_no_memory_limit": container.name == name and "memory" not in limits and not seen.spec.resources,
        "words": words_of(ended),
    }
    return {key: value for key, value in found.items() if value}


def _had_ended_well(seen: PodSeen) -> bool:
    """Returns whether all containers of a failed pod ended with 0: a kubelet that restarts may refuse such a pod."""
    statuses = seen.status.container_statuses or ()
    ends = [status.state.terminated if status.state else None for status in statuses]
    return seen.status.phase == "Failed" and bool(ends) and all(end is not None and end.exit_code == 0 for end in ends)


def _name(container: Container) -> str:
    return fitted(container.name, MOST_OF_NAME)
