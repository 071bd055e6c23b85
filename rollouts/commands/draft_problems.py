from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.models import Cluster, Pool
from kube import selectors
from operations.pool_tests import has_image
from people.roster.groups import members
from rollouts.commands.refusals import BadPlan
from rollouts.commands.stage_drafts import StageDraft
from rollouts.components.driver import WRITE_IT, is_version
from rollouts.gates.approval import GROUP, ApprovalGate
from rollouts.gates.base import When
from rollouts.gates.options import BadGate, read_gates
from rollouts.gates.test_job import TestJobGate
from rollouts.models import StageKind
from rollouts.preflight.extremes import TIMEOUT_LEAST, TIMEOUT_MOST, never_met

LONGEST_NAME, LONGEST_REASON = 100, 1000
TIMEOUT_LEAST_S, TIMEOUT_MOST_S = (int(most.total_seconds()) for most in (TIMEOUT_LEAST, TIMEOUT_MOST))


def check(cluster: Cluster, to_version: str, stages: Sequence[StageDraft]) -> None:
    """Checks a draft.

    :raises BadPlan: with each field that is wrong
    """
    if found := problems(cluster, to_version, stages):
        raise BadPlan(*found)


def problems(cluster: Cluster, to_version: str, stages: Sequence[StageDraft]) -> list[tuple[str, str]]:
    """Returns (field, problem) pairs."""
    problems = []
    if not is_version(to_version.strip()):
        wrong = f"“{to_version[:64]}” is not a full driver version." if to_version else "Which version?"
        problems.append(("to_version", f"{wrong} {WRITE_IT}"))
    if not stages:
        problems.append(("stages", "A plan needs at least one stage."))
    elif stages[0].kind != StageKind.CANARY:
        problems.append(("stages", "The first stage must be a canary."))
    known = _groups_there(stages)
    pools = set(Pool.objects.filter(cluster=cluster).values_list("pk", flat=True))
    for number, stage in enumerate(stages):
        found = _stage_problems(cluster, stage, pools)
        if all(field != "gate_options" for field, _ in found):
            found += _unknown_groups(stage, known)
        problems += [(f"stages.{number}.{field}", sentence) for field, sentence in found]
    return [*problems, *_same_names(stages)]


def _same_names(stages: Sequence[StageDraft]) -> Iterator[tuple[str, str]]:
    """Yields duplicate stage names, since history, findings and approvals refer to stages by name."""
    first: dict[str, int] = {}
    for number, stage in enumerate(stages):
        name = stage.name.strip().casefold()
        if name and first.setdefault(name, number) != number:
            sentence = (
                f"Stage {first[name] + 1} has the same name, {stage.name.strip()[:LONGEST_NAME]}. Give "
                "each stage its own name."
            )
            yield f"stages.{number}.name", sentence


def _stage_problems(cluster: Cluster, stage: StageDraft, pools: set[int]) -> list[tuple[str, str]]:
    problems = list(_text_problems(stage))
    if stage.kind not in {StageKind.CANARY, StageKind.POOL}:
        problems.append(("kind", "A stage needs a canary or a pool."))
    if stage.kind == StageKind.CANARY and stage.count is None and not stage.selector:
        problems.append(("count", "Give the number of canary nodes, or a selector."))
    if stage.count is not None and stage.count < 1:
        problems.append(("count", "A stage needs at least one node."))
    if stage.max_unavailable < 1:
        problems.append(("max_unavailable", "Must be at least 1. With 0 unavailable nodes no node could ever change."))
    if not TIMEOUT_LEAST_S <= stage.timeout_s <= TIMEOUT_MOST_S:
        problems.append(("timeout_s", "A gate may wait between a minute and a week before it asks a person."))
    if stage.pool_id is not None and stage.pool_id not in pools:
        problems.append(("pool", "This cluster has no such pool."))
    try:
        selectors.parse(stage.selector)
    except selectors.BadSelector as refusal:
        problems.append(("selector", str(refusal)))
    return problems + _gate_problems(cluster, stage)


def _text_problems(stage: StageDraft) -> Iterator[tuple[str, str]]:
    if not stage.name.strip():
        yield "name", "A stage needs a name."
    if len(stage.name.strip()) > LONGEST_NAME:
        yield "name", f"The name of a stage has at most {LONGEST_NAME} characters."
    if len(stage.sick_nodes_reason.strip()) > LONGEST_REASON:
        yield "sick_nodes_reason", f"A reason has at most {LONGEST_REASON} characters."


def _groups_there(stages: Sequence[StageDraft]) -> dict[str, Any]:
    """Returns the existing groups among those that the stages name. No query without groups."""
    asked = {name for stage in stages for name in _groups_asked(stage)}
    return members(asked) if asked else {}


def _groups_asked(stage: StageDraft) -> list[str]:
    written = stage.gate_options.get(ApprovalGate.key)
    groups = written.get("groups") if isinstance(written, Mapping) else None
    names = groups if isinstance(groups, Mapping) else {}
    return [name for name in names if isinstance(name, str) and GROUP.fullmatch(name)]


def _unknown_groups(stage: StageDraft, known: Mapping[str, Any]) -> list[tuple[str, str]]:
    unknown = [name for name in _groups_asked(stage) if name not in known]
    said = "Group {} does not exist. An admin creates groups and adds people to them."
    return [("gate_options", f"Approval: {said.format(unknown[0])}")] if unknown else []


def _gate_problems(cluster: Cluster, stage: StageDraft) -> list[tuple[str, str]]:
    if unread := list(_unread_gates(stage.gate_options)):
        return [("gate_options", sentence) for sentence in unread]
    gates = read_gates(stage.gate_options)
    if not any(gate.when is When.THROUGH and not gate.advisory for gate in gates):
        without = "A stage without a gate that counts can never pass."
        return [("gate_options", f"{without} Besides the approval, add at least one gate that is not advisory.")]
    by_key = [gate.image_key for gate in gates if isinstance(gate, TestJobGate) and not gate.image]
    lacking = [
        f"Test Job: neither QUARTERDECK_TEST_IMAGES nor the pool names an image of {key}. Set one."
        for key in by_key
        if not has_image(key, cluster_id=cluster.pk, pool_id=stage.pool_id)
    ]
    return [("gate_options", sentence) for sentence in (*never_met(gates), *lacking)]


def _unread_gates(written: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for key, options in written.items():
        try:
            read_gates({key: options})
        except BadGate as refusal:
            yield str(refusal)
