"""A day of a fleet in virtual time: the simulator's cast, the product's own rows, rounds and looks, and no socket."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median
from unittest import mock

from benchmarks.finding.day.asked import DayAsked
from benchmarks.finding.day.kinds import QUICK
from benchmarks.finding.day.observing import Observing
from benchmarks.finding.day.outages import Outage
from benchmarks.finding.day.plants import MINUTE, Place
from benchmarks.finding.day.schedule import PlannedOutage, Plant, Schedule, schedule
from benchmarks.finding.day.scraping import Prometheus
from benchmarks.finding.day.stage import POOLS, Stage, class_of
from benchmarks.finding.day.verdict import Verdict
from config.garbage import freeze_collector
from fleet.messages import announce, listeners, wake
from fleet.models import Cluster, Pool
from health.evaluation.evaluation_round import evaluate_cluster
from health.models import TelemetrySource
from health.models.telemetry_source import period_after
from health.sources import snapshots, source_round
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Client
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.fleets.plan import DRIVER_NEXT
from simulator.quantities import requests

PERIOD_S = 60.0
WATCHED_S = 10.0
LIVELY_S = 10 * MINUTE  # for so long after its end a node is asked each time
AWAY = "It cannot be reached: [Errno 111] Connection refused"
GPU = "nvidia.com/gpu"


@dataclass
class WorkerCost:
    """Seconds of CPU of each round and look, without what makes up the answers, and without a socket."""

    rounds: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)

    @property
    def quiet_cpu_ratio(self) -> float:
        """Of one core, by the median: in most of a day's minutes nothing changes. A round here adds up an hour's
        sums, which one of four does. After each round there is a look.
        """
        took_s = median(self.rounds)
        return (took_s + median(self.looks)) / period_after(timedelta(seconds=took_s)).total_seconds()


class Playing:
    """One cluster, from the first look on."""

    def __init__(self, asked: DayAsked) -> None:
        self.stage = Stage(asked.nodes)
        draw = random.Random(asked.seed)
        whole = schedule(draw, places_of(self.stage), asked.hours, period_s=PERIOD_S)
        self.schedule: Schedule = whole if asked.only is None else whole.only(asked.only)
        now = self.stage.clock.now()
        self.cluster = Cluster.objects.create(name=f"day-{asked.nodes}", uid=f"day-{asked.nodes}", added_at=now)
        for name, labels, workload_class in POOLS:
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            Pool.objects.create(cluster=self.cluster, name=name, selector=selector, workload_class=workload_class)
        self.observing = Observing(self.stage.store, self.cluster, self.stage.clock)
        TelemetrySource.objects.create(
            cluster=self.cluster, url="http://prometheus.invalid:9090", added_by="ada", added_at=now, changed_at=now,
            lease_until=now, next_look_at=now, state_since=now,
        )  # fmt: skip
        self.prometheus = Prometheus(self.stage)
        self.verdict = Verdict(self.schedule, PERIOD_S)
        self.cost = WorkerCost()
        self._answering_s = 0.0
        self._watched_s = 0.0  # when rows were last written within a period
        self._waiting = sorted(self.schedule.plants, key=lambda plant: plant.begins_s)
        self._on: list[Plant] = []
        self._lively: dict[str, float] = {}
        self._hold_for_upgrades()

    def play(self, hours: float) -> None:
        for period in range(1, round(hours * 3600 / PERIOD_S) + 1):
            self._pass_to(period * PERIOD_S)
            self._look(period * PERIOD_S)

    def _look(self, now_s: float) -> None:
        on = self._outages_at(now_s)
        away = {one.what for one in on}
        is_api = not away & {Outage.API, Outage.WATCHING}
        self.prometheus.ahead_s = sum(one.amount for one in on)
        self.prometheus.is_away = bool(away & {Outage.PROMETHEUS, Outage.MOMENT})
        is_forgotten = any(one.what is Outage.MEMORY and now_s - PERIOD_S < one.begins_s for one in on)
        self.prometheus.is_forgotten = is_forgotten
        ended = {node for node, until_s in self._lively.items() if now_s < until_s}
        self.prometheus.scrape(frozenset(ended | {plant.place.node for plant in self._on}), period_s=PERIOD_S)
        if is_api:
            self.observing.look()
        elif Outage.API in away:
            self.observing.miss()
        if is_forgotten:
            snapshots.redis_client().flushdb()
        clock = self.stage.clock
        began, answering_s = time.process_time(), self._answering_s
        source_round.ask(self.cluster.pk, clock=clock)
        asked = time.process_time()
        evaluate_cluster(self.cluster, now=clock.now())
        self.cost.looks.append(time.process_time() - asked)
        self.cost.rounds.append(asked - began - (self._answering_s - answering_s))
        self.verdict.look(self.stage, self.prometheus, now_s, is_telemetry=not self.prometheus.is_away, is_api=is_api)

    def answer(self, expression: str) -> bytes:
        if self.prometheus.is_away:
            raise Unusable(AWAY)
        began = time.process_time()
        answer = self.prometheus.answer(expression)
        self._answering_s += time.process_time() - began
        return answer

    # What happens

    def _pass_to(self, until_s: float) -> None:
        while True:
            begins = self._waiting[0].begins_s if self._waiting else until_s + 1
            ends = min((plant.ends_s for plant in self._on), default=until_s + 1)
            if min(begins, ends) > until_s:
                break
            self._watch_to(min(begins, ends))
            if begins <= ends:
                self._begin(self._waiting.pop(0))
            else:
                self._end(next(plant for plant in self._on if plant.ends_s == ends))
        self._watch_to(until_s)

    def _watch_to(self, until_s: float) -> None:
        """Where a node comes and goes within a period, rows are written meanwhile, too, whatever else begins."""
        while any(plant.kind.name == QUICK for plant in self._on):
            at_s = max(self._watched_s + WATCHED_S, self.stage.passed_s)
            if at_s >= until_s:
                break
            self.stage.run_until(at_s)
            self._watched_s = at_s
            if not any(one.what in (Outage.API, Outage.WATCHING) for one in self._outages_at(self.stage.passed_s)):
                self.observing.look()
        self.stage.run_until(until_s)

    def _outages_at(self, now_s: float) -> list[PlannedOutage]:
        return [one for one in self.schedule.outages if one.begins_s <= now_s < one.ends_s]

    def _begin(self, plant: Plant) -> None:
        self._on.append(plant)
        values = self.prometheus.targets[plant.place.node].values
        plant.before = {series: value for (series, gpu), value in values.items() if gpu == str(plant.place.gpu)}
        for fault in plant.planting.faults:
            self.stage.board.put(fault)
        for deed in plant.planting.deeds:
            deed.begin(self.stage)

    def _end(self, plant: Plant) -> None:
        """Somebody has mended it: what the exporter remembers of it goes with the exporter."""
        self._on.remove(plant)
        for fault in plant.planting.faults:
            self.stage.board.end(fault.key, {field: getattr(fault, field) for field in fault.__dataclass_fields__})
        for deed in plant.planting.deeds:
            deed.end(self.stage)
        if plant.is_trouble and plant.kind.is_of_gpu:
            self.stage.restart_exporter(plant.place.node)
        self._lively[plant.place.node] = plant.ends_s + LIVELY_S

    def _hold_for_upgrades(self) -> None:
        """Every node is held, as a plan does it, and the version written: who is let go is changed by the operator."""
        if not any(plant.kind.is_upgrade for plant in self.schedule.plants):
            return
        for node in self.stage.machines:
            self.stage.label(node, keys.SKIP, "true")
        for owner in sorted({machine.owner for machine in self.stage.machines.values()}):
            self.stage.store.patch(NVIDIA_DRIVER, owner, {"spec": {"version": DRIVER_NEXT}}, how="merge")


def places_of(stage: Stage) -> dict[str, Place]:
    """Each node, and whose its GPUs are."""
    found = {}
    by_owner: dict[str, list[str]] = {}
    for called, machine in stage.machines.items():
        by_owner.setdefault(machine.owner, []).append(called)
    for called, machine in stage.machines.items():
        held = [requests(pod)[GPU] for pod in stage.pods_on(called)]
        others = by_owner[machine.owner]
        neighbour = others[others.index(called) - 1]
        found[called] = Place(
            called, 0, machine.gpus, is_of_one_job=any(has == machine.gpus for has in held), has_pods=any(held),
            has_room=sum(held) < machine.gpus, owner=machine.owner, neighbour=neighbour if neighbour != called else "",
            workload_class=class_of(machine),
        )  # fmt: skip
    return found


def live(asked: DayAsked) -> Playing:
    """In a process that has Django, an empty database and a Redis."""
    with in_this_process():
        playing = Playing(asked)
        freeze_collector()  # as a worker does, which does not hold what the simulator holds either
        with (
            mock.patch.object(Client, "ask", lambda _client, _path, form: playing.answer(form["query"])),
            mock.patch.object(Client, "__init__", _without_a_socket),
        ):
            playing.play(asked.hours)
        snapshots.forget(playing.cluster.pk)
    return playing


def _without_a_socket(client: Client, *_: object) -> None:
    client._http = mock.Mock()  # noqa: SLF001


@contextmanager
def in_this_process() -> Iterator[None]:
    """Nothing leaves it: no message, no announcement."""
    with ExitStack() as stack:
        for where, called in ((announce, "send"), (wake, "queue")):
            stack.enter_context(mock.patch.object(where, called))
        for called in ("STATE_CHANGED", "CHANGED", "CRASHED"):
            stack.enter_context(mock.patch.object(listeners, called, []))
        yield
