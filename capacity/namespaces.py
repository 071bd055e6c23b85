"""A namespace, or one workload in it: requests against allocatable and quota, pods, GPU-hours and findings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import BooleanField, Count, ExpressionWrapper, Q, QuerySet

from capacity.namespace_rows import fresh_namespaces
from capacity.pods.pod_filter import PodFilter
from capacity.pods.rows import GpuPodLine, PodTable, table_of
from capacity.pods.workload_groups import WorkloadGroup, groups_of
from capacity.usage.usage_filter import DAY, UsageFilter
from capacity.usage.usage_report import UsageReport, usage_report
from fleet.cluster_stack import QuotaLine, quotas_of_namespace
from fleet.freshness.cluster import ClusterFreshness, load_cluster_freshness
from fleet.models import Bookmark, Cluster, ClusterNamespace, Node, Workload
from fleet.states.pod import ENDED
from health.models import Finding
from kube.resources import RESOURCE_QUOTAS
from people.models import User
from people.rights import Permission, scope_of

FINDINGS_AT_MOST = 20
NODES_AT_MOST = 200  # with pods, whose findings are read
PODS_AT_MOST = 50
POD_SECURITY = "pod-security.kubernetes.io/enforce"  # kubernetes, staging/src/k8s.io/pod-security-admission/api
PERIOD = "month"  # of GPU-hours


@dataclass(frozen=True)
class RequestedResource:
    resource: str
    has: int  # requested by pods with a node that have not ended
    waits: int  # requested by pods without a node
    allocatable: int  # on the visible nodes of the cluster


@dataclass(frozen=True)
class NamespaceReport:
    cluster: Cluster
    namespace: str
    workload: str  # Job/train; blank: the whole namespace
    rows: Sequence[Workload]  # rows of the workload in its cluster, such as a Deployment and its ReplicaSets
    row: ClusterNamespace | None  # None: not read, not seen for long, or not visible
    freshness: ClusterFreshness
    table: PodTable
    groups: Sequence[WorkloadGroup]
    lines: Sequence[GpuPodLine]  # of a workload: its first pods
    resources: Sequence[RequestedResource]
    quotas: Sequence[QuotaLine] | None  # None: not read, or not visible
    usage: UsageReport
    recorded_for: str  # JobSet/train: the owner above, which has the hours of its pods; blank: it has its own
    findings: Sequence[Finding]  # open, of its workloads and of the nodes with its pods
    more_findings: bool

    @property
    def pod_security(self) -> str | None:
        """Returns the enforced level. Blank: none; None: not known."""
        return self.row.labels.get(POD_SECURITY, "") if self.row else None

    @property
    def owner(self) -> str | None:
        """Returns the value of the label by which costs have an owner. Blank: none; None: not known."""
        return self.row.labels.get(settings.OWNER_LABEL, "") if self.row else None

    @property
    def is_empty(self) -> bool:
        return not (len(self.table) or self.quotas or self.usage.total.total or self.rows)


def read_workload(path: str) -> tuple[str, str] | None:
    """Returns namespace and workload of `ml/Job/train`. None: a part is missing."""
    parts = path.split("/", 2)
    return (parts[0], f"{parts[1]}/{parts[2]}") if len(parts) == 3 and all(parts) else None


def namespace_report(
    user: User, cluster: Cluster, namespace: str, workload: str = "", *, now: datetime
) -> NamespaceReport:
    """Returns the report of a visible cluster with its observer, in a fixed number of queries."""
    wanted = PodFilter(cluster=cluster.name, namespace=namespace, owner=workload)
    table = table_of(user, wanted, now=now)
    of_usage = UsageFilter(period=PERIOD, by=DAY, cluster=cluster.name, namespace=namespace, workload=workload)
    findings = list(_findings(user, cluster, table, namespace, workload)[: FINDINGS_AT_MOST + 1])
    groups = groups_of(table)
    return NamespaceReport(
        cluster=cluster,
        namespace=namespace,
        workload=workload,
        rows=_rows_of(user, cluster, namespace, workload) if workload else (),
        row=_row_of(user, cluster, namespace, now=now),
        freshness=load_cluster_freshness(cluster, now=now),
        table=table,
        groups=groups,
        lines=table.lines(0, PODS_AT_MOST) if workload else (),
        resources=_resources(user, cluster, table),
        quotas=_quotas(user, cluster, namespace),
        usage=usage_report(user, of_usage, now=now),
        recorded_for=_recorded_for(workload, groups),
        findings=findings[:FINDINGS_AT_MOST],
        more_findings=len(findings) > FINDINGS_AT_MOST,
    )


def _rows_of(user: User, cluster: Cluster, namespace: str, workload: str) -> list[Workload]:
    kind, _, name = workload.partition("/")
    is_it = Q(kind=kind, name=name) | Q(owner_kind=kind, owner_name=name)
    rows = Workload.objects.visible_to(user).filter(is_it, cluster=cluster, namespace=namespace)
    return list(rows.order_by("-created_at", "pk")[:PODS_AT_MOST])


def _row_of(user: User, cluster: Cluster, namespace: str, *, now: datetime) -> ClusterNamespace | None:
    if not scope_of(user, Permission.SEE).covers_cluster(cluster.pk):
        return None
    return fresh_namespaces(cluster.pk, now=now).filter(name=namespace).first()


def _resources(user: User, cluster: Cluster, table: PodTable) -> list[RequestedResource]:
    """Returns the GPU resources that the pods request. Two queries: pods and nodes with equal values are one row."""
    pods: Any = table.pods.exclude(phase__in=ENDED).order_by()
    has_no_node = ExpressionWrapper(Q(node_name=""), output_field=BooleanField())
    has, waits = Counter[str](), Counter[str]()
    for amounts, is_waiting, number in pods.values_list("resources", has_no_node).annotate(Count("pk")):
        _add(waits if is_waiting else has, amounts, number)
    nodes: Any = Node.objects.visible_to(user).filter(cluster=cluster).with_gpus().order_by()
    offered = Counter[str]()
    for amounts, number in nodes.values_list("allocatable").annotate(Count("pk")):
        _add(offered, amounts, number)
    return [RequestedResource(name, has[name], waits[name], offered[name]) for name in sorted({*has, *waits})]


def _add(sums: Counter[str], amounts: Mapping[str, int], number: int) -> None:
    for name, amount in amounts.items():
        sums[name] += amount * number


def _quotas(user: User, cluster: Cluster, namespace: str) -> list[QuotaLine] | None:
    is_visible = scope_of(user, Permission.SEE).covers_cluster(cluster.pk)
    if not is_visible or not Bookmark.objects.knows_all(cluster.pk, RESOURCE_QUOTAS.name):
        return None
    return quotas_of_namespace(cluster.pk, namespace)


def _recorded_for(workload: str, groups: Sequence[WorkloadGroup]) -> str:
    """Returns the topmost owner of its pods, for which their GPU-hours are recorded. Blank: it is the workload."""
    owners = [group.owner for group in groups]
    return owners[0] if workload and owners and workload not in owners else ""


def _findings(user: User, cluster: Cluster, table: PodTable, namespace: str, workload: str) -> QuerySet[Finding]:
    """Returns the open findings of its workloads, and of the nodes where its pods are."""
    running = table.pods.exclude(phase__in=ENDED).exclude(node=None).order_by()
    nodes = list(running.values_list("node_id", flat=True).distinct()[:NODES_AT_MOST])
    about = Q(subject__contains=f" {namespace}/")
    if workload:
        owners = table.pods.exclude(owner_name="").order_by().values_list("owner_kind", "owner_name")
        below = {f"{kind}/{name}" for kind, name in owners.distinct()[:NODES_AT_MOST]}
        about = Q(subject__in=[each.replace("/", f" {namespace}/", 1) for each in {workload, *below}])  # Job ml/train
    found = Finding.objects.without_visible_cause(user).filter(Q(node__in=nodes) | about, cluster=cluster).open()
    return found.select_related("node", "cluster").unacknowledged_first()
