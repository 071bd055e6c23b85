"""The compatibility of the plan's versions: the new one and the one for a rollback."""

from collections.abc import Iterable, Iterator, Sequence

from gpu.compatibility import Support, Verdict, the_matrix
from health.stack.combinations import Line
from rollouts.checks import Check, stage_field
from rollouts.gates.compatibility import Compatibility
from rollouts.models import Stage
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.compatibility import BARRED, UNKNOWN_VERSION
from wording.numbers import count

BARS = frozenset({*BARRED.values(), UNKNOWN_VERSION})
HOW = "If it must be, start it with a reason of its own: it is kept, and approvers see it."
NEVER = "It cannot be overridden where a stage goes unasked."


def barred(subject: PreflightSubject) -> list[Check]:
    blockers = [check for check in _found(subject) if check.code in BARS]
    return blockers or list(_gates_that_cannot_tell(subject.stages, subject.said_of_versions[subject.plan.to_version]))


def warned(subject: PreflightSubject) -> Iterator[Check]:
    to, back = subject.plan.to_version, subject.plan.from_version
    yield from _unlisted(to)
    yield from (check for check in _found(subject) if check.code not in BARS)
    yield from _of_the_rollback(back, subject.said_of_versions[back])


def _found(subject: PreflightSubject) -> Iterator[Check]:
    version = subject.plan.to_version
    # Nobody overrides what nobody else is asked about.
    may = all("approval" in stage.gate_options for stage in subject.stages)
    for line in subject.said_of_versions[version]:
        if _is_worth_saying(line.verdict):
            yield _check(line, version, len(subject.picks.nodes), may=may)


def _gates_that_cannot_tell(stages: Sequence[Stage], lines: Sequence[Line]) -> Iterator[Check]:
    """Yields blockers: an unknown combination stays unknown at the gate, and the stage would wait for ever."""
    unknown = next((line for line in lines if line.verdict.answer is Support.UNKNOWN), None)
    for stage in stages:
        gate = next((gate for gate in stage.gates if isinstance(gate, Compatibility)), None)
        if unknown and gate and not gate.advisory and not gate.allow_unknown:
            sentence = f"{stage.name}: {gate.title} could never pass. {unknown.verdict.sentence}"
            fix = "Set its option allow_unknown, or make it advisory with a reason."
            yield Check("unmeasured", sentence, fix, field=stage_field(stage.index, f"gate_options.{gate.key}"))


def _is_worth_saying(verdict: Verdict) -> bool:
    return verdict.answer is not Support.SUPPORTED


def _check(line: Line, version: str, nodes: int, *, may: bool) -> Check:
    verdict = line.verdict
    of = "" if version in verdict.sentence else f"{version}: "
    sentence = f"{of}{verdict.sentence}{_where(line, nodes)}"
    code = BARRED.get(verdict.answer, UNKNOWN_VERSION if _is_unknown_branch(verdict, version) else "")
    if code:
        fix = f"{verdict.action} {HOW if may else NEVER}".strip()
        return Check(code, sentence, fix, may_be_overridden=may, field="to_version")
    return Check(f"version-{verdict.answer}", sentence, verdict.action, field="to_version")


def _unlisted(version: str) -> Iterator[Check]:
    matrix = the_matrix()
    if matrix.branch_of(version) is not None and not matrix.names_driver(version):
        sentence = f"{version}: no operator that the matrix knows lists this driver, so it may not exist."
        fix = "Look that NVIDIA has an image of it for your systems."
        yield Check("version-unlisted", sentence, fix, is_grave=True, field="to_version")


def _is_unknown_branch(verdict: Verdict, version: str) -> bool:
    return verdict.rule == "driver" and the_matrix().branch_of(version) is None and verdict.subject.startswith("Driver")


def _where(line: Line, nodes: int) -> str:
    return f" That is about {count(line.nodes, 'node')} of {nodes}." if line.nodes < nodes else ""


def _of_the_rollback(version: str, lines: Sequence[Line]) -> Iterator[Check]:
    """Yields warnings about the present version; they never block leaving it."""
    for line in lines:
        if line.verdict.answer in BARRED or _is_unknown_branch(line.verdict, version):
            sentence = f"A rollback leads to {version}. {line.verdict.sentence}"
            yield Check("rollback", sentence, line.verdict.action, is_grave=True)


def stands_against(subject: PreflightSubject) -> Iterable[Check]:
    return subject.plan.its_component.preflight(subject.driver)


def is_told(subject: PreflightSubject) -> Iterable[Check]:
    return subject.plan.its_component.warnings(subject.driver)
