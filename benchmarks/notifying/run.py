"""A run: findings open and end, a real worker of Celery sends, and it is killed meanwhile."""

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import django

from benchmarks.figures import percentile
from benchmarks.notifying.receivers import Machine, Pager, served
from demo import tied
from demo.parts import CELERY
from demo.settings import ROOT

DRAINED_S = 600.0
RESOLVED_AFTER_S = 5.0
TICK_S = 2.0  # as beat
PREFIX = "quarterdeck/default/"  # of the key of a subject in a receiver
RULES = ("node-not-ready", "gpu-xid", "operand-down")


@dataclass(frozen=True)
class Size:
    steady: int  # findings that open and end while no worker is killed
    steady_s: float
    failing: int  # findings of the receiver that fails
    kills: int


FULL, SHORT = Size(steady=300, steady_s=60.0, failing=18, kills=3), Size(20, 8.0, 4, 1)


@dataclass(frozen=True)
class Found:
    events: int
    kills: int
    refused: int  # requests that a receiver did not answer with 2xx at once
    lost: int
    brief: int  # findings that ended before their opening was routed: nobody is notified of them
    doubled_pages: int
    phantoms: int
    out_of_order: int
    p99_s: float
    median_s: float
    drained_s: float


class Worker:
    """A worker of the queue that sends. It can be killed and comes back.

    Beat's tick comes from here: beat itself would also have the clusters evaluated, which would open findings.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_over = Event()
        self.start()
        Thread(target=self._tick, daemon=True).start()

    def start(self) -> None:
        words = ("worker", "-Q", "default", "-P", "threads", "-c", "2", "--without-gossip", "--without-mingle")
        command = [*CELERY, *words, "--loglevel", "WARNING"]
        self.child = tied.start("default", command, log=self.folder / "default", env=dict(os.environ), cwd=ROOT)

    def kill(self) -> None:
        self.child.process.kill()
        self.child.process.wait()

    def stop(self) -> None:
        self.is_over.set()
        self.child.stop()

    def _tick(self) -> None:
        from config.celery import app

        while not self.is_over.wait(TICK_S):
            app.send_task("notifications.tasks.sweep_deliveries", queue="default", expires=TICK_S)


def run(folder: Path, size: Size, *, seed: int) -> Found:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    pager, machine = Pager(), Machine()
    with (
        served(lambda body, _: pager.keep(body), seed=seed) as (pager_url, deeds),
        served(machine.keep, seed=None) as (machine_url, _),
    ):
        events = Events(pager_url, machine_url)
        worker = Worker(folder)
        try:
            events.warm_up(machine)
            written = events.steadily(size)
            events.wait_until_sent()
            began = time.monotonic()
            chaos = events.among_failures(size, worker, random.Random(seed))
            events.wait_until_sent()
            drained_s = time.monotonic() - began
        finally:
            worker.stop()
    took = [machine.came_at[event] - at for event, at in written.items() if event in machine.came_at]
    expected = {f"{PREFIX}finding/{key}" for key in chaos}
    missing = sorted(written.keys() - machine.came_at.keys())
    both = Counter(key for key, _ in missing)
    brief = {key for key, number in both.items() if number == 2 and _ended_before_routing(key)}
    lost = [event for event in missing if event[0] not in brief]
    for key, kind in lost:
        print(f"nobody got {kind} of {key}", file=sys.stderr, flush=True)
    return Found(
        events=len(written) + 2 * len(chaos),
        kills=size.kills,
        refused=sum(number for deed, number in deeds.items() if deed),
        lost=len(lost)
        + sum(not pager.pages[key] for key in expected)
        + sum(not pager.resolved[key] for key in expected),
        brief=len(brief),
        doubled_pages=sum(number - 1 for number in pager.pages.values() if number > 1)
        + sum(len(names) - 1 for names in machine.names.values()),
        phantoms=_said(set(pager.pages) - expected) + sum("phantom" in key for key, _ in machine.names),
        out_of_order=sum(pager.unknown.values()),
        p99_s=percentile(took, 0.99),
        median_s=percentile(took, 0.5),
        drained_s=drained_s,
    )


def _ended_before_routing(key: str) -> bool:
    """Tells this by the rows: an overloaded machine routes later than the seconds after which a finding ends."""
    from fleet.models import DomainEvent

    events = {event.kind: event for event in DomainEvent.objects.filter(key=key.removeprefix(PREFIX))}
    opened, ended = events["finding.opened"], events.get("finding.resolved")
    return ended is not None and opened.routed_at is not None and ended.at <= opened.routed_at


def _wait_while(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + DRAINED_S
    while is_so() and time.monotonic() < until:
        time.sleep(0.5)


def _said(keys: set[str]) -> int:
    """Returns how many there are, and names them for whoever looks for the reason."""
    for key in sorted(keys):
        print(f"nobody wrote {key}", file=sys.stderr, flush=True)
    return len(keys)


class Events:
    """Findings of two clusters: one is routed to the steady receiver, the other to the failing one."""

    def __init__(self, pager_url: str, machine_url: str) -> None:
        from fleet.models import Cluster
        from notifications.models import Channel, Route

        now = datetime.now(UTC)
        row = {"added_by": "bench", "added_at": now, "changed_at": now, "state_since": now, "lease_until": now}
        secret = "env:QUARTERDECK_CHANNEL_BENCH"  # noqa: S105 - its place
        machine = Channel.objects.create(name="machine", kind="webhook", address=machine_url, secret_from=secret, **row)
        pager = Channel.objects.create(name="pager", kind="pagerduty", address=pager_url, secret_from=secret, **row)
        self.steady, self.failing = (
            Cluster.objects.create(name=name, uid=name, kubeconfig="/none", context=name, added_at=now)
            for name in ("steady", "failing")
        )
        Route.objects.create(name="failing", position=1, places=["failing"]).channels.set([pager])
        Route.catch_all().channels.set([machine])

    def warm_up(self, machine: Machine) -> None:
        """Waits until the worker sends: it takes some seconds to start."""
        self._open(self.steady, 0)
        until = time.monotonic() + DRAINED_S
        while not machine.came_at and time.monotonic() < until:
            time.sleep(0.1)

    def steadily(self, size: Size) -> dict[tuple[str, str], float]:
        """Opens and resolves findings at an even pace; returns when each event was committed."""
        written, opened = {}, []
        for number in range(1, size.steady + 1):
            began = time.monotonic()
            finding = self._open(self.steady, number)
            key = f"{PREFIX}finding/{finding.pk}"
            written[key, "finding.opened"] = time.time()
            self._roll_back(self.steady, number)
            opened.append(finding)
            # What ends before anybody was notified of it is no message: it ends some seconds later.
            if len(opened) > RESOLVED_AFTER_S * size.steady / size.steady_s:
                over = opened.pop(0)
                self._resolve(over)
                written[f"{PREFIX}finding/{over.pk}", "finding.resolved"] = time.time()
            time.sleep(max(0.0, size.steady_s / size.steady - (time.monotonic() - began)))
        return written

    def among_failures(self, size: Size, worker: Worker, chance: random.Random) -> list[int]:
        """Opens and resolves findings of the failing receiver, and kills the worker meanwhile; returns their keys."""
        findings = [self._open(self.failing, number) for number in range(size.failing)]
        for _ in range(size.kills):
            time.sleep(chance.uniform(1.0, 8.0))
            worker.kill()
            print("killed a worker", file=sys.stderr, flush=True)
            worker.start()
        self._wait_until_routed()
        for finding in findings:
            self._resolve(finding)
        return [finding.pk for finding in findings]

    def wait_until_sent(self) -> None:
        from notifications.models import Delivery

        self._wait_until_routed()
        _wait_while(Delivery.objects.waiting().exists)

    def _wait_until_routed(self) -> None:
        from fleet.models import DomainEvent

        _wait_while(DomainEvent.objects.waiting().exists)

    def _open(self, cluster, number: int):
        """Opens a finding as an evaluation does: its event waits until it is settled."""
        from django.db import transaction

        from fleet.models import DomainEvent
        from health.evaluation.finding_events import event_of
        from health.models import Finding

        now = datetime.now(UTC)
        with transaction.atomic():
            finding = Finding.objects.create(
                cluster=cluster, subject=f"node {number}", rule=RULES[number % 3], severity="critical", fingerprint="x",
                title="It is wrong.", steps=["Look at it."], since=now - timedelta(minutes=1), confirmed_at=now,
                opened_at=now, updated_at=now, state="open",
            )  # fmt: skip
            DomainEvent.write([event_of(finding, "finding.opened", now=now)])
        waiting = list(DomainEvent.objects.unsettled().filter(cluster=cluster).values_list("pk", flat=True))
        DomainEvent.settle(waiting, cluster_id=cluster.pk)
        return finding

    def _resolve(self, finding) -> None:
        from django.db import transaction

        from health.evaluation.finding_openings import resolve

        with transaction.atomic():
            resolve([finding], now=datetime.now(UTC))

    def _roll_back(self, cluster, number: int) -> None:
        """Writes an event in a transaction that is rolled back."""
        from django.db import transaction

        from fleet.models import DomainEvent

        with transaction.atomic():
            facts = {"finding": number, "severity": "critical"}
            key = f"phantom/{number}"
            event = DomainEvent.of("finding.resolved", key, cluster_id=cluster.pk, at=datetime.now(UTC), facts=facts)
            DomainEvent.write([event])
            transaction.set_rollback(True)
