"""Conversion of a choice of facets to an equivalent label selector, or the reason why there is none."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.text import slugify

from fleet.models import Cluster, Node
from fleet.segments.facets import BY_KEY, NUMA, UNKNOWN, Choice, Facet, narrow
from fleet.segments.label_conditions import LabelValue, labelled
from gpu.labels import GPU_PRESENT
from kube import selectors

OF_THE_CLUSTER = {"cluster", "operator_version"}  # equal for all nodes of a pool, which belongs to one cluster
NAME_AT_MOST = 63


class Unspeakable(Exception):
    """No label expresses this for exactly these nodes."""


@dataclass(frozen=True)
class PoolOffer:
    """A draft of a new pool. Its preview shows the real nodes."""

    cluster: Cluster | None = None
    selector: str = ""
    name: str = ""
    why_not: tuple[str, ...] = ()  # parts of the choice that the selector lacks, with reasons


class Spelling:
    """The labels that separate one cluster's GPU nodes, loaded per facet."""

    def __init__(self, cluster: Cluster) -> None:
        self.nodes = Node.objects.filter(cluster=cluster).with_gpus().order_by()
        self._said: dict[str, dict[str, dict[str | None, set[str]]]] = {}

    def requirement(self, facet: Facet, values: Iterable[str]) -> str:
        """Returns one requirement of a selector.

        :raises Unspeakable: with the reason
        """
        if facet.why_no_label:
            raise Unspeakable(f"{facet.title}: {facet.why_no_label}.")
        wanted = set(values)
        if facet.is_verbatim:
            verbatim = {None if value == UNKNOWN else value: {value} for value in wanted}
            if spelled := _requirement_text(facet.labels[0], verbatim, wanted):
                return spelled
            raise Unspeakable(f"{facet.title}: one requirement cannot select both “has none” and a value.")
        for key, said in self._labels(facet).items():
            if spelled := _requirement_text(key, said, wanted):
                return spelled
        raise Unspeakable(f"{facet.title}: no label selects exactly these nodes.")

    def _labels(self, facet: Facet) -> dict[str, dict[str | None, set[str]]]:
        """Returns the values by label key and label value; None: nodes without it. One query for all keys."""
        if facet.key not in self._said:
            columns = {f"said_{at}": LabelValue(key) for at, key in enumerate(facet.labels)}
            rows = self.nodes.annotate(**columns)
            rows = rows.annotate(numa=LabelValue(NUMA)) if facet.key == "numa" else rows
            found: dict[str, dict[str | None, set[str]]] = {key: defaultdict(set) for key in facet.labels}
            for value, *labels in rows.values_list(facet.column, *columns).distinct():
                for key, label in zip(facet.labels, labels, strict=True):
                    found[key][label].add(value or UNKNOWN)
            self._said[facet.key] = found
        return self._said[facet.key]


def _requirement_text(key: str, said: dict[str | None, set[str]], wanted: set[str]) -> str:
    """Returns the requirement of one label. Blank: it does not separate the wanted values."""
    mine = {label for label, values in said.items() if values & wanted}
    if not mine or any(said[label] - wanted for label in mine):
        return ""
    if None in mine:
        return f"!{key}" if mine == {None} else ""
    words = sorted(label for label in mine if label is not None)
    if not all(re.fullmatch(selectors.VALUE, word) for word in words):
        return ""
    return f"{key}={words[0]}" if len(words) == 1 else f"{key} in ({','.join(words)})"


def offer(nodes: QuerySet[Node], choice: Choice) -> PoolOffer:
    """Drafts a pool of the chosen nodes. `nodes` are the visible ones."""
    chosen = narrow(nodes, choice)
    clusters = list(Cluster.objects.filter(pk__in=chosen.order_by().values("cluster"))[:2])
    if not clusters:
        return PoolOffer(why_not=("No GPU node has all chosen values.",))
    if len(clusters) > 1:
        return PoolOffer(
            why_not=("A pool belongs to one cluster, and these nodes belong to several. Choose a cluster.",)
        )
    spelling = Spelling(clusters[0])
    spelled: list[str] = []
    words: list[str] = []
    why_not: list[str] = []
    for key, values in choice.items():
        if key in OF_THE_CLUSTER:
            continue
        try:
            spelled.append(spelling.requirement(BY_KEY[key], values))
            words += values
        except Unspeakable as reason:
            why_not.append(str(reason))
    if len(",".join([*spelled, f"{GPU_PRESENT}=true"])) > selectors.LONGEST or len(spelled) >= selectors.MOST:
        why_not.append(f"The selector would be longer than {selectors.LONGEST} characters.")
        spelled = []
    # An empty selector is better than one that matches every GPU node.
    selector = "" if why_not and not spelled else with_gpus_only(clusters[0], spelled)
    return PoolOffer(clusters[0], selector, pool_name(words), tuple(why_not))


def with_gpus_only(cluster: Cluster, requirements: list[str]) -> str:
    """Returns the selector, with the GPU label added if it would match other nodes."""
    selector = ",".join(requirements)
    picked = Node.objects.filter(labelled(selectors.parse(selector)), cluster=cluster)
    without = picked.exclude(is_gpu_node=True)
    if without.exists() and not picked.with_gpus().exclude(labelled(selectors.parse(f"{GPU_PRESENT}=true"))).exists():
        return ",".join([*requirements, f"{GPU_PRESENT}=true"])
    return selector


def pool_name(values: Iterable[str]) -> str:
    """Returns a pool name such as h200-eu-a."""
    words = (value.removeprefix("NVIDIA-") for value in values if value != UNKNOWN)
    return slugify("-".join(words).replace(".", "-").replace("_", "-"))[:NAME_AT_MOST].strip("-")
