"""The limits in force for each node: the rule's own, or those of a pool that contains the node."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from fleet.models import Cluster, Pool
from health.evaluation.signals import AnyRule
from health.models import PoolLimits
from health.rules.gpus.base import GpuRule
from health.rules.limits import Comparing, strictest
from health.telemetry.snapshot import TelemetrySnapshot

# Names of nodes by rule as it holds for them: the rule with the limits of their pools. Each node is in one of them.
Variants = tuple[tuple[AnyRule, frozenset[str]], ...]
R = TypeVar("R", bound=AnyRule)


@dataclass(frozen=True)
class LimitsInForce:
    by_rule: Mapping[str, Variants] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, rules: Iterable[AnyRule]) -> "LimitsInForce":
        """Loads the limits with one query; one more if a pool of the cluster has any."""
        rows = list(PoolLimits.objects.filter(pool__cluster=cluster).order_by("pk"))
        comparing = {rule.key: rule for rule in rules if isinstance(rule, Comparing)}
        rows = [row for row in rows if row.rule in comparing]
        found: dict[str, list[tuple[AnyRule, frozenset[str]]]] = {}
        for pools, nodes in _members({row.pool_id for row in rows}).items():
            of_rules: dict[str, list[PoolLimits]] = {}
            for row in rows:
                if row.pool_id in pools:
                    of_rules.setdefault(row.rule, []).append(row)
            for rule, its in of_rules.items():
                found.setdefault(rule, []).append((_rule_with_limits(comparing[rule], its), nodes))
        return cls({rule: tuple(variants) for rule, variants in found.items()})

    def rule_for(self, rule: R, node: str) -> R:
        variants = self.by_rule.get(rule.key)
        if variants is None:  # no pool has its own: nearly always
            return rule
        its = (variant for variant, nodes in variants if node in nodes)
        return cast("R", next(its, rule))

    def rules_for(self, rules: Collection[R], node: str) -> Collection[R]:
        """Returns `rule_for` of each rule."""
        return [self.rule_for(rule, node) for rule in rules] if self.by_rule else rules

    def suspects(self, rule: GpuRule, snapshot: TelemetrySnapshot) -> set[int]:
        """Returns the positions of devices that may be faulty by the limits of their node."""
        found = set(rule.suspects(snapshot))
        for variant, nodes in self.by_rule.get(rule.key, ()):
            places = cast("GpuRule", variant).suspects(snapshot)
            found |= {place for place in places if snapshot.devices[place].node_name in nodes}
        return found


def _rule_with_limits(rule: AnyRule, rows: Iterable[PoolLimits]) -> AnyRule:
    variant: AnyRule = replace(cast("Any", rule), limits=strictest([row.limits for row in rows]))
    return variant


def _members(pools: set[int]) -> dict[frozenset[int], frozenset[str]]:
    """Returns node names by the set of pools that contain them."""
    if not pools:
        return {}
    found: dict[str, set[int]] = {}
    for pool, name in Pool.nodes.through.objects.filter(pool__in=pools).values_list("pool_id", "node__name"):
        found.setdefault(name, set()).add(pool)
    together: dict[frozenset[int], set[str]] = {}
    for name, its in found.items():
        together.setdefault(frozenset(its), set()).add(name)
    return {its: frozenset(names) for its, names in together.items()}
