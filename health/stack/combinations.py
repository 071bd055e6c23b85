"""The version combinations that run in a cluster, compared with the matrix: one per group of equal nodes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.db.models import BooleanField, Case, Count, OuterRef, Q, QuerySet, Subquery, Sum, TextField, When
from django.db.models.lookups import Exact

from fleet.drivers.cluster_drivers import Drivers, read_drivers
from fleet.drivers.mode import DriverMode, DriverSetBy, RunningOperator
from fleet.models import Cluster, DriverObject, Node, Operand, SegmentSums
from fleet.models.sums import REPORTED_DRIVER_OF_SUMS
from fleet.segments.label_conditions import LabelValue
from gpu.compatibility import Facts, Support, Verdict, evaluate, the_matrix
from gpu.compatibility.systems import distribution_of
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from gpu.versions import tag_of

AT_MOST = 200  # groups of nodes; a larger fleet shows its largest groups
# The only systems where it matters: for the others no labels need to be read.
PRE_MATTERS = Q(os_image__startswith="Red Hat Enterprise Linux 8") | Q(os_image__startswith="Ubuntu 26.04")
# An os-release of Red Hat CoreOS, labelled by Node Feature Discovery; its osImage names OpenShift only before 4.19.
OPENSHIFT = "feature.node.kubernetes.io/system-os_release.OPENSHIFT_VERSION"
IS_OPENSHIFT = Q(os_image__startswith="Red Hat Enterprise Linux CoreOS")
# AKS does not name itself in its version; it labels its nodes (learn.microsoft.com/azure/aks/use-labels).
AKS = "kubernetes.azure.com/cluster"
ON_AZURE = Q(kernel__endswith="-azure") | Q(os_image__startswith="Microsoft Azure Linux")
OURS = ("", "nvidia")
LABELS_MATTER = PRE_MATTERS | IS_OPENSHIFT | ON_AZURE
OF_LABELS = ("openshift", "aks", "is_pre")
# Properties that separate one group of nodes from another.
ALIKE = (
    "os_image",
    "openshift",
    "aks",
    "kubelet_version",
    "container_runtime",
    "reported_driver",
    "gpu_product",
    "mig_strategy",
    "driver_owner",
    "is_pre",
    "kernel",
)


@dataclass(frozen=True)
class Surroundings:
    """The properties that all nodes of a cluster share."""

    operator: RunningOperator
    mode: DriverMode
    facts: Facts
    precompiled: frozenset[str]  # names of NVIDIADrivers; blank: the ClusterPolicy
    modules: Mapping[str, str]  # by the same names, which kernel modules each asks for


@dataclass(frozen=True)
class Line:
    """One answer, and how many nodes it is about."""

    verdict: Verdict
    nodes: int


@dataclass(frozen=True)
class Comparison:
    lines: tuple[Line, ...]  # the worst first
    nodes: int  # that were compared
    groups: int
    is_truncated: bool  # there are more groups than were compared

    @property
    def worst(self) -> Support | None:
        """None: there was nothing to compare."""
        return self.lines[0].verdict.answer if self.lines else None

    @property
    def matrix_read_on(self) -> date:
        return the_matrix().read_on

    @property
    def matrix_newest_operator(self) -> str:
        return the_matrix().newest.version

    @property
    def counts(self) -> dict[Support, int]:
        found = Counter(line.verdict.answer for line in self.lines)
        return {answer: found[answer] for answer in Support if found[answer]}


def surroundings(drivers: Drivers) -> Surroundings:
    operator, mode = drivers.operator, drivers.mode
    objects, operands, kubernetes = drivers.objects, drivers.operands, drivers.cluster.server_version
    lead = next((each for each in objects if each.kind != "NVIDIADriver" and each.state != "ignored"), None)
    facts = Facts(
        operator=operator.version,
        mode=mode.mode.value
        if mode.mode in {DriverSetBy.CLUSTER_POLICY, DriverSetBy.NVIDIA_DRIVER, DriverSetBy.GPU_CLUSTER}
        else "",
        kubernetes=kubernetes,
        distribution=distribution_of(kubernetes),
        toolkit=_image_of("container-toolkit", operands),
        mig_manager=_image_of("mig-manager", operands),
        cdi=lead.uses_cdi if lead else None,
        nri=bool(lead.uses_nri) if lead else None,  # off by default: cdi.nriPluginEnabled is opt-in
        rdma=_any_switch_on(each.uses_rdma for each in objects),
        gds=_any_switch_on(each.uses_gds for each in objects),
        gdrcopy=_any_switch_on(each.uses_gdrcopy for each in objects),
        asked=_wanted_version(lead, operands),
    )
    installing = [each for each in objects if each.kind != "GPUCluster" and not each.is_driver_off]
    precompiled = frozenset(_driver(each) for each in installing if each.use_precompiled)
    modules = {_driver(each): each.kernel_modules for each in installing}
    return Surroundings(operator, mode, facts, precompiled, modules)


def _driver(each: DriverObject) -> str:
    """Returns the owner of the driver as nodes name it; empty for the ClusterPolicy."""
    return each.name if each.kind == "NVIDIADriver" else ""


def compare_combinations(cluster: Cluster, *, user: Any, today: date) -> tuple[Surroundings, Comparison]:
    """Six queries, and those of the rights. Counts only the nodes that the user may see."""
    around = surroundings(read_drivers(cluster))
    return around, compare(cluster, around, user=user, today=today)


def compare(cluster: Cluster, around: Surroundings, *, user: Any, today: date) -> Comparison:
    """Two queries. Of a cluster's GPU nodes of NVIDIA; without any, what concerns the cluster alone.

    `user` None: whoever may see what.
    """
    groups = _groups(cluster, user)
    shown = groups[:AT_MOST]
    if not shown:
        return Comparison(_without_nodes(around, today), 0, 0, is_truncated=False)
    counted: Counter[Verdict] = Counter()
    for group in shown:
        for verdict in evaluate(_facts(group, around), today=today):
            counted[verdict] += group["number"]
    return Comparison(_verdict_lines(counted.items()), sum(group["number"] for group in shown), len(shown),
                      is_truncated=len(groups) > AT_MOST)  # fmt: skip


def compare_node(node: Node, around: Surroundings, *, today: date) -> list[Verdict]:
    """No query. The worst first; none for a node without GPUs of NVIDIA."""
    if not is_compared(node):
        return []
    return evaluate(_facts(row_of(node), around), today=today)


@dataclass(frozen=True)
class NodeVerdict:
    verdict: Verdict
    is_common: bool  # true for most GPU nodes of the cluster


def compare_within_cluster(node: Node, *, user: Any, today: date) -> list[NodeVerdict]:
    """Returns the results for a node, the worst first; none for a node without GPUs of NVIDIA. Six queries."""
    around, compared = compare_combinations(node.cluster, user=user, today=today)
    common = {line.verdict for line in compared.lines if 2 * line.nodes > compared.nodes}
    return [NodeVerdict(each, each in common) for each in compare_node(node, around, today=today)]


def compare_driver(nodes: Iterable[Node], around: Surroundings, driver: str, *, today: date) -> tuple[Line, ...]:
    """Returns the matrix results of these nodes if they ran this driver. No query."""
    rows = [row_of(node) for node in nodes if is_compared(node)]
    groups = Counter(tuple(row.items()) for row in rows)
    counted: Counter[Verdict] = Counter()
    for group, number in groups.items():
        facts = _facts(dict(group), around)
        anyway = set(evaluate(replace(facts, driver=""), today=today))
        for verdict in evaluate(replace(facts, driver=driver), today=today):
            if verdict not in anyway:
                counted[verdict] += number
    return _verdict_lines(counted.items())


def is_compared(node: Node) -> bool:
    """The matrix is of NVIDIA's GPUs."""
    return node.is_gpu_node and node.gpu_vendor in OURS


def row_of(node: Node) -> dict[str, Any]:
    """Returns one node's columns as `_groups` reads them."""
    return {
        "os_image": node.os_image,
        "openshift": node.labels.get(OPENSHIFT),
        "aks": node.labels.get(AKS),
        "kubelet_version": node.kubelet_version,
        "container_runtime": node.container_runtime,
        "reported_driver": "" if node.driver_unknown_since else node.driver_version,
        "gpu_product": node.gpu_product,
        "mig_strategy": node.mig_strategy,
        "driver_owner": node.driver_owner,
        "is_pre": node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED,
        "kernel": node.kernel,
    }


def _label(key: str) -> Subquery:
    """Returns a label of a few nodes. Without its own query SQLite would sort all labels of all nodes."""
    return Subquery(Node.objects.filter(pk=OuterRef("pk")).order_by().values(said=LabelValue(key)))


def _groups(cluster: Cluster, user: Any) -> list[dict[str, Any]]:
    """The largest first. Of most systems the sums say everything; of the others nodes are read, for their labels."""
    every = SegmentSums.objects.all() if user is None else SegmentSums.objects.visible_to(user)
    sums = every.filter(cluster=cluster, gpu_vendor__in=OURS)
    in_sums = [column for column in ALIKE if column not in OF_LABELS]
    said = sums.exclude(LABELS_MATTER).annotate(reported_driver=REPORTED_DRIVER_OF_SUMS)
    kept = said.values(*in_sums).annotate(number=Sum("nodes"))
    groups = [dict.fromkeys(OF_LABELS) | group for group in kept]
    if sums.filter(LABELS_MATTER).exists():
        groups += _read_with_labels(cluster, user)
    return sorted(groups, key=lambda group: (-group["number"], *(str(group[column] or "") for column in ALIKE)))


def _read_with_labels(cluster: Cluster, user: Any) -> QuerySet[Node, dict[str, Any]]:
    every = Node.objects.all() if user is None else Node.objects.visible_to(user)
    nodes = every.with_gpus().filter(LABELS_MATTER, cluster=cluster, gpu_vendor__in=OURS)
    pre_installed = Case(When(Exact(_label(DEPLOY_DRIVER), PRE_INSTALLED), then=True), default=False)
    annotated = nodes.order_by().annotate(
        is_pre=Case(When(PRE_MATTERS, then=pre_installed), output_field=BooleanField(null=True)),
        openshift=Case(When(IS_OPENSHIFT, then=_label(OPENSHIFT)), output_field=TextField(null=True)),
        aks=Case(When(ON_AZURE, then=_label(AKS)), output_field=TextField(null=True)),
    )
    return annotated.values(*ALIKE).annotate(number=Count("pk"))


def _facts(group: dict[str, Any], around: Surroundings) -> Facts:
    owner = group["driver_owner"] if around.mode.mode in {DriverSetBy.NVIDIA_DRIVER, DriverSetBy.GPU_CLUSTER} else ""
    return replace(
        around.facts,
        os=group["os_image"],
        openshift=group["openshift"] or "",
        distribution="aks" if group["aks"] else around.facts.distribution,
        kernel=group["kernel"],
        kubelet=group["kubelet_version"],
        runtime=group["container_runtime"],
        driver=group["reported_driver"],
        product=group["gpu_product"],
        mig=group["mig_strategy"],
        is_precompiled=owner in around.precompiled,
        modules="" if group["is_pre"] else around.modules.get(owner, ""),
        is_preinstalled=None if group["is_pre"] is None else bool(group["is_pre"]),
    )


def _without_nodes(around: Surroundings, today: date) -> tuple[Line, ...]:
    said = evaluate(around.facts, today=today)
    return tuple(Line(verdict, 0) for verdict in said if verdict.rule in {"operator", "operands"})


def _verdict_lines(counted: Iterable[tuple[Verdict, int]]) -> tuple[Line, ...]:
    return tuple(Line(verdict, nodes) for verdict, nodes in sorted(counted, key=lambda pair: pair[0].place))


def _wanted_version(lead: DriverObject | None, operands: Sequence[Operand]) -> dict[str, str]:
    """Returns the wanted version from the ClusterPolicy, else from the operator's DaemonSets."""
    rolled_out = {each.operand: tag for each in operands if (tag := tag_of(each.image))}
    return rolled_out | (lead.operand_versions if lead else {})


def _image_of(operand: str, operands: Sequence[Operand]) -> str:
    return next((tag_of(each.image) for each in operands if each.operand == operand), "")


def _any_switch_on(switches: Iterable[bool | None]) -> bool | None:
    """Returns whether any switch is on; None if none is on and some are unknown."""
    said = set(switches)
    return True if True in said else (False if said == {False} else None)
