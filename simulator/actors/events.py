"""Events as controllers record them: the same news about the same object counts up instead of piling up."""

from collections import OrderedDict
from uuid import uuid4

from simulator.actors.cluster import Cluster
from simulator.actors.objects import Obj, name, namespace, uid
from simulator.clock import Clock, stamp
from simulator.kinds import EVENT
from simulator.refusals import Refused

REMEMBERED = 4096


class Recorder:
    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._told: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()

    def normal(self, about: Obj, kind: str, reason: str, message: str, *, source: str) -> None:
        self._record("Normal", about, kind, reason, message, source)

    def warning(self, about: Obj, kind: str, reason: str, message: str, *, source: str) -> None:
        self._record("Warning", about, kind, reason, message, source)

    def _record(self, type_: str, about: Obj, kind: str, reason: str, message: str, source: str) -> None:
        same = (type_, kind, uid(about), reason, message, source)
        told = self._told.pop(same, None)
        if told and self._count_up(about, *told):
            self._told[same] = (told[0], told[1] + 1)
            return
        event = self._new(type_, about, kind, reason, message, source)
        made = self._cluster.create(EVENT, event, event["metadata"]["namespace"])
        self._told[same] = (name(made), 1)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    def _count_up(self, about: Obj, event_name: str, count: int) -> bool:
        patch = {"count": count + 1, "lastTimestamp": stamp(self._clock.now())}
        try:
            self._cluster.patch(EVENT, event_name, patch, namespace(about) or "default")
        except Refused:
            return False  # it has expired; the caller tells it anew
        return True

    def _new(self, type_: str, about: Obj, kind: str, reason: str, message: str, source: str) -> Obj:
        at = stamp(self._clock.now())
        involved = {"kind": kind, "name": name(about), "uid": uid(about), "apiVersion": about.get("apiVersion", "v1")}
        if namespace(about):
            involved["namespace"] = namespace(about)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{name(about)[:230]}.{uuid4().hex[:16]}",
                "namespace": namespace(about) or "default",
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": type_,
            "source": {"component": source},
            "reportingComponent": source,
            "reportingInstance": "",
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
