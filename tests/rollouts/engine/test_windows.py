"""Maintenance windows in whole rounds: nothing goes outside, a closing one calls back (Z3), no rollback waits."""

from datetime import time, timedelta

import pytest

from edges.transition_errors import LostRace
from fleet.models import Node
from rollouts.commands import plan_control
from rollouts.engine.act import waves
from rollouts.engine.decide.acts import FinishRelease, ReleaseWave
from rollouts.lifecycle import TargetState
from rollouts.models import MaintenanceWindow, Verb
from rollouts.queries.plan_view import plan_on_page
from tests.make import NOON, a_pool
from tests.rollouts.engine.ground import CANARY, NODES, Ground

WAVE = ReleaseWave(0, (CANARY,), "1 node: the stage may have 1.")


def a_window(ground: Ground, *, opens_at: time, pool=None, minutes: int = 60, rule: str = "FREQ=DAILY"):
    return MaintenanceWindow.objects.create(
        cluster=ground.cluster, pool=pool, rule=rule, first_day=NOON.date() - timedelta(days=7), opens_at=opens_at,
        zone="UTC", duration_s=minutes * 60, by="root", at=NOON,
    )  # fmt: skip


def closed(ground: Ground, **given) -> None:
    a_window(ground, opens_at=time(2, 0), **given)


def of_its_pool(ground: Ground) -> None:
    pool = a_pool(ground.cluster, "canaries", selector="tier=canary")
    Node.objects.get(cluster=ground.cluster, name=CANARY).pools.add(pool)
    closed(ground, pool=pool)


@pytest.mark.parametrize("shut", [closed, of_its_pool])
def test_a_release_loses_to_a_window_that_is_closed(ground: Ground, shut):
    ground.armed()
    writer = ground.writer()
    shut(ground)

    with pytest.raises(LostRace, match="closed until"):
        waves.release_wave(writer, WAVE)

    assert ground.releases() == []
    assert ground.target().state == TargetState.HELD


@pytest.mark.parametrize("shut", [closed, of_its_pool])
def test_a_recorded_release_is_not_carried_out_once_the_window_is_closed(ground: Ground, shut):
    ground.armed()
    writer = ground.writer()
    waves._intend(writer.plan, ground.stage(), [ground.target()], {}, off={}, reason="", now=ground.clock())
    shut(ground)

    waves.finish_release(writer, FinishRelease(0, (CANARY,)))

    assert ground.releases() == []
    assert CANARY in ground.held()


@pytest.mark.nightly
def test_a_closing_window_calls_back_what_has_not_begun_and_says_when_it_opens(ground: Ground):
    ground.armed()
    ground.rounds(2)
    assert ground.target().state == TargetState.RELEASED
    a_window(ground, opens_at=(ground.clock() - timedelta(minutes=30)).time().replace(second=0), minutes=31)
    ground.round()
    assert ground.target().state == TargetState.RELEASED

    ground.clock.move(minutes=2)
    ground.rounds(2)

    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD
    assert "The maintenance window of cluster north is closed until Sunday 11:30 UTC." in ground.plan.waiting_for
    assert plan_on_page(ground.plan, now=ground.clock()).why in ground.plan.waiting_for


def test_what_had_begun_when_it_closed_goes_on(ground: Ground):
    ground.armed()
    ground.rounds(2)
    ground.set_state(CANARY, "drain-required")
    ground.round()
    closed(ground)

    ground.rounds(2)

    assert ground.target().state == TargetState.CHANGING
    assert CANARY not in ground.held()


def test_in_its_window_a_plan_goes_on_by_itself(ground: Ground):
    ground.armed()
    opens_at = (ground.clock() + timedelta(minutes=10)).time().replace(second=0)
    a_window(ground, opens_at=opens_at)
    ground.rounds(2)
    assert ground.releases() == []

    ground.clock.move(minutes=11)
    ground.rounds(1)

    assert ground.releases() == [CANARY]


def test_windows_of_cluster_and_pool_must_both_be_open(ground: Ground):
    ground.armed()
    pool = a_pool(ground.cluster, "canaries", selector="tier=canary")
    Node.objects.get(cluster=ground.cluster, name=CANARY).pools.add(pool)
    now = ground.clock()
    a_window(ground, opens_at=(now - timedelta(minutes=30)).time().replace(second=0))
    a_window(ground, opens_at=(now + timedelta(minutes=10)).time().replace(second=0), pool=pool)

    ground.round()
    assert "The maintenance window of pool north/canaries is closed until " in ground.plan.waiting_for
    ground.clock.move(minutes=11)
    ground.round()

    assert ground.releases() == [CANARY]


def test_the_version_is_written_outside_of_a_window_too_for_it_releases_nothing(ground: Ground):
    ground.start()
    closed(ground)

    ground.rounds(3)

    assert ground.plan.armed_since is not None


def asks_for_one(ground: Ground, **options) -> None:
    """The canary's gates name the window."""
    ground.plan.stages.filter(index=0).update(gate_options={"window": options, "driver_version": {}}, state="opening")


@pytest.mark.nightly
def test_a_stage_that_asks_for_a_window_waits_for_its_opening_and_asks_nobody_meanwhile(ground: Ground):
    ground.armed()
    asks_for_one(ground)
    opens_at = (ground.clock() + timedelta(hours=20)).time().replace(second=0, microsecond=0)
    a_window(ground, opens_at=opens_at)

    for _ in range(10):
        ground.clock.move(hours=1.5)
        ground.rounds(1)
    waited = ground.plan.waiting_for
    ground.clock.move(hours=5.5)
    ground.rounds(2)

    assert "The maintenance window of cluster north is closed until " in waited
    assert not ground.plan.commands.filter(verb=Verb.PAUSE).exists()
    assert ground.releases() == [CANARY]


def test_a_stage_that_asks_for_a_window_does_not_go_where_somebody_removed_it(ground: Ground):
    ground.armed()
    asks_for_one(ground)

    ground.rounds(3)

    assert ground.releases() == []
    assert f"No maintenance window covers {CANARY}." in ground.plan.waiting_for
    assert plan_on_page(ground.plan, now=ground.clock()).why in ground.plan.waiting_for


def test_no_wave_goes_into_a_window_that_closes_too_soon(ground: Ground):
    ground.armed()
    asks_for_one(ground, must_last_s=1800)
    a_window(ground, opens_at=(ground.clock() - timedelta(minutes=40)).time().replace(second=0))

    ground.rounds(2)

    assert ground.releases() == []
    assert "The maintenance window closes in less than 30 min." in ground.plan.waiting_for


def in_its_window(ground: Ground, *, minutes_left: int = 60, **options) -> MaintenanceWindow:
    """An armed plan whose canary goes in a window only, and the one that is open."""
    ground.armed()
    asks_for_one(ground, **options)
    ground.plan.stages.filter(index=0).update(state="promoting")
    opens_at = (ground.clock() - timedelta(minutes=30)).time().replace(second=0)
    return a_window(ground, opens_at=opens_at, minutes=30 + minutes_left)


def intend(ground: Ground) -> None:
    """The release is recorded, and the worker is killed before it takes the label off: its lease runs out."""
    writer = ground.writer()
    waves._intend(writer.plan, ground.stage(), [ground.target()], {}, off={}, reason="", now=ground.clock())
    ground.clock.move(seconds=16)


def test_a_release_loses_to_a_window_that_was_removed_in_this_moment(ground: Ground):
    """Z3."""
    window = in_its_window(ground)
    writer = ground.writer()
    window.delete()

    with pytest.raises(LostRace, match=f"No maintenance window covers {CANARY}"):
        waves.release_wave(writer, WAVE)

    assert ground.releases() == []
    assert ground.target().state == TargetState.HELD


def test_a_release_loses_to_a_window_that_was_shortened_in_this_moment(ground: Ground):
    window = in_its_window(ground, must_last_s=1800)
    writer = ground.writer()
    MaintenanceWindow.objects.filter(pk=window.pk).update(duration_s=40 * 60)

    with pytest.raises(LostRace, match="At least 30 min must remain when a wave is released"):
        waves.release_wave(writer, WAVE)

    assert ground.releases() == []


def test_a_recorded_release_is_not_carried_out_once_the_window_is_removed(ground: Ground):
    window = in_its_window(ground)
    intend(ground)
    window.delete()

    waves.finish_release(ground.writer(), FinishRelease(0, (CANARY,)))

    assert ground.releases() == []
    assert CANARY in ground.held()


def released(ground: Ground) -> None:
    ground.rounds(2)
    assert CANARY not in ground.held()


@pytest.mark.parametrize("begin", [intend, released])
def test_what_was_released_is_held_again_where_no_window_covers_it_any_more(ground: Ground, begin):
    """Z3. Its stage goes in a window only: without any nothing says until when it may begin."""
    window = in_its_window(ground)
    begin(ground)
    ground.releases()  # read until here
    window.delete()

    ground.rounds(1)
    said = ground.plan.waiting_for
    why = plan_on_page(ground.plan, now=ground.clock()).why
    ground.rounds(2)

    bare = f"No maintenance window covers {CANARY}. Create a maintenance window for the pool or the cluster."
    assert said == f"Holding {CANARY} again. {bare}"
    assert why == said
    assert ground.releases() == []
    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD
    assert f"No maintenance window covers {CANARY}." in ground.plan.waiting_for


@pytest.mark.nightly
def test_what_had_begun_when_the_window_was_removed_goes_on(ground: Ground):
    window = in_its_window(ground)
    ground.rounds(2)
    ground.set_state(CANARY, "drain-required")
    ground.round()
    window.delete()

    ground.rounds(2)

    assert ground.target().state == TargetState.CHANGING
    assert CANARY not in ground.held()


def test_a_release_that_nobody_finished_in_time_waits_for_the_next_window(ground: Ground):
    """Its worker was killed: what is left of the window by then is less than the stage asks for."""
    in_its_window(ground, minutes_left=40, must_last_s=1800)
    intend(ground)
    ground.clock.move(minutes=20)

    ground.rounds(1)
    said = ground.plan.waiting_for
    ground.rounds(1)

    assert said.startswith(f"Holding {CANARY} again. The maintenance window of cluster north is open until ")
    assert said.endswith(" At least 30 min must remain when a wave is released.")
    assert ground.releases() == []
    assert ground.target().state == TargetState.HELD


@pytest.mark.nightly
def test_who_went_in_time_is_not_called_back_before_the_window_closes(ground: Ground):
    in_its_window(ground, minutes_left=40, must_last_s=1800)
    released(ground)
    ground.clock.move(minutes=20)

    ground.rounds(2)

    assert ground.target().state == TargetState.RELEASED


@pytest.mark.parametrize("given", [{"advisory": True}, {}], ids=["advisory", "overridden"])
def test_a_gate_that_does_not_count_calls_nobody_back(ground: Ground, given):
    window = in_its_window(ground, **given)
    if not given:
        until = ground.clock() + timedelta(hours=4)
        ground.stage().overrides.create(gate="window", by="ada", reason="Now.", at=ground.clock(), until=until)
    released(ground)
    window.delete()

    ground.rounds(2)

    assert ground.target().state == TargetState.RELEASED


def test_no_rollback_waits_for_a_window(ground: Ground):
    """Z32."""
    ground.armed()
    ground.rounds(2)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(2)
    closed(ground)
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Bad.", now=ground.clock())
    ground.rounds(2)
    for name in NODES:
        ground.set_state(name, "upgrade-required" if name == CANARY else "upgrade-done")
    ground.writes()

    ground.rounds(6)

    assert CANARY in ground.releases()
