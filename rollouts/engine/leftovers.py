"""The leftovers of a plan in its cluster when it ends, as the API server shows it, with commands to remove it.

It does not matter who made it: a cordon of the operator keeps pods away as well (Z42).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from gpu.labels import CORDONED_BY, EXCLUDED_BY, HELD_BY, HELD_SINCE, PROVES_FOR, PULLS_FOR, PUT_BACK, UPGRADE_SKIP
from kube import client
from kube.structs import NodeSeen
from rollouts.components.driver import Driver
from rollouts.models import Plan
from wording.lists import names
from wording.numbers import are, either

MOST = 8  # nodes that a command names
OF_A_PLAN = {HELD_BY: (HELD_BY, HELD_SINCE), EXCLUDED_BY: (EXCLUDED_BY, PUT_BACK), CORDONED_BY: (CORDONED_BY,)}


def what_is_left(plan: Plan, nodes: Iterable[NodeSeen], connection: client.Connection) -> str:
    """Returns sentences about what is left, each with a command; empty means nothing is.

    :raises ClusterError: when the cluster does not answer
    """
    uids = set(plan.holds.values_list("node_uid", flat=True))
    ours = [node for node in nodes if node.uid in uids or _marked_by(plan, node)]
    return " ".join([*_leftovers_on_nodes(plan, ours), *_leftover_jobs(plan, connection)])


def _leftovers_on_nodes(plan: Plan, nodes: Sequence[NodeSeen]) -> Iterator[str]:
    if cordoned := [node.name for node in nodes if node.is_unschedulable]:
        yield f"{_names_with_state(cordoned, 'cordoned')}: {_command('kubectl uncordon', cordoned)}."
    if held := [node.name for node in nodes if Driver.hold and Driver.hold.is_on(node.labels)]:
        command = _command("kubectl label node", held, f"{UPGRADE_SKIP}-")
        yield f"{_names_with_state(held, 'held')} (docs/takeover.md): {command}."
    annotated = {node.name: _marked_by(plan, node) for node in nodes if _marked_by(plan, node)}
    if annotated:
        keys = sorted({key for those in annotated.values() for key in those})
        off = " ".join(f"{key}-" for key in keys)
        carry = either(len(annotated), "carries", "carry")
        said = _command("kubectl annotate node", list(annotated), off)
        yield f"{names(list(annotated))} {carry} annotations of this plan: {said}."


def _leftover_jobs(plan: Plan, connection: client.Connection) -> Iterator[str]:
    selectors = [f"{label}={plan.mark}" for label in (PROVES_FOR, PULLS_FOR)]
    try:
        jobs = [job for selector in selectors for job in client.list_jobs(connection, label_selector=selector)]
    except client.Forbidden as no:
        yield f"It is unknown whether Jobs of this plan still exist: {str(no).rstrip('.')}."
        return
    found = sorted((job.metadata.namespace, job.name) for job in jobs)
    for namespace in sorted({namespace for namespace, _ in found}):
        those = [name for its, name in found if its == namespace]
        say = either(len(those), "Job {} of this plan is", "Jobs {} of this plan are").format(names(those))
        yield f"{say} not deleted: {_command(f'kubectl -n {namespace} delete job', those)}."


def _marked_by(plan: Plan, node: NodeSeen) -> Collection[str]:
    mine = [keys for by, keys in OF_A_PLAN.items() if node.annotations.get(by) == plan.mark]
    return {key for keys in mine for key in keys if key in node.annotations}


def _names_with_state(those: Sequence[str], how: str) -> str:
    return f"{names(those)} {are(len(those))} {how}"


def _command(start: str, those: Sequence[str], end: str = "") -> str:
    more = f" (and {len(those) - MOST} more)" if len(those) > MOST else ""
    return f"{' '.join(part for part in (start, *those[:MOST], end) if part)}{more}"
