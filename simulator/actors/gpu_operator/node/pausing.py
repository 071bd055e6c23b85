"""Operands stop and come back through their node labels (k8s-driver-manager, maybeSetPaused)."""

from simulator.actors.apps import GATES
from simulator.actors.gpu_operator.keys import PAUSED
from simulator.actors.objects import Obj, labels


def paused(value: str) -> str:
    if value in ("", "false") or PAUSED in value:
        return value
    return PAUSED if value == "true" else f"{value}_{PAUSED}"


def resumed(value: str) -> str:
    if value == PAUSED:
        return "true"
    return value.replace(f"_{PAUSED}", "")


def to_pause(node: Obj) -> dict[str, str]:
    return _changed(node, {key: paused(labels(node).get(key, "")) for key in GATES.values()})


def to_resume(node: Obj) -> dict[str, str]:
    return _changed(node, {key: resumed(labels(node).get(key, "")) for key in GATES.values()})


def _changed(node: Obj, wanted: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if value and labels(node).get(key) != value}
