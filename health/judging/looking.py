"""From rules to findings: opened when a rule has been right for long enough, resolved when it no longer is.

What cannot be seen is not judged: while a cluster is not seen, its findings stay as they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count

from fleet import announce
from fleet.allocation.kept import kept
from fleet.drivers.operator_pods import operator_trouble
from fleet.freshness import NODES
from fleet.models import Bookmark, Cluster, Node, NodeEvent, Observer, Pool
from fleet.node_state import AT_REST, RECONFIGURED_WITHIN, RECONFIGURING
from fleet.sight import ClusterSight, Sight, sight_of
from fleet.slots import slots
from gpu.resources import unhealthy_in_words
from health.judging.failing import failing_pods
from health.judging.sources import SOURCES
from health.models import Finding
from health.rules import CLUSTER_RULES, NODE_RULES
from health.rules.base import ClusterFacts, ClusterRule, FailingPod, NodeFacts, NodeRule, Wrong

NOTE = "note"  # worth knowing, and nothing is wrong
COLUMNS = (
    "id", "uid", "name", "allocatable", "capacity", "expected", "requested", "upgrade_state", "driver_unknown_since",
    "mig_config", "mig_config_state", "mig_changing_since", "unhealthy_gpus", "devices_unhealthy", "layout", "sharing",
    "sharing_replicas", "is_ready",
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """What a finding is about. `node_id` None: the cluster, or our sight of it."""

    name: str
    node_id: int | None = None
    node_uid: str = ""
    node_name: str = ""


@dataclass(frozen=True)
class Signal:
    subject: Subject
    rule: str
    title: str
    after: timedelta
    wrong: Wrong

    @property
    def key(self) -> tuple[str, str]:
        return self.rule, self.subject.name


def look(cluster: Cluster, *, now: datetime) -> int:
    """Judge a cluster as its rows show it. How many findings opened or were resolved. Eight queries, and changes."""
    observer = Observer.objects.get(cluster=cluster)
    marks = list(Bookmark.objects.filter(cluster=cluster))
    live = {row.kind for row in marks if row.is_fresh(now=now)}
    sight = sight_of(marks, observer, added_at=cluster.added_at, now=now)
    rules = [rule for rule in CLUSTER_RULES if not rule.reads or rule.reads in live]
    signals = [*_of_cluster(cluster, observer, sight, rules, now=now), *_of_sources(cluster)]
    judged = {rule.key for rule in rules} | set(SOURCES)
    if NODES in live:
        rules_of_nodes = [rule for rule in NODE_RULES if not rule.reads or rule.reads in live]
        signals += _of_nodes(cluster, rules_of_nodes, now=now)
        judged |= {rule.key for rule in rules_of_nodes}
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # two looks at once would open it twice
        told = _write(cluster, signals, judged, now=now)
        nodes = _count(cluster)
    if told or nodes:
        changed = [(node.pk, int(node.state)) for node in Node.objects.filter(pk__in=nodes)]
        announce.cluster_changed(cluster.pk, seq=observer.batch, nodes=changed, kinds=("findings",), at=now)
    return told


def _count(cluster: Cluster) -> list[int]:
    """Keep on each node how many findings it has, confirmed or not. Which changed; two queries, and one for those."""
    unresolved = Finding.objects.filter(cluster=cluster, resolved_at=None, node__isnull=False).exclude(severity=NOTE)
    found = dict(unresolved.order_by().values_list("node").annotate(number=Count("pk")))
    was = dict(Node.objects.filter(cluster=cluster, unresolved__gt=0).order_by().values_list("pk", "unresolved"))
    changed = [pk for pk in {*found, *was} if found.get(pk, 0) != was.get(pk, 0)]
    with kept(cluster.pk, changed):
        for pk in changed:
            Node.objects.filter(pk=pk).update(unresolved=found.get(pk, 0))
    return changed


def _of_sources(cluster: Cluster) -> Iterator[Signal]:
    """What the apps above this one have to say."""
    for source in SOURCES.values():
        for said in source.say(cluster):
            yield Signal(Subject(said.subject), source.rule, said.title, said.after, said.wrong)


def _of_cluster(
    cluster: Cluster, observer: Observer, sight: ClusterSight, rules: Iterable[ClusterRule], *, now: datetime
) -> Iterator[Signal]:
    is_unseen = sight.state not in (Sight.LIVE, Sight.CONNECTING)
    facts = ClusterFacts(
        cluster.name,
        observer.lag_ms,
        observer.behind_since,
        unseen_because=sight.sentence if is_unseen else "",
        unseen_action=sight.action,
        unwatched_action=slots(now=now).action if sight.unwatched_since else "",
        unwatched_since=sight.unwatched_since,
        operator_trouble=operator_trouble(cluster),
    )
    for rule in rules:
        if wrong := rule.judge(facts):
            yield Signal(Subject(rule.subject), rule.key, rule.title, rule.after, wrong)


def _of_nodes(cluster: Cluster, rules: Iterable[NodeRule], *, now: datetime) -> Iterator[Signal]:
    classes, failing = _classes(cluster), failing_pods(cluster, now=now)
    rows = Node.objects.filter(cluster=cluster).with_gpus().values(*COLUMNS)
    for row in rows.iterator(chunk_size=500):
        facts = _facts(row, classes.get(row["id"], frozenset()), failing.get(row["name"], ()), now=now)
        for rule in rules:
            if wrong := rule.judge(facts):
                subject = Subject(f"node {row['name']}", row["id"], row["uid"], row["name"])
                yield Signal(subject, rule.key, rule.title, rule.after, wrong)


def _classes(cluster: Cluster) -> dict[int, frozenset[str]]:
    """The workload classes of each node's pools."""
    members = Pool.objects.filter(cluster=cluster, nodes__isnull=False).values_list("nodes", "workload_class")
    found: dict[int, frozenset[str]] = {}
    for node_id, workload_class in members:
        found[node_id] = found.get(node_id, frozenset()) | {workload_class}
    return found


def _facts(row: dict, classes: frozenset[str], failing: Sequence[FailingPod], *, now: datetime) -> NodeFacts:
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
        mig_overdue=_mig_overdue(row, now=now),
        unhealthy=" ".join(unhealthy_in_words(row["unhealthy_gpus"], row["devices_unhealthy"])),
        layout=row["layout"],
        sharing=row["sharing"],
        sharing_replicas=row["sharing_replicas"],
        workload_classes=classes,
        failing_pods=() if row["is_ready"] is None else tuple(failing),
    )


def _mig_overdue(row: dict, *, now: datetime) -> timedelta | None:
    if row["mig_config_state"] not in RECONFIGURING or row["mig_changing_since"] is None:
        return None
    lasts = now - row["mig_changing_since"]
    return lasts if lasts >= RECONFIGURED_WITHIN else None


def _write(cluster: Cluster, signals: Iterable[Signal], judged: set[str], *, now: datetime) -> int:
    waiting = {
        (finding.rule, finding.subject): finding
        for finding in Finding.objects.filter(
            cluster=cluster, resolved_at__isnull=True, rule__in=judged
        ).select_related("node")
    }
    told = 0
    for signal in signals:
        finding = waiting.pop(signal.key, None) or _new(cluster, signal, now=now)
        told += _update(finding, signal, now=now)
    for finding in waiting.values():
        told += _resolve(finding, now=now)
    return told


def _new(cluster: Cluster, signal: Signal, *, now: datetime) -> Finding:
    return Finding(
        cluster=cluster,
        node_id=signal.subject.node_id,
        subject=signal.subject.name,
        rule=signal.rule,
        since=now,
    )


def _update(finding: Finding, signal: Signal, *, now: datetime) -> int:
    """1: it opened now."""
    wrong = signal.wrong
    said = (wrong.severity.value, wrong.sentence[:500], wrong.action[:500], dict(wrong.evidence))
    opens = finding.opened_at is None and now - finding.since >= signal.after
    if not opens and said == (finding.severity, finding.sentence, finding.action, finding.evidence):
        return 0
    finding.severity, finding.sentence, finding.action, finding.evidence = said
    finding.opened_at = now if opens else finding.opened_at
    finding.updated_at = now
    finding.save()
    if opens:
        _note(finding, signal.subject.node_uid, signal.subject.node_name, f"{signal.title}: {wrong.sentence}", now=now)
    return int(opens)


def _resolve(finding: Finding, *, now: datetime) -> int:
    """1: somebody had been told of it. One that never opened leaves no trace."""
    if finding.opened_at is None:
        finding.delete()
        return 0
    finding.resolved_at = finding.updated_at = now
    finding.save(update_fields=["resolved_at", "updated_at"])
    node = finding.node
    if node is not None:
        _note(finding, node.uid, node.name, f"Resolved: {finding.sentence}", now=now)
    return 1


def _note(finding: Finding, uid: str, name: str, sentence: str, *, now: datetime) -> None:
    if uid:
        NodeEvent.objects.create(
            cluster_id=finding.cluster_id,
            node_uid=uid,
            node_name=name,
            at=now,
            kind="finding",
            sentence=sentence[:500],
            detail={"finding": finding.pk, "rule": finding.rule},
        )
