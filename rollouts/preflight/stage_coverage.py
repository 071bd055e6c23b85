"""Nodes that no stage takes, and kinds of nodes that no canary represents."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from fleet.models import Node
from rollouts.checks import Check, each, listed, stage_field
from rollouts.models import Stage, StageKind
from rollouts.node_order.node_selection import uncovered
from rollouts.preflight.picks import Picks, stage_takes_node
from rollouts.preflight.subject import PreflightSubject
from wording.numbers import are, count, either
from wording.reports import EvidenceItem

LEFT_OUT = "Use another plan for nodes that are available later."
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
            steps = ("Widen its selector, or remove the stage.",)
            shown = (*_nodes_of_earlier_stages(subject, stage), *_sick_nodes_left_out(subject, stage))
            title = f"{stage.name} takes no node"
            yield Check("empty-stage", title=title, evidence=shown, steps=steps, field=_chosen_by(stage))


def _chosen_by(stage: Stage) -> str:
    """Returns the field that selects the stage's nodes."""
    return stage_field(stage.index, "selector" if stage.selector else "pool" if stage.pool_id else "")


def _nodes_of_earlier_stages(subject: PreflightSubject, stage: Stage) -> Iterator[EvidenceItem]:
    for earlier, both in _overlapping_stages(subject, stage):
        yield from listed(f"In the earlier stage {earlier.name}", both)


def _sick_nodes_left_out(subject: PreflightSubject, stage: Stage) -> Iterator[EvidenceItem]:
    if sick := [node.name for node in subject.picks.left_out_sick if stage_takes_node(stage, node)]:
        yield from listed("Left out as sick", sick)


def _overlapping_stages(subject: PreflightSubject, stage: Stage) -> Iterator[tuple[Stage, list[str]]]:
    """Yields earlier stages with nodes that this stage selects too; the first stage takes them."""
    for earlier in subject.stages:
        if earlier.index >= stage.index:
            return
        if both := sorted(
            node.name for node in subject.picks.by_stage.get(earlier.index, ()) if stage_takes_node(stage, node)
        ):
            yield earlier, both


def takes_twice(subject: PreflightSubject) -> Iterator[Check]:
    for stage in subject.stages:
        if not subject.picks.by_stage.get(stage.index):
            continue  # another check names a stage without nodes
        for earlier, both in _overlapping_stages(subject, stage):
            if not _is_intended_overlap(earlier, stage):
                yield Check(
                    "twice",
                    title=f"{stage.name} and {earlier.name} select the same nodes",
                    summary=f"{count(len(both), 'node')} {either(len(both), 'changes', 'change')} with {earlier.name}.",
                    evidence=listed("Nodes", both),
                    steps=(f"To change them later, take them out of {earlier.name}.",),
                    field=_chosen_by(stage),
                )


def _is_intended_overlap(earlier: Stage, stage: Stage) -> bool:
    """Returns whether the overlap is intended: a canary or a number before its pool."""
    takes_the_rest = not stage.selector and (stage.pool_id is None or earlier.kind == StageKind.CANARY)
    return earlier.count is not None or takes_the_rest


def takes_fewer(subject: PreflightSubject) -> Iterator[Check]:
    for stage in subject.stages:
        there = len(subject.picks.by_stage.get(stage.index, ()))
        if stage.count is not None and 0 < there < stage.count:
            title = f"{stage.name} asks for {count(stage.count, 'node')} and finds {there}"
            steps = ("Widen its selector, or ask for fewer.",)
            yield Check("fewer", title=title, steps=steps, field=stage_field(stage.index, "count"))


def leaves(subject: PreflightSubject) -> Iterator[Check]:
    picks = subject.picks
    if picks.uncovered:
        yield Check(
            "uncovered",
            title=f"No stage takes {count(len(picks.uncovered), 'node')}",
            summary="The plan holds these nodes on the old driver.",
            evidence=listed("Nodes", (node.name for node in picks.uncovered)),
            steps=("Add a stage that takes the rest, or leave them for another plan.",),
            field="stages",
        )
    left_out: dict[str, list[str]] = defaultdict(list)
    of_the_sick = {node.name for node in picks.left_out_sick}
    for name, reason in picks.excluded:
        if name not in of_the_sick:
            left_out[reason].append(name)
    for reason, nodes in left_out.items():
        title = f"{count(len(nodes), 'node')} {are(len(nodes))} left out"
        summary = f"{reason[0].upper()}{reason[1:]}."
        yield Check("excluded", title=title, summary=summary, evidence=listed("Nodes", nodes), steps=(LEFT_OUT,))
    if missing := uncovered_sentences(picks):
        items = tuple(EvidenceItem(f"Missing kind {number}", sentence) for number, sentence in enumerate(missing, 1))
        steps = ("Give the canary more nodes, or a selector that takes some of each kind.",)
        title = "The canary does not represent every kind of node"
        summary = missing[0] if len(missing) == 1 else f"{len(missing)} kinds of nodes are missing."
        yield Check("cohort", title=title, summary=summary, evidence=items, steps=steps, field=stage_field(0))


def leaves_sick(subject: PreflightSubject) -> Iterator[Check]:
    picks = subject.picks
    if sick := picks.left_out_sick:
        title = f"{_sick(sick)} {are(len(sick))} left out as sick"
        steps = ("Repair the nodes first.", f"Or {TAKE_SICK}")
        findings = _findings(picks, sick)
        summary = "Open findings name these nodes."
        yield Check("sick-left-out", title=title, summary=summary, evidence=findings, steps=steps)


def takes_sick(subject: PreflightSubject) -> Iterator[Check]:
    picks = subject.picks
    for stage in subject.stages:
        if sick := [node for node in picks.by_stage.get(stage.index, ()) if node.uid in picks.sick]:
            reason = stage.sick_nodes_reason
            yield Check(
                "sick-taken",
                title=f"{stage.name} takes {_sick(sick)} with open findings",
                summary="A failure of such a node says nothing about the new version.",
                evidence=(*([EvidenceItem("Reason", reason)] if reason else []), *_findings(picks, sick)),
                steps=("Repair the nodes first, or leave them out.",),
                is_grave=True,
                field=stage_field(stage.index, "sick_nodes_reason"),
            )


def _sick(nodes: Sequence[Node]) -> str:
    return nodes[0].name if len(nodes) == 1 else count(len(nodes), "node")


def _findings(picks: Picks, nodes: Sequence[Node]) -> tuple[EvidenceItem, ...]:
    return each((node.name, " ".join(picks.sick[node.uid])) for node in nodes)


def canary_and_others(picks: Picks) -> tuple[list[Node], list[Node]]:
    stages = list(picks.by_stage.values())
    return (stages[0], [node for nodes in stages[1:] for node in nodes]) if stages else ([], [])


def uncovered_sentences(picks: Picks) -> list[str]:
    canary, others = canary_and_others(picks)
    of = picks.candidates
    missing = uncovered([of[node.uid] for node in canary], [of[node.uid] for node in others])
    return [uncovered_sentence(*kind, number) for kind, number in missing.items()]


def uncovered_sentence(factor: str, value: str, number: int, whose: str = "canary") -> str:
    """Returns the sentence for a kind of node that no canary node is of, or no `tested` one."""
    later = count(number, "later node")
    if factor == "pool":
        met = f"No {whose} node is in pool {value}" if value else f"Every {whose} node is in a pool"
        return f"{met}; {later} {are(number)}{'' if value else ' in none'}."
    title = FACTOR_TITLES.get(factor, factor.replace("_", " "))
    return f"No {whose} node has {title} {value or '(unknown)'}; {later} {either(number, 'does', 'do')}."
