"""Whose limits hold for which node: of a rule that compares, its own, or those of a pool that the node is in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from fleet.models import Cluster, Pool
from health.models import PoolLimits
from health.rules.gpus.base import Comparing, GpuRule
from health.telemetry.frame import Frame

# Names of nodes by rule as it holds for them: the rule with the limits of their pool.
Variants = tuple[tuple[GpuRule, frozenset[str]], ...]


@dataclass(frozen=True)
class LimitsInForce:
    """Of one cluster."""

    by_rule: Mapping[str, Variants] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, rules: Iterable[GpuRule]) -> "LimitsInForce":
        """One query; one more where a pool of the cluster has any."""
        rows = list(PoolLimits.objects.filter(pool__cluster=cluster).select_related("pool__cluster").order_by("pk"))
        comparing = {rule.key: rule for rule in rules if isinstance(rule, Comparing)}
        rows = [row for row in rows if row.rule in comparing]
        members = _members({row.pool_id for row in rows})
        found: dict[str, list[tuple[GpuRule, frozenset[str]]]] = {}
        for row in sorted(rows, key=lambda row: row.warn):  # of several pools of a node the strictest is first
            variant = replace(cast("Any", comparing[row.rule]), limits=row.limits)
            found.setdefault(row.rule, []).append((variant, members.get(row.pool_id, frozenset())))
        return cls({rule: tuple(variants) for rule, variants in found.items()})

    def rule_for(self, rule: GpuRule, node: str) -> GpuRule:
        return next((variant for variant, nodes in self.by_rule.get(rule.key, ()) if node in nodes), rule)

    def suspects(self, rule: GpuRule, frame: Frame) -> set[int]:
        """The places of the devices that may be wrong by the limits of whoever they are."""
        found = set(rule.suspects(frame))
        for variant, nodes in self.by_rule.get(rule.key, ()):
            found |= {place for place in variant.suspects(frame) if frame.devices[place].node_name in nodes}
        return found


def _members(pools: set[int]) -> dict[int, frozenset[str]]:
    if not pools:
        return {}
    found: dict[int, set[str]] = {}
    for pool, name in Pool.nodes.through.objects.filter(pool__in=pools).values_list("pool_id", "node__name"):
        found.setdefault(pool, set()).add(name)
    return {pool: frozenset(names) for pool, names in found.items()}
