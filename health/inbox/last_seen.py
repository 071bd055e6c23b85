"""Findings that cannot be confirmed now, and when each was last seen, for pages and REST.

If a cluster is not live, only findings about its observation and its telemetry are confirmed. If it is live, findings
of rules that read a stale kind are not confirmed. Findings about GPUs are not confirmed where telemetry is silent,
where the exporters are too many or may not be read, and where the node's exporter is silent.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.freshness.observation_state import all_observations
from fleet.models import Bookmark
from health.evaluation.exporter_silence import of_silent_nodes
from health.inbox.orphaned_findings import GPU_RULE_KEYS
from health.models import Finding
from health.models.telemetry_source import STALE_AFTER
from health.rules import RULES
from health.rules.exporter_silent import ExporterSilent
from health.sources.cluster_telemetry import standings_of
from health.sources.node_telemetry import instant
from wording.instants import to_the_second

# Rules that are evaluated wherever the kinds that they read are live.
KINDS_READ = {rule.key: rule.reads for rule in RULES if rule.reads}
OF_WHAT_IS_SEEN = GPU_RULE_KEYS.union(KINDS_READ)


@dataclass(frozen=True)
class LastSeen:
    """The reason why a finding cannot be confirmed now, and its last confirmation. `at` is None if unknown."""

    at: datetime | None

    @property
    def sentence(self) -> str:
        if self.at is None:
            return "It is unknown whether the fault still exists."
        return f"It is unknown since {to_the_second(self.at)} whether the fault still exists."


def unconfirmed_findings(
    findings: Collection[Finding], *, last_seen_at: Mapping[int, datetime | None] | None = None, now: datetime
) -> dict[int, LastSeen]:
    """Returns by key the unresolved findings that cannot be confirmed now.

    `last_seen_at` holds the last observation of clusters that are not live, by key, if the caller knows it; else two
    queries more. One more query where a rule reads kinds of a live cluster, and three where any finding is about its
    GPUs.
    """
    unresolved = [finding for finding in findings if finding.resolved_at is None]
    waiting = [finding for finding in unresolved if finding.node_id or finding.rule in OF_WHAT_IS_SEEN]
    if not waiting:
        return {}
    if last_seen_at is None:
        last_seen_at = {
            key: observation.last_seen_at
            for key, observation in all_observations(now=now).items()
            if not observation.is_live
        }
    found = {one.pk: LastSeen(last_seen_at[one.cluster_id]) for one in waiting if one.cluster_id in last_seen_at}
    found |= _paused_findings([one for one in waiting if one.pk not in found and one.rule in KINDS_READ], now=now)
    of_gpus = [one for one in waiting if one.pk not in found and one.rule in GPU_RULE_KEYS]
    if of_gpus:
        silent, nodes = without_telemetry({one.cluster_id for one in of_gpus}, now=now), _silent_nodes(of_gpus)
        for one in of_gpus:
            beside = nodes.get(one.node_id) if one.rule != ExporterSilent.key else None
            if last := silent.get(one.cluster_id) or beside:
                found[one.pk] = last
    return found


def _paused_findings(findings: Collection[Finding], *, now: datetime) -> dict[int, LastSeen]:
    """Returns findings whose rule is paused since a kind that it reads became stale, with that time."""
    if not findings:
        return {}
    kinds = {kind for one in findings for kind in KINDS_READ[one.rule]}
    marks = Bookmark.objects.filter(cluster__in={one.cluster_id for one in findings}, kind__in=kinds)
    lacking = {(mark.cluster_id, mark.kind): mark.last_seen_at for mark in marks if not mark.is_fresh(now=now)}
    found: dict[int, LastSeen] = {}
    for one in findings:
        its = {(one.cluster_id, kind) for kind in KINDS_READ[one.rule]} & lacking.keys()
        if its:
            ages = [at for key in its if (at := lacking[key]) is not None]
            found[one.pk] = LastSeen(min(ages) if len(ages) == len(its) else None)
    return found


def dated(
    findings: Iterable[Finding], *, last_seen_at: Mapping[int, datetime | None] | None = None, now: datetime
) -> list[Finding]:
    """Sets `last_seen` on each finding; None if it is confirmed now."""
    found = list(findings)
    last_seen = unconfirmed_findings(found, last_seen_at=last_seen_at, now=now)
    for finding in found:
        finding.last_seen = last_seen.get(finding.pk)  # type: ignore[attr-defined]
    return found


def without_telemetry(clusters: Iterable[int], *, now: datetime) -> dict[int, LastSeen]:
    """Returns the clusters without GPU telemetry, with two queries."""
    return {
        key: LastSeen(instant(standing.silent_since))
        for key, standing in standings_of(list(clusters), now=now).items()
        if not standing.is_reporting
    }


def _silent_nodes(findings: Iterable[Finding]) -> dict[int | None, LastSeen]:
    """Returns silent nodes by key. An exporter is silent once its last sample is too old."""
    since = of_silent_nodes().filter(node__in={one.node_id for one in findings}).values_list("node", "since")
    return {node: LastSeen(at - STALE_AFTER) for node, at in since}
