"""Groups of similar findings on several nodes of a cluster that began together: one row of the inbox, which expands.

They appear after a driver change, or while exporters are away. Each finding keeps its own acts.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from django.db.models import Case, QuerySet, When

from fleet.models import Cluster
from health.inbox.queries import CODED, code_of, titles
from health.lifecycle import FindingState
from health.models import Finding
from health.models.finding import WORST_FIRST
from health.rules.base import Severity
from people.models import User

FEWEST = 4  # nodes: fewer are read as fast one by one
TOGETHER = timedelta(minutes=10)  # at most, between one and the next
AT_MOST = timedelta(hours=1)  # between the first and the last
ALIKE = ("cluster", "node", "rule", "severity", "state", "assigned_to", "since")
OF_CODED = Case(When(rule__in=CODED, then="facts"), default=None)


@dataclass(frozen=True)
class FindingGroup:
    """Similar findings in the order of their list, or one finding by itself. The first represents the group."""

    keys: tuple[int, ...]
    nodes: int = 0  # 0: it is one by itself
    is_open_critical: bool = False  # and not acknowledged

    @property
    def first(self) -> int:
        return self.keys[0]


def groups_of(rows: QuerySet[Finding]) -> list[FindingGroup]:
    """Returns the groups of the list in its order, with one query."""
    found = _comparable_findings(rows)
    alike: dict[Hashable, list[Finding]] = defaultdict(list)
    for row in found:
        if row.node_id is not None:
            alike[row.cluster_id, row.rule, row.severity, row.state, row.assigned_to, code_of(row)[0]].append(row)
    place = {row.pk: at for at, row in enumerate(found)}
    group_by_key: dict[int, FindingGroup] = {}
    for several in alike.values():
        for together in _began_together(several):
            nodes = len({row.node_id for row in together})
            if nodes >= FEWEST:
                keys = tuple(sorted((row.pk for row in together), key=place.__getitem__))
                group = FindingGroup(keys, nodes, _is_open_critical(together[0]))
                group_by_key |= dict.fromkeys(group.keys, group)
    alone = {row.pk: FindingGroup((row.pk,), is_open_critical=_is_open_critical(row)) for row in found}
    every = alone | group_by_key
    return list(dict.fromkeys(every[row.pk] for row in found))


def _is_open_critical(row: Finding) -> bool:
    return row.severity == Severity.CRITICAL and row.state == FindingState.OPEN


def _comparable_findings(rows: QuerySet[Finding]) -> list[Finding]:
    """Loads the fields that findings are compared by.

    Long facts that do not distinguish findings is not loaded.
    """
    found = rows.select_related(None).only(*ALIKE).annotate(of_coded=OF_CODED)
    for row in found:
        row.facts = row.of_coded or {}
    return list[Finding](found)


@dataclass(frozen=True)
class DescribedGroup:
    rule: str
    title: str
    code: str
    cluster: Cluster
    severity: str
    state: str
    assigned_to: str
    nodes: int
    findings: Sequence[int]


def described_groups(user: User) -> list[DescribedGroup]:
    """Returns the groups of all unresolved findings that the user sees, with two queries."""
    own = Finding.objects.without_visible_cause(user).notified().unresolved().order_by(WORST_FIRST, "-since", "-pk")
    groups = {group.first: group for group in groups_of(own) if group.nodes}
    named = titles()
    return [
        DescribedGroup(
            *(row.rule, named.get(row.rule, row.rule), code_of(row)[0], row.cluster, row.severity, row.state),
            *(row.assigned_to, groups[row.pk].nodes, groups[row.pk].keys),
        )
        for row in own.filter(pk__in=list(groups)).select_related("cluster")
    ]


def together_with(key: int, rows: QuerySet[Finding]) -> frozenset[int]:
    """Returns the keys of the group that the finding with this key opened, with two queries.

    It includes findings whose state, assignee or severity has changed since. `rows` are all findings that the user
    sees.
    """
    opened = next(iter(_comparable_findings(rows.filter(pk=key, node__isnull=False))), None)
    if opened is None:
        return frozenset()
    near = rows.filter(cluster=opened.cluster_id, rule=opened.rule, node__isnull=False)
    near = near.filter(since__range=(opened.since - AT_MOST, opened.since + AT_MOST))
    alike = sorted(
        (row for row in _comparable_findings(near) if code_of(row)[0] == code_of(opened)[0]), key=lambda row: row.since
    )
    before = [row for row in reversed(alike) if row.since <= opened.since]
    after = [row for row in alike if row.since >= opened.since]
    return frozenset(row.pk for side in (before, after) for row in _without_a_gap(side))


def _without_a_gap(several: Sequence[Finding]) -> Iterator[Finding]:
    """Yields findings near the first, in both directions, until the gap between two starts is too long."""
    for row, other in pairwise(several):
        yield row
        if abs(other.since - row.since) > TOGETHER:
            return
    yield several[-1]


def _began_together(several: Sequence[Finding]) -> Iterator[list[Finding]]:
    run: list[Finding] = []
    for row in sorted(several, key=lambda row: row.since):
        if run and (row.since - run[-1].since > TOGETHER or row.since - run[0].since > AT_MOST):
            yield run
            run = []
        run.append(row)
    yield run
