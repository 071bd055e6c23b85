"""Nodes with open findings that make them unfit for a plan: they prove nothing and may fail for another reason."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from health.lifecycle import FindingState
from health.models import Finding
from health.rules.allocatable_below_expected import AllocatableBelowExpected
from health.rules.base import Severity
from health.rules.node_flapping import NodeFlapping
from health.rules.node_not_ready import NodeNotReady

# Sick at any severity: one missing GPU is a warning, and so is a flapping node.
SICK = (AllocatableBelowExpected.key, NodeFlapping.key, NodeNotReady.key)


def sick_nodes(cluster_id: int) -> Mapping[str, Sequence[str]]:
    """Returns the findings' titles, as sentences, by node UID, the worst first, muted ones included. One query."""
    told = Finding.objects.unresolved().filter(cluster=cluster_id, node__isnull=False, is_shadow=False)
    known = told.exclude(state=FindingState.CONFIRMING)
    sick = known.filter(severity=Severity.CRITICAL) | known.filter(rule__in=SICK)
    found: dict[str, list[str]] = defaultdict(list)
    for uid, title in sick.worst_first().values_list("node__uid", "title"):
        found[uid].append(f"{title}.")
    return found
