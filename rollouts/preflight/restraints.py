"""Freezes and closed windows that restrain nodes now."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from rollouts.checks import START_ANYWAY, Check, listed, stage_field
from rollouts.gates.results import subject as named
from rollouts.gates.window import Window
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.restraints import OpenHours
from wording.durations import spell
from wording.numbers import count
from wording.reports import EvidenceItem


def restrained(subject: PreflightSubject) -> Iterator[Check]:
    bound = subject.restraints.of_nodes([node.uid for node in subject.picks.nodes])
    for sentence, number in Counter(one.sentence for one in bound.values()).items():
        title = f"A freeze or a window holds {count(number, 'node')}"
        reason = (EvidenceItem("Reason", sentence),)
        yield Check("restrained", title=title, summary=sentence, evidence=reason, steps=(START_ANYWAY,))


FIX = ("Create a window for the pool or the cluster.", "Or remove the gate, or make it advisory with a reason.")
SHORTER = "Reduce the option must_last of the gate, or create a longer window."


def never_opens(subject: PreflightSubject) -> Iterator[Check]:
    """Yields blockers. Three queries if a stage has the gate and the cluster has windows."""
    asked = [(stage, gate) for stage in subject.stages for gate in stage.gates if isinstance(gate, Window)]
    counted = [(stage, gate) for stage, gate in asked if not gate.advisory]
    if not counted:
        return
    longest = max(gate.must_last for _, gate in counted)
    openings = subject.restraints.openings_of([node.uid for node in subject.picks.nodes], lasting=longest)
    for stage, gate in counted:
        nodes = subject.picks.by_stage.get(stage.index, ())
        where, field = (
            f"{gate.title} of {stage.name} could never pass.",
            stage_field(stage.index, f"gate_options.{gate.key}"),
        )
        if bare := [node.name for node in nodes if node.uid not in openings]:
            title, nodes_left = f"No maintenance window covers {named(bare)}", listed("Nodes", bare)
            yield Check("unmeasured", title=title, summary=where, evidence=nodes_left, steps=FIX, field=field)
        covered = [node for node in nodes if node.uid in openings]
        for sentence in sorted({its.sentence for node in covered if not (its := openings[node.uid]).intervals}):
            title = "A maintenance window does not open again"
            yield Check("unmeasured", title=title, summary=sentence, steps=FIX, field=field)
        if short := [node.name for node in covered if _are_too_short(openings[node.uid], gate.must_last)]:
            title = f"No maintenance window of {named(short)} lasts {spell(gate.must_last)}"
            shown = listed("Nodes", short)
            yield Check("unmeasured", title=title, summary=where, evidence=shown, steps=(SHORTER,), field=field)


def _are_too_short(openings: OpenHours, must_last: timedelta) -> bool:
    lengths = [its.closes_at - its.opens_at for its in openings.intervals]
    return bool(lengths) and max(lengths) < must_last
