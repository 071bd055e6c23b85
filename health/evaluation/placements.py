"""Placements on the nodes of a cluster: taints of GPU nodes, and jobs in several NVLink domains."""

from collections import defaultdict
from itertools import takewhile

from django.db.models import Count, Q

from fleet.models import Cluster, Node, Pod
from fleet.owner_chains import chains_above
from health.rules.base import SplitGang, TaintCounts

# Their pods serve requests or run on each node, and need no common domain. Any other owner may be a gang.
SEPARATE = ("ReplicaSet", "StatefulSet", "DaemonSet", "Node", "")
# Owners of jobs that are no gang together. A JobSet may place each of its Jobs in a domain of its own (annotation
# exclusive-topology), which is not mirrored.
MAKES_SEVERAL = ("CronJob", "JobSet", "RayService")
MOST = 100  # jobs of one finding


def taint_counts(cluster: Cluster) -> TaintCounts:
    """Returns the counts, with one query. A cordon taints its node too."""
    counted = Node.objects.filter(cluster=cluster).aggregate(
        gpu_nodes=Count("pk", filter=Q(is_gpu_node=True)),
        untainted=Count("pk", filter=Q(is_gpu_node=True, taints=[])),
        cpu_nodes=Count("pk", filter=Q(is_gpu_node=False)),
    )
    return TaintCounts(**counted)


def split_gangs(cluster: Cluster) -> tuple[SplitGang, ...]:
    """Returns the jobs by name. One query; six at most if the cluster has several NVLink domains."""
    nodes = Node.objects.filter(cluster=cluster).exclude(nvlink_domain="").values_list("pk", "nvlink_domain")
    domain_of = dict(nodes)
    if len(set(domain_of.values())) < 2:
        return ()
    pods: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    running = Pod.objects.filter(cluster=cluster, phase="Running", is_tenant=True, node__in=list(domain_of))
    columns = ("owner_kind", "namespace", "owner_name", "owner_uid", "node")
    rows = list(running.exclude(owner_kind__in=SEPARATE).values_list(*columns))
    above = chains_above({uid for *_, uid, _ in rows}, clusters=[cluster.pk])
    for kind, namespace, name, uid, node in rows:
        chain = list(takewhile(lambda each: each.kind not in MAKES_SEVERAL, above.get((cluster.pk, uid), ())))
        kind, name = chain[-1] if chain else (kind, name)
        pods[kind, namespace, name].append(domain_of[node])
    found = sorted((owner, domains) for owner, domains in pods.items() if len(set(domains)) > 1)
    return tuple(
        SplitGang(f"{kind} {namespace}/{name}", len(domains), len(set(domains)))
        for (kind, namespace, name), domains in found[:MOST]
    )
