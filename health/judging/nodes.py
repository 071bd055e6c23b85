"""Nodes as rows show them, handed to the rules about them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fleet.models import Cluster, Node, Pool
from fleet.states.node import AT_REST, RECONFIGURED_WITHIN, RECONFIGURING
from gpu.operands import DRIVER
from gpu.resources import unhealthy_in_words
from gpu.upgrade_controller import UPGRADE_FAILED
from health.judging.failing import failing_pods
from health.judging.gpus import Hearing
from health.judging.signals import Signal, Subject
from health.models import Finding
from health.rules.base import FailingPod, NodeCondition, NodeFacts, Rule
from health.stack import read_stack

ASKED_WHY = 10  # nodes of a look whose stack is read for why their driver does not run: eight queries each
COLUMNS = (
    "id", "uid", "name", "allocatable", "capacity", "expected", "requested", "upgrade_state", "driver_unknown_since",
    "mig_config", "mig_config_state", "mig_changing_since", "unhealthy_gpus", "devices_unhealthy", "layout", "sharing",
    "sharing_replicas", "is_ready", "ready_since", "not_ready_because", "conditions", "is_paused", "is_held",
)  # fmt: skip


def judge_nodes(
    cluster: Cluster, rules: Iterable[Rule[NodeFacts]], hearing: Hearing | None, *, now: datetime
) -> Iterator[Signal]:
    """Six queries, and eight for each of a few nodes whose upgrade does not end."""
    classes, failing, why = _classes(cluster), failing_pods(cluster, now=now), _why_upgrades_fail(cluster, now=now)
    rows = Node.objects.filter(cluster=cluster).with_gpus().values(*COLUMNS)
    for row in rows.iterator(chunk_size=500):
        facts = _facts(
            row,
            classes.get(row["id"], frozenset()),
            failing.get(row["name"], ()),
            hearing,
            why.get(row["id"], ""),
            now=now,
        )
        for rule in rules:
            if wrong := rule.judge(facts):
                subject = Subject(f"node {row['name']}", row["id"], row["uid"], row["name"])
                yield Signal(subject, rule, wrong)


def _classes(cluster: Cluster) -> dict[int, frozenset[str]]:
    """The workload classes of each node's pools."""
    members = Pool.objects.filter(cluster=cluster, nodes__isnull=False).values_list("nodes", "workload_class")
    found: dict[int, frozenset[str]] = {}
    for node_id, workload_class in members:
        found[node_id] = found.get(node_id, frozenset()) | {workload_class}
    return found


def _why_upgrades_fail(cluster: Cluster, *, now: datetime) -> dict[int, str]:
    """By the node's key, why its driver does not run and what helps: of those that failed, or take too long."""
    overdue = Finding.objects.filter(
        cluster=cluster, rule="upgrade-stuck", resolved_at=None, confirmed_at__lte=now, node__isnull=False
    ).values("node")
    nodes = Node.objects.filter(cluster=cluster).with_gpus()
    failed = nodes.filter(upgrade_state=UPGRADE_FAILED) | nodes.filter(pk__in=overdue)
    said = {}
    for node in failed.order_by("pk")[:ASKED_WHY]:
        causes = (row.cause for row in read_stack(node, now=now).operands if row.operand == DRIVER)
        cause = next((each for each in causes if each), None)
        if cause:
            said[node.pk] = f"{cause.sentence} {cause.action}".strip()
    return said


def _facts(
    row: dict,
    classes: frozenset[str],
    failing: Sequence[FailingPod],
    hearing: Hearing | None,
    upgrade_because: str,
    *,
    now: datetime,
) -> NodeFacts:
    is_changing = row["upgrade_state"] not in AT_REST or row["mig_config_state"] in RECONFIGURING
    return NodeFacts(
        name=row["name"],
        allocatable=row["allocatable"],
        capacity=row["capacity"],
        expected=row["expected"],
        requested=row["requested"],
        is_changing=is_changing,
        mig_config=row["mig_config"],
        mig_state=row["mig_config_state"],
        mig_overdue_since=_mig_overdue_since(row, now=now),
        unhealthy=" ".join(unhealthy_in_words(row["unhealthy_gpus"], row["devices_unhealthy"])),
        layout=row["layout"],
        sharing=row["sharing"],
        sharing_replicas=row["sharing_replicas"],
        workload_classes=classes,
        failing_pods=() if row["is_ready"] is None else tuple(failing),
        is_ready=row["is_ready"],
        is_unreported=row["is_ready"] is None,
        not_ready_because=row["not_ready_because"],
        conditions=tuple(NodeCondition(each["type"], each["message"]) for each in row["conditions"]),
        is_paused=row["is_paused"],
        upgrade_state=row["upgrade_state"],
        is_held=row["is_held"],
        upgrade_because=upgrade_because,
        is_heard=hearing is None or row["name"] in hearing.now,
        was_heard=hearing is None or row["name"] in hearing.ever,
    )


def _mig_overdue_since(row: dict, *, now: datetime) -> datetime | None:
    since: datetime | None = row["mig_changing_since"]
    if row["mig_config_state"] not in RECONFIGURING or since is None:
        return None
    return since if now - since >= RECONFIGURED_WITHIN else None
