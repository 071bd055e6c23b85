"""A plan of many nodes is told to end in the middle of holding them, and says how far it is with that."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import pytest

from rollouts.commands.plan_control import abort
from rollouts.commands.remaining_time import label_progress
from rollouts.engine.act import holds
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.queries.plan_view import plan_on_page
from tests.rollouts.engine.ground import NODES, Clock, Ground

pytestmark = pytest.mark.rounds

MORE = 45
ALL = MORE + len(NODES)
HELD_BEFORE = 46


@dataclass
class Walking(Clock):
    """Whoever asks it has spent some time."""

    def __call__(self):
        self.at += timedelta(milliseconds=120)
        return self.at


def said(ground: Ground) -> list[str]:
    now = ground.clock.at
    return [progress.sentence for progress in label_progress(plan_on_page(ground.plan, now=now), now=now)]


def aborting_after(ground: Ground, nodes: int) -> Callable:
    hold, calls = holds.hold_node, count(1)

    def hold_and_tell(*given, **named):
        seen = hold(*given, **named)
        if next(calls) == nodes:
            abort(Plan.objects.get(pk=ground.plan.pk), actor=ground.ada, reason="Not now.", now=ground.clock())
        return seen

    return hold_and_tell


def test_an_abort_in_the_middle_of_holding_counts_down_what_is_still_held(ground: Ground, monkeypatch):
    for number in range(MORE):
        ground.join(f"more-{number:03}")
    ground.look()
    ground.clock = Walking(ground.clock.at)
    ground.start()
    monkeypatch.setattr(holds, "hold_node", aborting_after(ground, HELD_BEFORE))
    while_held, afterwards = list[str](), list[str]()

    while ground.plan.state != PlanState.ABORTING:
        ground.round(look=False)
        while_held += said(ground)
    assert len(ground.held()) == HELD_BEFORE
    while not ground.round().is_final:
        afterwards += said(ground)

    assert while_held == [f"42 of {ALL} nodes held; about 2 s remaining at the pace of the last minute"]
    assert afterwards == [f"42 of {HELD_BEFORE} nodes let go; about 2 s remaining at the pace of the last minute"]
    assert ground.held() == set()
