"""The leftovers of a plan in its cluster when it ends, as the API server shows it, with commands to remove it.

It does not matter who made it: a cordon of the operator keeps pods away as well (Z42).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from gpu.labels import CORDONED_BY, EXCLUDED_BY, HELD_BY, HELD_SINCE, PROVES_FOR, PUT_BACK, UPGRADE_SKIP
from kube import client
from kube.structs import NodeSeen
from rollouts.components.driver import Driver
from rollouts.models import Plan
from wording.instants import to_the_second
from wording.lists import names
from wording.numbers import are, either

MOST = (8, 4, 2, 1)  # nodes that a command names; the first with which all sentences have room
OF_A_PLAN = {HELD_BY: (HELD_BY, HELD_SINCE), EXCLUDED_BY: (EXCLUDED_BY, PUT_BACK), CORDONED_BY: (CORDONED_BY,)}


def what_is_left(
    plan: Plan, nodes: Iterable[NodeSeen], connection: client.Connection, *, now: datetime, room: int
) -> str:
    """Returns sentences about marks that are left in the cluster, each with a command; empty: none.

    `room` is the number of characters. Commands name fewer nodes where it is short, so that none is cut.

    :raises ClusterError: when the cluster does not answer
    """
    uids = set(plan.holds.values_list("node_uid", flat=True))
    ours = [node for node in nodes if node.uid in uids or _marked_by(plan, node)]
    jobs, unknown = _jobs(plan, connection)
    said = ""
    for most in MOST:
        left = [*_leftovers_on_nodes(plan, ours, most=most), *_leftover_jobs(jobs, most=most), *unknown]
        said = " ".join([f"As of {to_the_second(now)}:", *left]) if left else ""
        if len(said) <= room:
            break
    return said


def _leftovers_on_nodes(plan: Plan, nodes: Sequence[NodeSeen], *, most: int) -> Iterator[str]:
    if cordoned := [node.name for node in nodes if node.is_unschedulable]:
        yield f"{_names_with_state(cordoned, 'cordoned', most)}: {_command('kubectl uncordon', cordoned, most)}."
    if held := [node.name for node in nodes if Driver.hold and Driver.hold.is_on(node.labels)]:
        command = _command("kubectl label node", held, most, f"{UPGRADE_SKIP}-")
        yield f"{_names_with_state(held, 'held', most)} (docs/takeover.md): {command}."
    annotated = {node.name: _marked_by(plan, node) for node in nodes if _marked_by(plan, node)}
    if annotated:
        keys = sorted({key for those in annotated.values() for key in those})
        off = " ".join(f"{key}-" for key in keys)
        carry = either(len(annotated), "carries", "carry")
        said = _command("kubectl annotate node", list(annotated), most, off)
        yield f"{names(list(annotated), most=min(3, most))} {carry} annotations of this plan: {said}."


def _jobs(plan: Plan, connection: client.Connection) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns namespace and name of the plan's Jobs, or a sentence that they are unknown."""
    try:
        jobs = client.list_jobs(connection, label_selector=f"{PROVES_FOR}={plan.mark}")
    except client.Forbidden as no:
        return [], [f"It is unknown whether Jobs of this plan still exist: {str(no).rstrip('.')}."]
    return sorted((job.metadata.namespace, job.name) for job in jobs), []


def _leftover_jobs(found: Sequence[tuple[str, str]], *, most: int) -> Iterator[str]:
    for namespace in sorted({namespace for namespace, _ in found}):
        those = [name for its, name in found if its == namespace]
        listed = names(those, most=min(3, most))
        say = either(len(those), "Job {} of this plan is", "Jobs {} of this plan are").format(listed)
        yield f"{say} not deleted: {_command(f'kubectl -n {namespace} delete job', those, most)}."


def _marked_by(plan: Plan, node: NodeSeen) -> Collection[str]:
    mine = [keys for by, keys in OF_A_PLAN.items() if node.annotations.get(by) == plan.mark]
    return {key for keys in mine for key in keys if key in node.annotations}


def _names_with_state(those: Sequence[str], how: str, most: int) -> str:
    return f"{names(those, most=min(3, most))} {are(len(those))} {how}"


def _command(start: str, those: Sequence[str], most: int, end: str = "") -> str:
    more = f" (and {len(those) - most} more)" if len(those) > most else ""
    return f"{' '.join(part for part in (start, *those[:most], end) if part)}{more}"
