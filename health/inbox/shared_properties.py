"""Properties that nodes with a finding share, and other GPU nodes of the cluster lack: suspects outside of a plan."""

from django.db.models import Q

from fleet.models import Node
from health.evaluation.node_properties import properties_of
from health.evaluation.workload_failures import SEVERAL
from health.models import Finding
from health.suspects import NodeOutcome, Suspects, suspects_of
from people.models import User

COMPARED_BY_ITSELF = frozenset({"workload-fails-on-some"})  # of one template: its evidence has the suspects


def shared_properties(finding: Finding, user: User, like_it: Q) -> Suspects | None:
    """Returns the suspects among the nodes that the person sees; None if fewer than two nodes have it or lack it.

    `like_it`: findings of the rule with the same code. Nodes with another code of the rule count as good ones.
    Five queries at most.
    """
    if finding.node_id is None or finding.resolved_at is not None or finding.rule in COMPARED_BY_ITSELF:
        return None
    of_rule = Finding.objects.visible_to(user).unresolved().filter(cluster=finding.cluster_id, rule=finding.rule)
    with_it = set(of_rule.filter(like_it, node__isnull=False).values_list("node", flat=True))
    if len(with_it) < SEVERAL:
        return None
    nodes = Node.objects.visible_to(user).filter(cluster=finding.cluster_id).exclude(gpu_product="")
    found = properties_of(nodes, finding.cluster_id)
    failed = set(nodes.filter(pk__in=with_it).values_list("name", flat=True))
    if len(failed) < SEVERAL or len(found) - len(failed) < SEVERAL:
        return None
    return suspects_of(NodeOutcome(name, name in failed, its) for name, its in found.items())
