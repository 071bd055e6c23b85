"""Real workers of a real stack, killed and stopped by the kernel while plans move, and people who say stop meanwhile.

Half of those that are killed, and all that are stopped, have a plan's turn at that moment: its row says so. The log is
the API server's own file. What the operator does to a node is not in it, so nodes are looked at beside.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from benchmarks.crashing.nodes_seen import IDLE, STATE
from benchmarks.crashing.oracle import at_the_end
from benchmarks.crashing.run import KILLED, Found
from demo.cluster import SKIP_LABEL, Cluster
from demo.kept import DATABASE
from demo.parts import NEWER, Fleet, worker
from demo.promotion import Promotion
from demo.request_log import is_release, node_of
from demo.stack import PASSWORD, Stack
from demo.visitor import RefusedError, Visitor, wait_until

FLEET = Fleet("mixed", nodes=8, mix="h100=2,dra=2,a100=4", speed=60.0)  # two whose GPUs only a DRA driver offers
OLDER = "580.95.05"  # what the fleet runs
DRIVERS = ("h100", "a100")
WORKERS = ("rollouts", "rollouts-2")
SLEEPS_S = 18.0  # a little longer than a worker's turn
NAPS = 6
LOOK_EVERY_S = 0.25
LIES_IN_WAIT_S = 3.0  # for somebody's turn
GIVEN_UP_AFTER_S, STUCK_AFTER_S = 180.0, 360.0
SETTLED_S = 300.0
FINAL = {"promoted", "rolled-back", "aborted"}
OURS = "quarterdeck/"
DONE = object()


@dataclass
class Spell:
    """A time in which nothing may be let go: from the answer to the word that began it until what ended it was sent."""

    verb: str
    began_at: datetime
    ended_at: datetime | None = None

    def covers(self, at: datetime) -> bool:
        return self.began_at < at and (self.ended_at is None or at < self.ended_at)


@dataclass
class Watched:
    """One plan, as it went."""

    promotion: Promotion
    driver: str
    nodes: frozenset[str]  # its targets' names
    spells: list[Spell] = field(default_factory=list)
    begun: dict[str, list[datetime]] = field(default_factory=dict)  # node → when it was seen at work
    most_at_once: int = 0

    @property
    def open_spell(self) -> Spell | None:
        return next((spell for spell in self.spells if spell.ended_at is None), None)


class Killing:
    def __init__(self, stack: Stack, seed: int, count: int, found: Found) -> None:
        self.stack, self.found = stack, found
        self.count, self.wanted_naps = count, min(NAPS, count)
        self.chance = random.Random(f"{seed}:kill")
        self.kills = self.kills_in_turn = self.naps = 0
        self.stopped: dict[str, float] = {}  # worker → when it wakes
        self.next_at = 0.0
        self.rows = sqlite3.connect(f"file:{stack.folder / DATABASE}?mode=rw", uri=True, isolation_level=None)
        self.operator, self.other, self.approver = (
            Visitor(stack.url, role).sign_in(PASSWORD) for role in ("operator", "admin", "approver")
        )
        self.cluster = Cluster(stack.kubeconfig, stack.fleet.context)

    @property
    def goes_on(self) -> bool:
        return self.kills < self.count or self.naps < self.wanted_naps

    def plans(self, driver: str) -> Iterator[None]:
        """One plan of this driver after another, a look at a time, until enough has happened to workers."""
        while self.goes_on:
            yield from self._one_plan(driver)

    def _one_plan(self, driver: str) -> Iterator[None]:
        watched = self._start(driver)
        began = time.monotonic()
        while (shown := watched.promotion.now())["state"] not in FINAL:
            self._look(watched, shown)
            waited = time.monotonic() - began
            if waited > STUCK_AFTER_S:
                self._found("stuck_plans", f"{shown['state']}: {shown['waiting_for']}")
                return
            if (waited > GIVEN_UP_AFTER_S or not self.goes_on) and shown["state"] != "aborting":
                self._tell(watched, self.operator, "aborts")
            self._people(watched, shown)
            yield
        while self.stopped:  # whoever wakes may still have something in hand
            yield
        self._judge(watched, shown)

    # What happens to it

    def _start(self, driver: str) -> Watched:
        rows = wait_until(lambda: self._rows(driver), what=f"{driver} as it is", timeout_s=SETTLED_S)
        to = OLDER if self.cluster.wanted_version(driver) == NEWER else NEWER
        promotion = Promotion(self.operator, self.approver, driver_object=rows[0]["id"], to_version=to)
        promotion.draft(canaries=1, at_once=1)
        wait_until(lambda: not promotion.blockers(), what=lambda: f"{promotion.blockers()}", timeout_s=SETTLED_S)
        promotion.start()
        names = frozenset(target["node"] for stage in promotion.stages() for target in stage["targets"])
        return Watched(promotion, driver, names)

    def _rows(self, driver: str) -> list[dict[str, Any]]:
        version = self.cluster.wanted_version(driver)
        rows = self.operator.all("/api/v1/driver-objects")
        return [row for row in rows if (row["name"], row["version"]) == (driver, version)]

    def _look(self, watched: Watched, shown: dict[str, Any]) -> None:
        now = datetime.now(UTC)
        at_work = [node for node in self._nodes(watched) if _state(node) not in IDLE]
        for node in at_work:
            watched.begun.setdefault(node["metadata"]["name"], []).append(now)
        watched.most_at_once = max(watched.most_at_once, len(at_work))
        spell = watched.open_spell
        if spell and spell.verb == "halts" and shown["state"] in {"holding", "promoting"}:
            self._found("lost_halts", f"It was halted at {spell.began_at} and is {shown['state']}.")

    def _nodes(self, watched: Watched) -> list[dict[str, Any]]:
        return [node for node in self.cluster.nodes() if node["metadata"]["name"] in watched.nodes]

    def strike(self) -> None:
        """Kill a worker, or stop one for longer than its turn."""
        if time.monotonic() < self.next_at or self.stopped:
            return
        self.next_at = time.monotonic() + self.chance.uniform(0.2, 2.5)
        if self.naps < self.wanted_naps and self.kills * (self.wanted_naps + 1) >= self.count * (self.naps + 1):
            self._stop_one()
        elif self.kills < self.count:
            self._kill_one()

    def _kill_one(self) -> None:
        in_turn = self._wait_for_turn() if self.chance.random() < 0.5 else None
        name = in_turn or self.chance.choice(WORKERS)
        self.stack.kill(name, signal.SIGKILL)
        self.stack.restart(name)
        self.kills += 1
        self.kills_in_turn += in_turn is not None
        print(f"{self.kills} workers killed, {self.naps} stopped", file=sys.stderr, flush=True)

    def _stop_one(self) -> None:
        name = self._wait_for_turn()
        if name is None:
            return
        self.stack.kill(name, signal.SIGSTOP)
        if not self._has_turn(name) or self._is_locked():  # all others would wait for a database that lets one write
            self.stack.kill(name, signal.SIGCONT)
            self.next_at = 0
            return
        self.stopped[name] = time.monotonic() + SLEEPS_S
        self.naps += 1

    def _wait_for_turn(self) -> str | None:
        """The worker that has begun a round. None: nobody did for a while."""
        until = time.monotonic() + LIES_IN_WAIT_S
        while time.monotonic() < until:
            for name in WORKERS:
                if self._has_turn(name):
                    time.sleep(self.chance.uniform(0, 0.1))  # somewhere in it
                    return name
            time.sleep(0.005)
        return None

    def _has_turn(self, name: str) -> bool:
        owners = self.rows.execute("SELECT lease_owner FROM rollouts_plan WHERE lease_until > ?", [_as_kept()])
        return any(str(owner).split(":")[1] == str(self.stack.children[name].pid) for (owner,) in owners)

    def _is_locked(self) -> bool:
        self.rows.execute("PRAGMA busy_timeout = 200")
        try:
            self.rows.execute("BEGIN IMMEDIATE")
            self.rows.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        return False

    def wake(self, *, at_once: bool = False) -> None:
        for name in [name for name, at in self.stopped.items() if at_once or at < time.monotonic()]:
            self.stack.kill(name, signal.SIGCONT)
            del self.stopped[name]

    def _people(self, watched: Watched, shown: dict[str, Any]) -> None:
        watched.promotion.approve_what_waits(shown)
        spell = watched.open_spell
        if shown["state"] == "halted" or spell:
            if self.chance.random() < 0.15:
                back = shown["state"] == "halted" and self.chance.random() < 0.3
                self._tell(watched, self.other, "rollbacks" if back else "resumptions")
        elif shown["state"] == "promoting" and self.chance.random() < 0.03:
            self._tell(watched, self.operator, self.chance.choice(["halts", "pauses"]))

    def _tell(self, watched: Watched, who: Visitor, verb: str) -> None:
        sent_at = datetime.now(UTC)
        try:
            who.post(f"{watched.promotion.path}/{verb}", {"reason": "The bench wants it."})
        except RefusedError:
            return
        if verb in {"halts", "pauses"}:
            watched.spells.append(Spell(verb, datetime.now(UTC)))
            return
        for spell in watched.spells:
            spell.ended_at = spell.ended_at or sent_at

    # Judged

    def _judge(self, watched: Watched, shown: dict[str, Any]) -> None:
        let_go: dict[str, list[datetime]] = {}
        for asked in self._log(watched):
            at, name = datetime.fromisoformat(asked["at"]), node_of(asked)
            if any(spell.covers(at) for spell in watched.spells):
                self._found("releases_after_halt", f"{name} at {at}: {watched.spells}")
            let_go.setdefault(name, []).append(at)
        for name, times in let_go.items():
            for before, after in pairwise(times):
                if any(before < at < after for at in watched.begun.get(name, ())):
                    self._found("double_releases", f"{name} at {before} and at {after}")
        if watched.most_at_once > 1:
            self._found("over_budget", f"{watched.most_at_once} at work at once, where 1 may be")
        self._judge_end(watched, shown)

    def _log(self, watched: Watched) -> Iterator[dict[str, Any]]:
        """Releases on the way to the new version: from its first write until the old one is put back."""
        is_forward, to = False, watched.promotion.to_version
        began = datetime.fromisoformat(watched.promotion.now()["created_at"])
        for line in (self.stack.folder / "requests.jsonl").read_text().splitlines():
            asked = json.loads(line)
            if not asked["user_agent"].startswith(OURS) or asked["code"] >= 300 or asked["method"] != "PATCH":
                continue
            if datetime.fromisoformat(asked["at"]) < began:
                continue
            if asked["path"].endswith(f"/nvidiadrivers/{watched.driver}"):
                is_forward = any(step.get("value") == to for step in asked["body"] if step["op"] != "test")
            elif is_forward and is_release(asked) and node_of(asked) in watched.nodes:
                yield asked

    def _judge_end(self, watched: Watched, shown: dict[str, Any]) -> None:
        promotion = watched.promotion

        def left() -> list[Any]:
            return list(
                at_the_end(
                    self._nodes(watched), state=shown["state"], mark=f"plan-{promotion.id}",
                    version=self.cluster.wanted_version(watched.driver), left_out=set(), cordoned=set(),
                )
            )  # fmt: skip

        until = time.monotonic() + 30  # what the operator has in hand it goes on with
        while (found := left()) and time.monotonic() < until:
            time.sleep(1)
        for one in found:
            self._found(one.figure, one.says)
        if shown["state"] == "aborted":  # what is left held is a person's to free, before the next plan
            for node in self._nodes(watched):
                ours = {"quarterdeck.io/held-by": None, "quarterdeck.io/held-since": None}
                metadata = {"labels": {SKIP_LABEL: None}, "annotations": ours}
                self.cluster.patch_node(node["metadata"]["name"], {"metadata": metadata})
        leases = httpx.get(
            f"{self.stack.simulator_url}/apis/coordination.k8s.io/v1/namespaces/quarterdeck/leases", timeout=15
        ).json()["items"]
        if len(leases) != 1:
            self._found("leaked_leases", f"{len(leases)} Leases are in the namespace quarterdeck")

    def _found(self, figure: str, says: str) -> None:
        self.found.add(KILLED, figure, says)


def _state(node: dict[str, Any]) -> str:
    return str(node["metadata"]["labels"].get(STATE, ""))


def _as_kept() -> str:
    """Now, as the database writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def kill_workers(seed: int, count: int, folder: Path, found: Found) -> tuple[int, int, int]:
    """As many as asked for, over as many plans as that takes, of two drivers at a time.

    How many were killed, how many of them in a turn, and how many were stopped in theirs.
    """
    with Stack(folder, FLEET) as stack:
        stack.start_beside(WORKERS[1], worker("rollouts"))
        killing = Killing(stack, seed, count, found)
        plans = [killing.plans(driver) for driver in DRIVERS]
        while plans:
            plans = [each for each in plans if next(each, DONE) is not DONE]
            killing.strike()
            killing.wake()
            time.sleep(LOOK_EVERY_S)
        killing.wake(at_once=True)
        return killing.kills, killing.kills_in_turn, killing.naps
