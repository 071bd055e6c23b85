"""The rulebook: each rule with its text, its scope, its confirmation time and its causes."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef

from fleet.models import Cluster, Node
from health.correlation import EXPLAINED_BY
from health.evaluation.finding_sources import SOURCES
from health.evaluation.signals import AnyRule
from health.inbox.last_seen import without_telemetry
from health.lifecycle import FindingState
from health.models import Finding, FindingAct, RuleShadow
from health.rules import RULES
from health.rules.base import NODE
from health.rules.gpus import GPU_RULES
from health.rules.limits import Comparing
from health.sources.cluster_telemetry import standings_of
from health.sources.exported_metrics import NodesCounted, exporting_of
from people.models import User
from wording.numbers import count

SHOWN = (FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.MUTED)
FOR_DEVELOPERS = re.compile(r" \(Z\d+(?:, Z\d+)*\)")  # references in a module docstring, for developers


@dataclass(frozen=True)
class LimitsOnPage:
    """The rule's own limits with their unit."""

    warn: float
    critical: float | None
    warn_after: timedelta
    critical_after: timedelta
    unit: str
    by_class: str = ""  # the limits by workload class, in a sentence; blank: the numbers hold everywhere

    @property
    def warn_after_s(self) -> float:
        return self.warn_after.total_seconds()

    @property
    def critical_after_s(self) -> float:
        return self.critical_after.total_seconds()


@dataclass(frozen=True)
class RuleEntry:
    key: str
    title: str
    says: str  # what is wrong where it speaks
    of: str  # what it is asked of
    after: timedelta  # how long it must be so
    reads: tuple[str, ...]  # kinds of Kubernetes, or metrics of exporters
    explained_by: tuple[str, ...]  # titles of the rules under whose findings its own are listed
    steps: Sequence[str] = ()  # recommended action of its findings, in order
    limits: LimitsOnPage | None = None  # None: it compares no number that a pool may have of its own

    @property
    def after_s(self) -> float:
        return self.after.total_seconds()


@dataclass(frozen=True)
class SeenIn:
    """The coverage of a GPU rule in one cluster: the nodes that export any metric that it reads."""

    cluster: str
    nodes: NodesCounted

    @property
    def sentence(self) -> str:
        """Returns a sentence such as "on 12 of 40 nodes nothing that it reads is exported"; empty at full coverage."""
        of = count(self.nodes.of, "node")
        lacking = f"{self.nodes.not_exported} of {of} export no metric of this rule"
        silent = f"{self.nodes.never_reported} of {of} reported nothing within a day"
        said = ((self.nodes.not_exported, lacking), (self.nodes.never_reported, silent))
        return ", and ".join(words for number, words in said if number)


@dataclass(frozen=True)
class RuleOnPage:
    entry: RuleEntry
    open: int  # findings that the person sees and that stand on their own
    accepted: int
    dismissed: int
    shadow: RuleShadow | None = None  # shadow mode; None: off
    would_notify: int = 0  # in shadow mode: findings that the person sees and that would be open
    seen_in: tuple[SeenIn, ...] = ()  # of a rule on GPUs: by cluster that the person sees and that sends telemetry
    silent_in: tuple[str, ...] = ()  # of a rule on GPUs: clusters whose GPUs send no telemetry
    listed: int = 0  # open findings that the person sees listed under their causes, in addition

    @property
    def limits(self) -> LimitsOnPage | None:
        return self.entry.limits

    @property
    def blind_in(self) -> list[str]:
        """Returns the clusters that export none of the rule's metrics."""
        return [one.cluster for one in self.seen_in if 0 < one.nodes.of == one.nodes.not_exported]

    @property
    def partly_in(self) -> list[SeenIn]:
        """Returns the clusters where the rule covers some of the nodes, or may."""
        return [one for one in self.seen_in if one.nodes.exported < one.nodes.of != one.nodes.not_exported]

    @property
    def partly(self) -> NodesCounted:
        """Returns the sum of these clusters."""
        those = [one.nodes for one in self.partly_in]
        return NodesCounted(
            exported=sum(one.exported for one in those),
            not_exported=sum(one.not_exported for one in those),
            never_reported=sum(one.never_reported for one in those),
        )


def every_rule() -> list[RuleEntry]:
    """Returns all rules by title."""
    found = [_entry(rule, rule.subject, rule.reads) for rule in RULES]
    found += [_entry(rule, "GPU", rule.metrics) for rule in GPU_RULES]
    found += [
        RuleEntry(source.key, source.title, source.says, source.about, source.after, (), (), source.steps)
        for source in SOURCES.values()
    ]
    return sorted(found, key=lambda entry: entry.title)


def on_page(user: User, *, now: datetime) -> list[RuleOnPage]:
    """Returns the rulebook, with 12 queries and two Redis requests for each cluster with telemetry."""
    own = Finding.objects.without_visible_cause(user).open().order_by()
    open_now = dict(own.values_list("rule").annotate(number=Count("pk")))
    every = Finding.objects.visible_to(user).open().order_by()
    with_listed = dict(every.values_list("rule").annotate(number=Count("pk")))
    tried = Finding.objects.visible_to(user).filter(is_shadow=True, state__in=SHOWN).order_by()
    would_notify = dict(tried.values_list("rule").annotate(number=Count("pk")))
    shadows = {row.rule: row for row in RuleShadow.objects.in_force()}
    acts = FindingAct.objects.visible_to(user).filter(verb__in=("accept", "dismiss")).order_by()
    said = {
        (rule, verb): number for rule, verb, number in acts.values_list("rule", "verb").annotate(number=Count("pk"))
    }
    seen_in, silent = _coverage_by_rule(user, now=now), _silent_clusters(user, now=now)
    on_gpus = {rule.key for rule in GPU_RULES}
    return [
        RuleOnPage(
            entry,
            open_now.get(entry.key, 0),
            said.get((entry.key, "accept"), 0),
            said.get((entry.key, "dismiss"), 0),
            shadows.get(entry.key),
            would_notify.get(entry.key, 0),
            seen_in.get(entry.key, ()),
            silent if entry.key in on_gpus else (),
            listed=max(0, with_listed.get(entry.key, 0) - open_now.get(entry.key, 0)),
        )
        for entry in every_rule()
    ]


def _coverage_by_rule(user: User, *, now: datetime) -> dict[str, tuple[SeenIn, ...]]:
    """Returns the coverage by rule and cluster name."""
    clusters = dict(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))
    reporting = {key: standing for key, standing in standings_of(clusters, now=now).items() if standing.is_reporting}
    exporting = exporting_of(reporting, Node.objects.visible_to(user))
    return {
        rule.key: tuple(SeenIn(clusters[key], each.of_rule(rule)) for key, each in exporting.items())
        for rule in GPU_RULES
    }


def _silent_clusters(user: User, *, now: datetime) -> tuple[str, ...]:
    """Returns the names of clusters without telemetry, in order. Clusters without GPUs are left out."""
    with_gpus = Cluster.objects.visible_to(user).filter(Exists(Node.objects.with_gpus().filter(cluster=OuterRef("pk"))))
    clusters = dict(with_gpus.order_by("name").values_list("pk", "name"))
    silent = without_telemetry(clusters, now=now)
    return tuple(name for key, name in clusters.items() if key in silent)


def _entry(rule: Any, of: str, reads: tuple[str, ...]) -> RuleEntry:
    every: tuple[AnyRule, ...] = (*RULES, *GPU_RULES)
    titles = {each.key: each.title for each in every}
    causes = tuple(titles.get(key, key) for key in EXPLAINED_BY.get(rule.key, ()))
    written = inspect.getdoc(inspect.getmodule(type(rule))) or rule.title
    says = FOR_DEVELOPERS.sub("", " ".join(written.split("\n\n")[0].split()))
    return RuleEntry(
        *(rule.key, rule.title, says, "each node" if of == NODE else of, rule.after, reads, causes),
        steps=rule.steps,
        limits=_limits(rule),
    )


def _limits(rule: Any) -> LimitsOnPage | None:
    if not isinstance(rule, Comparing):
        return None
    own = rule.limits
    by_class = getattr(rule, "limits_by_class", "")
    return LimitsOnPage(own.warn, own.critical, own.warn_after, own.critical_after, rule.scale.unit, by_class)
