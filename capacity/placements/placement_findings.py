"""Findings about pools whose running pods break the placement policy."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from capacity.placements.numa_rows import numa_of_nodes
from capacity.placements.placement_figures import ConcentratedWorkload
from capacity.placements.placement_report import PolicyPlacement, PolicyState, placement_for_findings
from capacity.placements.service_level_history import DAYS, ServiceLevelComparison, service_level_of_pool
from fleet.models import Cluster, Node, Pod, Pool
from fleet.models.pool import CLASS_PLACEMENTS, ClassPlacement, PlacementPolicy, WorkloadClass
from health.evaluation.finding_sources import FindingSource
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.base import Problem, Severity
from kube.resources import NODE_TOPOLOGIES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from wording.numbers import count
from wording.reports import UTC, EvidenceItem, first_items, fit

EVERY = timedelta(minutes=2)  # it reads the pods of each pool with a policy
WORSE_KEY = "worse-on-full-nodes"
TITLE_OF_POOL = "Service level worse on full nodes of {}"
WORSE_PERCENT = 20  # as the default of the gate on a service level
STILL_WORSE_PERCENT = 10  # of an open finding: a median moves a little each hour. Ours
WITHOUT_POLICY = {"placement_policy": PlacementPolicy.NONE} | {
    f"{column}__in": (ClassPlacement.AS_POOL, ClassPlacement.NONE) for column in CLASS_PLACEMENTS.values()
}
PODS_OF = {
    "": "Pods",
    WorkloadClass.TRAINING: "Jobs",
    WorkloadClass.INFERENCE: "Services",
    WorkloadClass.DEVELOPMENT: "Notebooks",
}
FEWER_GPUS = "Where one NUMA node has too few free GPUs, request fewer GPUs in each pod."
EVERY_NUMA = timedelta(minutes=10)  # it reads all pods with several GPUs
AFTER = timedelta(hours=1)  # pods come and go; a policy broken for a moment is no news. Ours


def broken_policies(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001 - a source
    """Yields the pools whose policy is broken, and their classes. One query, and six for each pool with a policy."""
    for pool in Pool.objects.filter(cluster=cluster).exclude(**WITHOUT_POLICY):
        report = placement_for_findings(pool)
        for part in report.parts if report else ():
            if part.state is PolicyState.BROKEN:
                subject = f"pool {pool.name} {part.workload_class}".strip()
                is_pack = part.policy == PlacementPolicy.PACK
                yield subject, _unpacked(pool, part) if is_pack else _concentrated(pool, part)


def _unpacked(pool: Pool, report: PolicyPlacement) -> Problem:
    pack, pods = report.pack, PODS_OF[report.workload_class]
    return Problem(
        severity=Severity.NOTE,
        title=fit(f"{pods} of pool {{}} are not packed", pool.name),
        summary="Packed by GPUs, the same pods would need fewer nodes. CPU, memory and taints are not compared.",
        evidence=(
            EvidenceItem("Nodes with GPU pods", pack.used),
            EvidenceItem("Nodes needed if packed", pack.needed),
            EvidenceItem("Free GPUs on the used nodes", pack.free),
        ),
        facts={"pool": pool.pk},
        identity=f"pack {report.workload_class}".strip(),
    )


def _concentrated(pool: Pool, report: PolicyPlacement) -> Problem:
    where, pods = report.label or "host", PODS_OF[report.workload_class].replace("Pods", "Workloads")
    return Problem(
        severity=Severity.NOTE,
        title=fit(f"{pods} of pool {{}} are concentrated", pool.name),
        summary=fit("More than half of their pods share one {}. Its failure stops these pods.", where, longest=140),
        evidence=(
            EvidenceItem("Concentrated workloads", report.spread.concentrated),
            *first_items(EvidenceItem(workload.name, _pods_text(workload)) for workload in report.spread.worst),
        ),
        facts={"pool": pool.pk},
        identity=f"spread {where} {report.workload_class}".strip(),
    )


def worse_on_full_nodes(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields the pools whose service level is worse on full nodes, or the classes where several are compared.

    An open finding of a pool that is now judged by its classes holds them to its lower limit, and the other way round.
    Two queries, and two for each pool that has one.
    """
    reported = Finding.objects.filter(cluster=cluster, rule=WORSE_KEY).exclude(state=FindingState.RESOLVED)
    before: dict[int | None, set[str]] = defaultdict(set)  # by pool: its classes; blank: all of its pods
    for facts in reported.values_list("facts", flat=True):
        before[facts.get("pool")].add(facts.get("class", ""))
    for pool in Pool.objects.filter(cluster=cluster, service_level__isnull=False):
        level = service_level_of_pool(pool, now=now)
        judged = level.judged if level else ()
        left = before[pool.pk] - {found.workload_class for found in judged}
        for found in judged:
            if found.newest is None or not found.is_current:
                continue
            its_class, worse = found.workload_class, found.percent_worse
            is_open = its_class in before[pool.pk] or ("" in left if its_class else bool(left))
            limit = STILL_WORSE_PERCENT if is_open else WORSE_PERCENT
            if worse is not None and worse >= limit:
                yield f"pool {pool.name} {its_class}".strip(), _worse(pool, found, worse, newest=found.newest)


def _worse(pool: Pool, found: ServiceLevelComparison, worse: float, *, newest: datetime) -> Problem:
    its_class = found.workload_class
    title = f"{PODS_OF[its_class]} of {{}} are worse on full nodes" if its_class else TITLE_OF_POOL
    return Problem(
        severity=Severity.NOTE,
        title=fit(title, pool.name),
        summary=fit("{} was worse on nodes whose GPUs were all allocated.", found.title, longest=140),
        evidence=(
            EvidenceItem("Worse on full nodes", round(worse), "%"),
            EvidenceItem("Median on full nodes", found.full or 0.0, found.unit),
            EvidenceItem("Median on other nodes", found.other or 0.0, found.unit),
            EvidenceItem(f"Hours compared, of {DAYS} days", found.hours),
            EvidenceItem("End of the newest hour", newest.isoformat(), UTC),
        ),
        facts={"pool": pool.pk, **({"class": its_class} if its_class else {})},
        identity=f"worse {found.title} {its_class}".strip(),
    )


def pods_across_numa(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields one problem with all pods that span NUMA nodes by a NodeResourceTopology. Nine queries at most."""
    return _across_numa(cluster, now=now, is_of_claim=False)


def claims_across_numa(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields one problem with all pods that span NUMA nodes by the devices of their claims. Nine queries at most."""
    return _across_numa(cluster, now=now, is_of_claim=True)


def _across_numa(cluster: Cluster, *, now: datetime, is_of_claim: bool) -> Iterator[tuple[str, Problem]]:
    names = list(Node.objects.filter(cluster=cluster).with_gpus().values_list("name", flat=True))
    running = Pod.objects.filter(cluster=cluster, phase="Running", deleted_at=None).tenants()
    found = numa_of_nodes(cluster.pk, names, running, now=now)
    spanning = [pod for pod in found.spanning if pod.is_of_claim is is_of_claim] if found else []
    if spanning:
        yield (
            "NUMA nodes",
            Problem(
                severity=Severity.NOTE,
                title=fit(f"{'Claims' if is_of_claim else 'Pods'} across NUMA nodes in {{}}", cluster.name),
                summary="Each pod has GPUs of several NUMA nodes, although one could have held them.",
                evidence=first_items(EvidenceItem(pod.name, f"on node {pod.node}") for pod in spanning),
                identity=" ".join(pod.name for pod in spanning),
            ),
        )


def _pods_text(workload: ConcentratedWorkload) -> str:
    return f"{workload.pods_in_domain} of {count(workload.pods, 'pod')} on {workload.domain}"


def page_of_pool(facts: Mapping[str, Any]) -> str:
    return reverse("pool", args=[facts["pool"]])


# Steps: kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing and …/topology-spread-constraints.
BROKEN_POLICY = FindingSource(
    "placement-policy-broken",
    "Placement policy broken",
    AFTER,
    broken_policies,
    "The running pods of a pool break its placement policy: not packed, or not spread.",
    page_of_pool,
    (
        "Open the pool. Its page compares the running pods with the policy.",
        "To pack, set the scoring strategy MostAllocated of NodeResourcesFit in the scheduler's profile.",
        "To spread, give the pod templates a topology spread constraint over the policy's label.",
        "If the policy no longer fits the pool, change it.",
    ),
    about="the placement of a pool's pods",
    every=EVERY,
    reads=(NODES.name, PODS.name),
)

# Steps: kubernetes.io/docs/tasks/administer-cluster/topology-manager, and KEP-4381 for the attribute.
ACROSS_NUMA = FindingSource(
    "pods-across-numa",
    "Pods across NUMA nodes",
    AFTER,
    pods_across_numa,
    "Running pods have GPUs of several NUMA nodes, although one could have held them.",
    steps=(
        "Set topologyManagerPolicy to restricted or single-numa-node in the kubelet configuration of the nodes.",
        "If it is already set, set topologyManagerScope to pod. The scope container aligns each container alone.",
        FEWER_GPUS,
    ),
    about="the NUMA nodes of pods",
    every=EVERY_NUMA,
    reads=(NODES.name, PODS.name, NODE_TOPOLOGIES.name),
)

CLAIMS_ACROSS_NUMA = FindingSource(
    "claims-across-numa",
    "Claims across NUMA nodes",
    AFTER,
    claims_across_numa,
    "The claims of running pods have GPUs of several NUMA nodes, although one could have held them.",
    steps=("Add the constraint matchAttribute: resource.kubernetes.io/numaNode to the claims.", FEWER_GPUS),
    about="the NUMA nodes of pods",
    every=EVERY_NUMA,
    reads=(NODES.name, PODS.name, RESOURCE_SLICES.name, RESOURCE_CLAIMS.name),
)

WORSE_ON_FULL_NODES = FindingSource(
    WORSE_KEY,
    "Service level worse on full nodes",
    timedelta(0),  # the hours took their time
    worse_on_full_nodes,
    f"The service level of a pool, or of a workload class of it, was at least {WORSE_PERCENT} % worse on nodes whose "
    f"GPUs were all allocated. "
    f"It closes below {STILL_WORSE_PERCENT} %, and when no hour of the last three has a value: then it is unknown.",
    page_of_pool,
    (
        "Compare the traffic, the heat and the power of these nodes: full nodes may serve the larger models.",
        "If packing is the cause, give the services of the pool the placement policy spread.",
        "If the service level no longer fits the pool, choose another one on the page of the pool.",
    ),
    about="the placement of a pool's pods",
    every=timedelta(minutes=10),  # it is measured each hour
)
