"""Nodes that no stage takes, and kinds of nodes that no canary represents."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from fleet.models import Node
from rollouts.checks import Check, each, stage_field
from rollouts.models import Stage, StageKind
from rollouts.node_order.node_selection import uncovered
from rollouts.preflight.picks import Picks, takes
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import are, count, either

LEFT_OUT = "The plan is made without them when it starts: what is mended later is another plan's."
TAKE_SICK = "give a stage a reason to take sick nodes (sick_nodes_reason)."
FACTOR_TITLES = {
    "os_image": "OS image",
    "gpu_product": "GPU",
    "gpu_layout": "its GPUs as",
    "driver_version": "old driver",
}


def takes_none(subject: PreflightSubject) -> Iterator[Check]:
    for stage in subject.stages:
        if not subject.picks.by_stage.get(stage.index):
            why = (*_taken_before(subject, stage), *_left_out_sick(subject, stage))
            sentence = " ".join((f"{stage.name} takes no node.", *why))
            yield Check("empty-stage", sentence, "Widen its selector, or remove the stage.", field=_chosen_by(stage))


def _chosen_by(stage: Stage) -> str:
    """Returns the field that selects the stage's nodes."""
    return stage_field(stage.index, "selector" if stage.selector else "pool" if stage.pool_id else "")


def _taken_before(subject: PreflightSubject, stage: Stage) -> Iterator[str]:
    for earlier, both in _in_earlier(subject, stage):
        yield f"{names(both)} {are(len(both))} in {earlier.name}, before it."


def _left_out_sick(subject: PreflightSubject, stage: Stage) -> Iterator[str]:
    if sick := sorted(node.name for node in subject.picks.left_out_sick if takes(stage, node)):
        yield f"{names(sick)} {are(len(sick))} left out as sick."


def _in_earlier(subject: PreflightSubject, stage: Stage) -> Iterator[tuple[Stage, list[str]]]:
    """Yields earlier stages with nodes that this stage selects too; the first stage takes them."""
    for earlier in subject.stages:
        if earlier.index >= stage.index:
            return
        if both := sorted(node.name for node in subject.picks.by_stage.get(earlier.index, ()) if takes(stage, node)):
            yield earlier, both


def takes_twice(subject: PreflightSubject) -> Iterator[Check]:
    for stage in subject.stages:
        if not subject.picks.by_stage.get(stage.index):
            continue  # said of a stage that takes none
        for earlier, both in _in_earlier(subject, stage):
            if not _is_what_it_leaves(earlier, stage):
                once = either(len(both), "it goes once", "they go once")
                sentence = f"{stage.name} names {names(both)}, too: {once}, with {earlier.name}."
                fix = "If they should go later, take them out of the earlier stage."
                yield Check("twice", sentence, fix, field=_chosen_by(stage), about=each(both))


def _is_what_it_leaves(earlier: Stage, stage: Stage) -> bool:
    """Returns whether the overlap is intended: a canary or a number before its pool."""
    takes_the_rest = not stage.selector and (stage.pool_id is None or earlier.kind == StageKind.CANARY)
    return earlier.count is not None or takes_the_rest


def takes_fewer(subject: PreflightSubject) -> Iterator[Check]:
    for stage in subject.stages:
        there = len(subject.picks.by_stage.get(stage.index, ()))
        if stage.count is not None and 0 < there < stage.count:
            sentence = f"{stage.name} asks for {count(stage.count, 'node')}, and {there} {are(there)} there for it."
            fix = "Widen its selector, or ask for fewer."
            yield Check("fewer", sentence, fix, field=stage_field(stage.index, "count"))


def leaves(subject: PreflightSubject) -> Iterator[Check]:
    picks = subject.picks
    if picks.uncovered:
        uncovered_names = sorted(node.name for node in picks.uncovered)
        stay = either(len(picks.uncovered), "it stays", "they stay")
        sentence = f"No stage takes {names(uncovered_names)}: {stay} held on the old driver."
        fix = "Add a stage that takes the rest, or leave them for another plan."
        yield Check("uncovered", sentence, fix, field="stages", about=each(uncovered_names))
    left_out: dict[str, list[str]] = defaultdict(list)
    of_the_sick = {node.name for node in picks.left_out_sick}
    for name, reason in picks.excluded:
        if name not in of_the_sick:
            left_out[reason].append(name)
    for reason, nodes in left_out.items():
        sentence = f"{names(sorted(nodes))} {are(len(nodes))} left out: {reason}."
        yield Check("excluded", sentence, LEFT_OUT, about=each(nodes))
    fix = "Give the canary more nodes, or a selector that takes some of each kind."
    yield from (Check("cohort", sentence, fix, field=stage_field(0)) for sentence in uncovered_sentences(picks))


def leaves_sick(subject: PreflightSubject) -> Iterator[Check]:
    picks = subject.picks
    if sick := picks.left_out_sick:
        call = either(len(sick), "an open finding calls it", "open findings call them")
        sentence = f"{_names(sick)} {are(len(sick))} left out, as {call} sick. {_first_finding(picks, sick)}"
        fix = f"Mend {either(len(sick), 'it', 'them')}, or {TAKE_SICK}"
        yield Check("sick-left-out", sentence, fix, about=_findings(picks, sick))


def takes_sick(subject: PreflightSubject) -> Iterator[Check]:
    picks = subject.picks
    for stage in subject.stages:
        if sick := [node for node in picks.by_stage.get(stage.index, ()) if node.uid in picks.sick]:
            call = either(len(sick), "an open finding calls", "open findings call")
            sentence = f"{stage.name} takes {_names(sick)}, which {call} sick. {_first_finding(picks, sick)}"
            reason = f" Because: {stage.sick_nodes_reason}" if stage.sick_nodes_reason else ""
            yield Check(
                "sick-taken",
                f"{sentence}{reason}",
                "A failure of such a node says nothing about the new version.",
                is_grave=True,
                field=stage_field(stage.index, "sick_nodes_reason"),
                about=_findings(picks, sick),
            )


def _names(nodes: Sequence[Node]) -> str:
    return names(sorted(node.name for node in nodes))


def _first_finding(picks: Picks, nodes: Sequence[Node]) -> str:
    return picks.sick[min(nodes, key=lambda node: node.name).uid][0]


def _findings(picks: Picks, nodes: Sequence[Node]) -> tuple[str, ...]:
    return each(f"{node.name}: {' '.join(picks.sick[node.uid])}" for node in nodes)


def canary_and_others(picks: Picks) -> tuple[list[Node], list[Node]]:
    stages = list(picks.by_stage.values())
    return (stages[0], [node for nodes in stages[1:] for node in nodes]) if stages else ([], [])


def uncovered_sentences(picks: Picks) -> list[str]:
    canary, others = canary_and_others(picks)
    of = picks.candidates
    missing = uncovered([of[node.uid] for node in canary], [of[node.uid] for node in others])
    return [_unmet(factor, value, number) for (factor, value), number in missing.items()]


def _unmet(factor: str, value: str, number: int) -> str:
    later = count(number, "later node")
    if factor == "pool":
        met = f"No canary node is in pool {value}" if value else "Every canary node is in a pool"
        return f"{met}; {later} {are(number)}{'' if value else ' in none'}."
    title = FACTOR_TITLES.get(factor, factor.replace("_", " "))
    return f"No canary node has {title} {value or '(unknown)'}; {later} {either(number, 'does', 'do')}."
