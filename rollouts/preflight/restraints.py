"""Freezes and closed windows that restrain nodes now."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from rollouts.checks import Check, each, stage_field
from rollouts.gates.window import Window
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.restraints import OpenHours, restraints_of
from wording.durations import spell
from wording.lists import names
from wording.numbers import count, either


def restrained(subject: PreflightSubject) -> Iterator[Check]:
    bound = restraints_of(subject.plan, now=subject.now).of_nodes([node.uid for node in subject.picks.nodes])
    for sentence, number in Counter(one.sentence for one in bound.values()).items():
        waits = f"{count(number, 'node')} {either(number, 'waits', 'wait')} for it"
        yield Check("restrained", sentence, f"{waits}; the plan may be started all the same.")


FIX = "Make one of the pool or of the cluster, take the gate out of the stage, or make it advisory with a reason."
SHORTER = "Ask for less with its option must_last, or make a longer window."


def never_opens(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers. Three queries if a stage has the gate and the cluster has windows."""
    asked = [(stage, gate) for stage in subject.stages for gate in stage.gates if isinstance(gate, Window)]
    counted = [(stage, gate) for stage, gate in asked if not gate.advisory]
    if not counted:
        return
    longest = max(gate.must_last for _, gate in counted)
    restraints = restraints_of(subject.plan, now=subject.now)
    openings = restraints.openings_of([node.uid for node in subject.picks.nodes], lasting=longest)
    for stage, gate in counted:
        nodes = subject.picks.by_stage.get(stage.index, ())
        where, field = f"{stage.name}, {gate.title}", stage_field(stage.index, f"gate_options.{gate.key}")
        if bare := [node.name for node in nodes if node.uid not in openings]:
            yield Check("unmeasured", f"{where}: no window covers {names(bare)}.", FIX, field=field, about=each(bare))
        covered = [node for node in nodes if node.uid in openings]
        for sentence in sorted({its.sentence for node in covered if not (its := openings[node.uid]).intervals}):
            yield Check("unmeasured", f"{where}: {sentence}", FIX, field=field)
        if short := [node.name for node in covered if _are_too_short(openings[node.uid], gate.must_last)]:
            sentence = f"{where}: for {names(short)} no opening to come lasts {spell(gate.must_last)}."
            yield Check("unmeasured", sentence, SHORTER, field=field, about=each(short))


def _are_too_short(openings: OpenHours, must_last: timedelta) -> bool:
    lengths = [its.closes_at - its.opens_at for its in openings.intervals]
    return bool(lengths) and max(lengths) < must_last
