"""Builds gate results. Pure."""

from collections.abc import Iterable, Sequence

from rollouts.gates.base import (
    KEPT_EMPTY,
    NO_TARGET,
    TO_COME,
    Answer,
    Evidence,
    GateResult,
    Items,
    TargetEvidence,
)
from wording.lists import one_or_count
from wording.numbers import are, count

OVERRIDE = ("Override the gate with a reason, or exclude the nodes.",)


def wait(
    title: str,
    summary: str = "",
    *,
    cause: str,
    nodes: tuple[str, ...] = (),
    evidence: Items = (),
    steps: tuple[str, ...] = (),
    is_final: bool = False,
) -> GateResult:
    return GateResult(Answer.WAIT, nodes, is_final, cause, title=title, summary=summary, evidence=evidence, steps=steps)


def fail(
    title: str,
    summary: str = "",
    *,
    cause: str,
    nodes: tuple[str, ...] = (),
    evidence: Items = (),
    steps: tuple[str, ...] = (),
) -> GateResult:
    return GateResult(Answer.FAIL, nodes, cause=cause, title=title, summary=summary, evidence=evidence, steps=steps)


def passed(title: str, summary: str = "", *, cause: str = "", evidence: Items = ()) -> GateResult:
    return GateResult(Answer.PASS, cause=cause, title=title, summary=summary, evidence=evidence)


def no_target() -> GateResult:
    summary = "Every node was excluded, failed or left the cluster."
    steps = ("Complete the stage, or roll the plan back.",)
    return wait("The stage has no nodes left", summary, cause=NO_TARGET, steps=steps)


def to_come(shown: Evidence, evidence: Items = ()) -> GateResult:
    """Returns WAIT for nodes that have not changed yet."""
    left, every = len(shown.not_changed), len(shown.counted)
    summary = "The gate evaluates each node after its change."
    return wait(f"{share(left, every)} still to change", summary, cause=TO_COME, evidence=evidence)


def unknown_before(nodes: tuple[str, ...], what: str, evidence: Items = ()) -> GateResult:
    """Returns WAIT for nodes without a record from before the change. Nothing that is still to come can answer it."""
    return wait(
        f"The state of {subject(nodes)} before the change is unknown",
        f"{what} was not recorded at the release.",
        cause="unknown-before",
        nodes=nodes,
        evidence=evidence,
        steps=OVERRIDE,
        is_final=True,
    )


def wait_for_cordoned_nodes(targets: Iterable[TargetEvidence], evidence: Items = ()) -> GateResult | None:
    """Returns WAIT for nodes on which our cordon keeps tenants' pods off; None if there is none."""
    empty = tuple(target.name for target in targets if target.is_cordoned_by_us)
    if not empty:
        return None
    title = f"{subject(empty)} {are(len(empty))} cordoned by this plan"
    return wait(
        title,
        "Tenants' pods come back once the plan removes the cordon.",
        cause=KEPT_EMPTY,
        nodes=empty,
        evidence=evidence,
    )


def subject(nodes: Sequence[str]) -> str:
    """Returns the name of the only node, or text such as "3 nodes"."""
    return one_or_count(nodes, "node")


def sentence_of_first_node(nodes: Sequence[str], text: str) -> str:
    """Returns a sentence about the first node, which is named if there are several."""
    return f"{text[0].upper()}{text[1:]}." if len(nodes) == 1 else f"{nodes[0]}: {text}."


def share(part: int, whole: int) -> str:
    """Returns text such as "0 of 1 node is" or "1 of 3 nodes are"."""
    return f"{part} of {count(whole, 'node')} {are(whole)}"
