"""The compatibility of the plan's versions: the new one and the one for a rollback."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpu.compatibility import Support, Verdict, the_matrix
from health.stack.combinations import Line
from rollouts.checks import Check, stage_field
from rollouts.gates.compatibility import Compatibility
from rollouts.models import Stage
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.compatibility import BARRED, UNKNOWN_VERSION
from wording.reports import EvidenceItem

BARS = frozenset({*BARRED.values(), UNKNOWN_VERSION})
HOW = "To start anyway, give a reason. It is stored, and approvers see it."
NEVER = "This cannot be overridden if a stage needs no approval."


def version_blockers(subject: PreflightSubject) -> list[Check]:
    blockers = [check for check in _found(subject) if check.code in BARS]
    return blockers or list(
        _gates_that_cannot_tell(subject.stages, subject.version_compatibility[subject.plan.to_version])
    )


def warned(subject: PreflightSubject) -> Iterator[Check]:
    to, back = subject.plan.to_version, subject.plan.from_version
    yield from _unlisted(to)
    yield from (check for check in _found(subject) if check.code not in BARS)
    yield from _rollback_checks(back, subject.version_compatibility[back])


def _found(subject: PreflightSubject) -> Iterator[Check]:
    version = subject.plan.to_version
    # Only checks that others review may be overridden.
    may = all("approval" in stage.gate_options for stage in subject.stages)
    for line in subject.version_compatibility[version]:
        if _is_worth_saying(line.verdict):
            yield _check(line, version, len(subject.picks.nodes), may=may)


def _gates_that_cannot_tell(stages: Sequence[Stage], lines: Sequence[Line]) -> Iterator[Check]:
    """Yields blockers: an unknown combination stays unknown at the gate, and the stage would wait for ever."""
    unknown = next((line for line in lines if line.verdict.answer is Support.UNKNOWN), None)
    for stage in stages:
        gate = next((gate for gate in stage.gates if isinstance(gate, Compatibility)), None)
        if unknown and gate and not gate.advisory and not gate.allow_unknown:
            yield Check(
                "unmeasured",
                title=f"{gate.title} of {stage.name} could never pass",
                summary=_first_clause(unknown.verdict.sentence),
                evidence=(EvidenceItem("Entry", unknown.verdict.sentence),),
                steps=("Set its option allow_unknown, or make it advisory with a reason.",),
                field=stage_field(stage.index, f"gate_options.{gate.key}"),
            )


def _is_worth_saying(verdict: Verdict) -> bool:
    return verdict.answer is not Support.SUPPORTED


def _check(line: Line, version: str, nodes: int, *, may: bool) -> Check:
    verdict = line.verdict
    answer = str(verdict.answer).replace("-", " ")
    text: dict[str, Any] = {
        "title": f"{verdict.subject}: {answer}",
        "summary": _first_clause(verdict.sentence),
        "evidence": (
            EvidenceItem("Entry", verdict.sentence),
            EvidenceItem("Nodes", f"{line.nodes} of {nodes}"),
            *([EvidenceItem("Source", verdict.source)] if verdict.source else []),
        ),
        "field": "to_version",
    }
    code = BARRED.get(verdict.answer, UNKNOWN_VERSION if _is_unknown_branch(verdict, version) else "")
    if code:
        return Check(code, may_be_overridden=may, steps=_steps(verdict.action, HOW if may else NEVER), **text)
    return Check(f"version-{verdict.answer}", steps=_steps(verdict.action), **text)


def _first_clause(sentence: str) -> str:
    """Returns the first clause of an entry of the matrix."""
    return re.split(r"[;.] ", sentence)[0].rstrip(".") + "."


def _steps(*steps: str) -> tuple[str, ...]:
    return tuple(step for step in steps if step)


def _unlisted(version: str) -> Iterator[Check]:
    matrix = the_matrix()
    if matrix.branch_of(version) is not None and not matrix.names_driver(version):
        yield Check(
            "version-unlisted",
            title=f"No known operator lists driver {version}",
            summary="The version may not exist.",
            steps=("Check that NVIDIA has an image of it for your operating systems.",),
            is_grave=True,
            field="to_version",
        )


def _is_unknown_branch(verdict: Verdict, version: str) -> bool:
    return verdict.rule == "driver" and the_matrix().branch_of(version) is None and verdict.subject.startswith("Driver")


def _rollback_checks(version: str, lines: Sequence[Line]) -> Iterator[Check]:
    """Yields warnings about the present version; they never block leaving it."""
    for line in lines:
        if line.verdict.answer in BARRED or _is_unknown_branch(line.verdict, version):
            title = f"A rollback leads to driver {version}"
            steps, entry = _steps(line.verdict.action), (EvidenceItem("Entry", line.verdict.sentence),)
            summary = _first_clause(line.verdict.sentence)
            yield Check("rollback", title=title, summary=summary, evidence=entry, steps=steps, is_grave=True)


def start_checks(subject: PreflightSubject) -> Iterable[Check]:
    return subject.plan.its_component.preflight(subject.driver)


def is_told(subject: PreflightSubject) -> Iterable[Check]:
    return subject.plan.its_component.warnings(subject.driver)
