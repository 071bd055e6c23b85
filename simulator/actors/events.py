"""Events as controllers record them: the same news about the same object counts up instead of piling up."""

from collections import OrderedDict
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import uuid4

from simulator.actors.cluster import Cluster
from simulator.actors.loop import Loop
from simulator.actors.objects import Obj, name, namespace, uid
from simulator.clock import stamp
from simulator.kinds import EVENT
from simulator.refusals import Refused

REMEMBERED = 4096
TTL_S = 3600  # kube-apiserver --event-ttl
SWEEP_S = 60


class Recorder:
    """What it told is forgotten an hour after it was last said."""

    def __init__(self, cluster: Cluster, loop: Loop) -> None:
        self._cluster = cluster
        self._loop = loop
        self._clock = loop.clock
        self._living: OrderedDict[tuple[str, str], datetime] = OrderedDict()
        self._is_sweeping = False
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
        self._live_on(namespace(made), name(made))
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    def _count_up(self, about: Obj, event_name: str, count: int) -> bool:
        patch = {"count": count + 1, "lastTimestamp": stamp(self._clock.now())}
        try:
            self._cluster.patch(EVENT, event_name, patch, namespace(about) or "default")
        except Refused:
            return False  # it has expired; the caller tells it anew
        self._live_on(namespace(about) or "default", event_name)
        return True

    def _live_on(self, where: str, event_name: str) -> None:
        self._living[where, event_name] = self._clock.now()
        self._living.move_to_end((where, event_name))
        if not self._is_sweeping:
            self._is_sweeping = True
            self._loop.later(SWEEP_S, self.sweep)

    def sweep(self) -> None:
        """The oldest are first, so a look costs only what has expired."""
        oldest = self._clock.now() - timedelta(seconds=self._clock.wall_s(TTL_S))
        while self._living and next(iter(self._living.values())) < oldest:
            (where, event_name), _ = self._living.popitem(last=False)
            with suppress(Refused):  # somebody else has deleted it
                self._cluster.delete(EVENT, event_name, where)
        self._is_sweeping = bool(self._living)
        if self._living:
            self._loop.later(SWEEP_S, self.sweep)

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
