"""`status` of the operator's own objects (gpu-operator internal/conditions)."""

from datetime import datetime

from simulator.actors.objects import Obj, condition
from simulator.clock import stamp


def ready(obj: Obj, message: str, now: datetime) -> Obj:
    return {
        "state": "ready",
        "conditions": [
            _condition(obj, "Ready", "True", "Reconciled", message, now),
            _condition(obj, "Error", "False", "Ready", "", now),
        ],
    }


def not_ready(obj: Obj, reason: str, message: str, now: datetime) -> Obj:
    return {
        "state": "notReady",
        "conditions": [
            _condition(obj, "Ready", "False", "Error", "", now),
            _condition(obj, "Error", "True", reason, message, now),
        ],
    }


def disabled() -> Obj:
    return {"state": "disabled"}


def _condition(obj: Obj, type_: str, value: str, reason: str, message: str, now: datetime) -> Obj:
    was = condition(obj, type_)
    since = was["lastTransitionTime"] if was.get("status") == value else stamp(now)
    return {"type": type_, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}
