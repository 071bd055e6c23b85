"""The day that `bin/bench findings` plants and judges, at a small size; and that it can fail."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import ClassVar

import pytest

from benchmarks.finding.day import schedule as schedules
from benchmarks.finding.day.asked import DayAsked
from benchmarks.finding.day.kinds import FOUND, HARMLESS, KINDS, QUICK
from benchmarks.finding.day.outages import OUTAGES, Outage
from benchmarks.finding.day.plants import Place
from benchmarks.finding.day.processes import trial_summary
from benchmarks.finding.day.run import Playing, live
from benchmarks.finding.day.schedule import PlannedOutage, Plant, schedule
from benchmarks.finding.day.scraping import Prometheus
from benchmarks.finding.day.stage import Stage
from benchmarks.finding.day.telling import Told
from benchmarks.finding.day.unplanted import UNPLANTED
from demo.settings import ROOT
from health.evaluation import evaluation_round, gpu_evaluation
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.gpus.xid import LastXid
from simulator.faults import IN_A_GPU, OF_AN_EXPORTER
from simulator.faults.gpu_resets import GpuResets

pytestmark = [pytest.mark.django_db, pytest.mark.rounds, pytest.mark.usefixtures("redis")]
SMALL = DayAsked(seed=11, nodes=24, hours=1.0)


def lived(asked: DayAsked) -> Told:
    return trial_summary(asked, live(asked), 0.0)


def test_what_is_planted_is_found_and_nothing_else():
    told = lived(SMALL)

    assert told.planted >= 10
    assert (told.missed, told.false, told.in_vain) == (0, 0, 0), told.troubles
    assert 0 < told.quiet_cpu_ratio < 1


@pytest.mark.parametrize("what", [Outage.API, Outage.WATCHING])
def test_who_is_away_from_the_cluster_is_told_of_and_nothing_else(what: Outage, monkeypatch: pytest.MonkeyPatch):
    away = PlannedOutage(100_000, what, begins_s=900.0, ends_s=1800.0)
    monkeypatch.setattr(schedules, "_outages", lambda *_: [away])

    told = lived(replace(SMALL, nodes=4, hours=0.6, only=away.number))

    assert (told.planted, told.missed, told.false) == (1, 0, 0), told.troubles


def test_nothing_is_told_anew_reason_redis_was_emptied(monkeypatch: pytest.MonkeyPatch):
    emptied = PlannedOutage(100_000, Outage.MEMORY, begins_s=1900.0, ends_s=1960.0)
    monkeypatch.setattr(schedules, "_outages", lambda *_: [emptied])
    kinds = ("ecc-corrected", "pcie-replays", "throttled", "xid")
    monkeypatch.setattr(schedules, "FOUND", tuple(KINDS[kind] for kind in kinds))
    monkeypatch.setattr(schedules, "HARMLESS", (KINDS["warm"],))

    day = live(replace(SMALL, nodes=12))

    on = [one for one in day.schedule.plants if one.found_s and one.found_s < emptied.begins_s < one.ends_s - 600]
    assert {one.kind.name for one in on} == set(kinds)
    assert not trial_summary(SMALL, day, 0.0).troubles


def test_rows_are_written_within_a_period_however_often_something_begins_or_ends():
    """Else a node that comes and goes is not seen to, and the product is blamed for it."""
    looks: list[float] = []
    stage = SimpleNamespace(passed_s=0.0)
    stage.run_until = lambda until_s: setattr(stage, "passed_s", until_s)
    playing = SimpleNamespace(
        stage=stage,
        observing=SimpleNamespace(look=lambda: looks.append(stage.passed_s)),
        _on=[SimpleNamespace(kind=SimpleNamespace(name=QUICK))],
        _outages_at=lambda _: [],
        _watched_s=0.0,
    )

    for until_s in range(4, 61, 4):
        Playing._watch_to(playing, float(until_s))  # type: ignore[arg-type]

    assert looks == [10.0, 20.0, 30.0, 40.0, 50.0]
    assert stage.passed_s == 60.0


def test_gpus_of_a_node_that_begin_anew_together_were_not_reset_one_by_one():
    """Their driver was loaded anew: what is planted there later has to be reset as often as anywhere."""
    stage = Stage(2)
    prometheus, (together, alone) = Prometheus(stage), stage.machines
    stage.run_until(600.0)
    prometheus.scrape(frozenset(stage.machines), period_s=60.0)

    for gpu in range(stage.machines[together].gpus):
        stage.board.put(GpuResets(together, gpu))
    stage.board.put(GpuResets(alone, 1))
    stage.run_until(660.0)
    prometheus.scrape(frozenset(stage.machines), period_s=60.0)

    assert not prometheus.targets[together].anew
    assert prometheus.targets[alone].anew == {"1": 1}


@pytest.mark.parametrize(
    ("away", "forgotten", "seen"), [((), (), 3), ((4,), (), 3), ((4, 5, 6), (), 2), ((), (4,), 2), ((4,), (5,), 2)]
)
def test_resets_that_nobody_can_tell_apart_are_one_and_those_before_what_is_forgotten_none(away, forgotten, seen):
    stage = Stage(1)
    prometheus, (node,) = Prometheus(stage), stage.machines
    stage.run_until(600.0)
    prometheus.scrape(frozenset(stage.machines), period_s=60.0)
    stage.board.put(GpuResets(node, 1, every_s=100.0))  # it shows by the first look, the fourth and the seventh

    for time in range(1, 8):
        stage.run_until(600.0 + 60.0 * time)
        prometheus.is_away, prometheus.is_forgotten = time in away, time in forgotten
        prometheus.scrape(frozenset(stage.machines), period_s=60.0)

    assert prometheus.targets[node].anew["1"] == seen


def test_a_rule_that_is_gone_is_missed(monkeypatch: pytest.MonkeyPatch):
    without = tuple(rule for rule in gpu_evaluation.GPU_RULES if not isinstance(rule, LastXid))
    monkeypatch.setattr(gpu_evaluation, "GPU_RULES", without)
    monkeypatch.setattr(schedules, "FOUND", (KINDS["xid"], KINDS["hot"]))

    told = lived(replace(SMALL, nodes=8))

    missed = {one.says.partition(",")[0] for one in told.troubles if one.figure == "missed"}
    assert missed == {"xid"}
    assert told.missed < told.planted


def test_a_rule_that_always_speaks_is_false(monkeypatch: pytest.MonkeyPatch):
    class Bogus:
        key: ClassVar[str] = "bogus"
        title: ClassVar[str] = "Bogus"
        subject: ClassVar[str] = NODE
        reads: ClassVar[tuple[str, ...]] = (NODES,)
        after: ClassVar[timedelta] = timedelta(0)

        steps: ClassVar[tuple[str, ...]] = ("Nothing.",)

        def evaluate(self, node: NodeFacts) -> Problem | None:
            return Problem(severity=Severity.WARNING, title=f"{node.name} is odd") if node.name.endswith("3") else None

    monkeypatch.setattr(evaluation_round, "RULES", (*evaluation_round.RULES, Bogus()))

    told = lived(replace(SMALL, nodes=16, hours=0.5))

    assert told.false >= 2
    assert all("bogus" in one.says for one in told.troubles if one.figure == "false")


def test_who_holds_gpus_for_hours_and_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedules, "FOUND", (KINDS[IDLE],))
    monkeypatch.setattr(schedules, "HARMLESS", (KINDS["warm"],))

    told = lived(replace(SMALL, nodes=4, hours=4.0))

    assert told.planted >= 1
    assert (told.missed, told.in_vain) == (0, 0), told.troubles


IDLE = "idle-for-hours"
OF_GPUS = (
    *("throttled", "dcgm-health", "hot", "ecc-uncorrected", "row-remap-failed", "row-remap-pending"),
    *("fallen", "fallen-between-scrapes", "resets-again-and-again", "memory-full", "power-at-its-limit"),
)
OF_NODES_AND_CLUSTER = (
    *("series-explosion", "operator-off", "old-runtime", "mig-change-stuck", "inference-takes-turns"),
    *("rejected-for-good", "rejected-for-now"),
)
STUCK_OR_FAILED = (
    *("upgrade-awaits", "upgrade-without-validator", "upgrade-without-image"),
    *("upgrade-unmanaged", "upgrade-keeps-files", "upgrade-budget", "bad-driver", "upgrade-held"),
)
AFTER_AND_BESIDE = (
    *("bad-driver-invalid", "bad-driver-loses-gpus", "bad-driver-breaks-pods"),
    *("versions-disagree", "cordon-removed"),
)


# As many kinds in a day as have room beside one another: a look costs nearly the same for one as for ten.
@pytest.mark.parametrize(
    ("kinds", "nodes"),
    [
        pytest.param(OF_GPUS, 24, id="of-gpus"),
        pytest.param(OF_NODES_AND_CLUSTER, 14, id="of-nodes-and-cluster"),
        pytest.param(STUCK_OR_FAILED, 16, id="stuck-or-failed-upgrades"),
        pytest.param(AFTER_AND_BESIDE, 12, id="after-and-beside-upgrades"),
        pytest.param(("upgrade-queue-still",), 6, id="queue"),
        pytest.param(("upgrade-without-pod",), 6, id="pod-never-made"),
    ],
)
def test_each_of_these_is_told_once_in_a_small_day_with_its_cause(
    kinds: tuple[str, ...], nodes: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(schedules, "FOUND", tuple(KINDS[kind] for kind in kinds))
    monkeypatch.setattr(schedules, "HARMLESS", (KINDS["warm"],))

    day = live(replace(SMALL, nodes=nodes))

    assert {plant.kind.name for plant in day.schedule.plants if plant.is_trouble} == set(kinds)
    assert not trial_summary(SMALL, day, 0.0).troubles


def test_one_plant_alone_is_the_same_one_again():
    places = {f"gpu-{number}": Place(f"gpu-{number}", 0, 8) for number in range(40)}
    whole, again = (schedule(Random(5), places, 6.0, period_s=60.0) for _ in range(2))
    wanted = whole.plants[3]

    (alone,) = again.only(wanted.number).plants

    assert (alone.subject, alone.planting, alone.begins_s) == (wanted.subject, wanted.planting, wanted.begins_s)


@pytest.mark.parametrize(("kind", "away_min", "waited_min"), [(IDLE, 6, 60), (IDLE, 7, 0), ("hot", 7, 60)])
def test_of_an_hour_that_is_not_heard_whole_nobody_knows_what_was_in_it(kind: str, away_min: int, waited_min: int):
    place = Place("gpu-1", 0, 8)
    plant = Plant(1, KINDS[kind], place, KINDS[kind].make(Random(1), place), 0.0, 10_000.0)

    for can_look in (*[True] * 60, *[False] * away_min):
        plant.wait(60.0, can_look=can_look, is_forgotten=False)

    assert plant.waited_s == waited_min * 60


@pytest.mark.parametrize(("kind", "waited_min"), [(IDLE, 0), ("hot", 1)])
def test_nor_of_one_whose_sums_were_forgotten(kind: str, waited_min: int):
    place = Place("gpu-1", 0, 8)
    plant = Plant(1, KINDS[kind], place, KINDS[kind].make(Random(1), place), 0.0, 10_000.0)

    plant.wait(60.0, can_look=True, is_forgotten=True)

    assert plant.waited_s == waited_min * 60


def test_every_fault_of_gpus_and_exporters_is_planted():
    written = {key for kind in KINDS.values() for key in kind.make.__code__.co_names}
    planted = {fault.key for fault in (*IN_A_GPU, *OF_AN_EXPORTER) if fault.__name__ in written}
    told = {"xid", "nvlink_errors", "silent_exporter"}  # made by functions of their own

    assert {fault.key for fault in (*IN_A_GPU, *OF_AN_EXPORTER)} - planted - told == set()
    assert not {kind.name for kind in FOUND} & {kind.name for kind in HARMLESS}


def test_every_rule_is_planted_or_it_is_said_why_not():
    lines = (ROOT / "docs" / "findings.md").read_text().splitlines()
    told = {line.split("`")[1] for line in lines if line.startswith("| `")}
    planted = {rule for kind in FOUND for rule in kind.rules}
    planted |= {kind.rule for kind in OUTAGES.values() if kind.rule}

    assert len(told) > 30
    assert told - planted == set(UNPLANTED)
    assert all(UNPLANTED.values())
