"""The pods on the nodes of a cluster that rules of waiting pods name, from the mirror."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from django.db.models import Count, Sum, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from capacity.namespace_rows import labels_of_namespaces
from capacity.wait_reasons.neighbours import Neighbours, PlacedPod, PodExclusion, PreemptiblePods, count_pods
from capacity.wait_reasons.obstacles import CPU, MEMORY, PODS
from capacity.wait_reasons.pod_rules import PodPort, PodTerm, WantedPods, read_port, read_terms, selects_namespaces
from capacity.wait_reasons.requirements import WaitingPod
from fleet.models import Bookmark, Pod, PriorityClass
from fleet.models.pod import PodQuerySet
from kube.resources import PRIORITY_CLASSES

EXCLUDING = ("anti_affinity", "host_ports")
LABELS_AT_MOST = 12  # labels that are read one by one; with more, whole sets of labels are read


def rules_wanted(pods: Sequence[WaitingPod]) -> frozenset[WantedPods]:
    """Returns what the rules of these pods count."""
    return frozenset(each for pod in pods for each in pod.rules.wanted())


@dataclass(frozen=True)
class Priorities:
    """The priorities of a cluster by PriorityClass. Pods without a class have the default."""

    by_class: Mapping[str, int]
    default: int

    @classmethod
    def read(cls, cluster_id: int) -> Self:
        rows = list(PriorityClass.objects.filter(cluster=cluster_id))
        default = next((row.value for row in rows if row.is_default), 0)
        return cls({row.name: row.value for row in rows}, default)

    def of(self, name: str) -> int:
        return self.by_class.get(name, self.default)

    def classes_below(self, priority: int) -> list[str]:
        below = [name for name, value in self.by_class.items() if value < priority]
        return [*below, *([""] if self.default < priority else [])]


def read_neighbours(cluster_id: int, wanted: frozenset[WantedPods], *, below: int) -> Neighbours:
    """Reads the GPU pods that these rules count, what keeps other pods away, and pods of lower priority.

    Two queries, one more with rules, one with a priority above others, and two with namespaces by their labels. Pods
    without GPUs count by their anti-affinity and host ports on GPU nodes alone: their labels are not mirrored.
    """
    rows = Pod.objects.filter(cluster=cluster_id, node__isnull=False).not_done()
    excluding = rows.filter(exclusions__has_any_keys=EXCLUDING).values_list(
        "node_id", "namespace", "name", "exclusions"
    )
    terms: dict[PodTerm, tuple[str, set[int]]] = {}
    ports: dict[PodPort, set[int]] = defaultdict(set)
    known = cache(lambda: labels_of_namespaces(cluster_id))
    for node, namespace, name, stored in excluding.iterator():
        exclusions = stored or {}
        stored_terms = exclusions.get("anti_affinity", ())
        for term in read_terms(stored_terms, namespace, known() if selects_namespaces(stored_terms) else None):
            terms.setdefault(term, (f"{namespace}/{name}", set()))[1].add(node)
        for port in exclusions.get("host_ports", ()):
            ports[read_port(port)].add(node)
    return Neighbours(
        count_pods(_labelled(rows, wanted), wanted) if wanted else {},
        [PodExclusion(term, example, frozenset(nodes)) for term, (example, nodes) in terms.items()],
        {port: frozenset(nodes) for port, nodes in ports.items()},
        preemptible_pods(cluster_id, below),
    )


def preemptible_pods(cluster_id: int, below: int) -> list[PreemptiblePods] | None:
    """Returns the pods below a priority, equal ones of a node together. None: priority classes were never read."""
    rows = Pod.objects.filter(cluster=cluster_id, node__isnull=False).not_done()
    if not Bookmark.objects.knows_all(cluster_id, PRIORITY_CLASSES.name):
        return None
    priorities = Priorities.read(cluster_id)
    lower = priorities.classes_below(below)
    if not lower:
        return []
    read: Any = rows.filter(priority_class__in=lower, deleted_at=None).annotate(requests=Cast("resources", TextField()))
    groups = read.order_by().values_list("node_id", "priority_class", "requests").annotate(
        Count("pk"), Sum("cpu_m"), Sum("memory_bytes")
    )  # fmt: skip
    decoded = cache(json.loads)
    return [
        PreemptiblePods(
            node,
            priorities.of(name),
            number,
            {each: amount * number for each, amount in decoded(requests).items()}
            | {CPU: cpu, MEMORY: memory, PODS: number},
        )
        for node, name, requests, number, cpu, memory in groups
    ]


def _labelled(rows: PodQuerySet, wanted: frozenset[WantedPods]) -> Iterator[PlacedPod]:
    """Yields the GPU pods of the namespaces that are named, with the labels that are read."""
    selectors = [selector for each in wanted for selector in each.selectors]
    keys = sorted({key for selector in selectors for key in selector.label_keys})
    namespaces = [selector.namespaces for selector in selectors]
    rows = rows.tenants()
    if None not in namespaces:
        rows = rows.filter(namespace__in=frozenset().union(*filter(None, namespaces)))
    if len(keys) > LABELS_AT_MOST:
        columns = ("node_id", "namespace", "labels", "deleted_at")
        for node, namespace, every, deleted in rows.values_list(*columns).iterator():
            yield PlacedPod(node, namespace, {key: every[key] for key in keys if key in every}, deleted is not None)
        return
    names = {f"label_{number}": key for number, key in enumerate(keys)}
    read = rows.annotate(**{name: KeyTextTransform(key, "labels") for name, key in names.items()})
    for node, namespace, deleted, *values in read.values_list("node_id", "namespace", "deleted_at", *names).iterator():
        labels: Mapping[str, str] = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
        yield PlacedPod(node, namespace, labels, deleted is not None)
