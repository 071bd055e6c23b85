"""The findings that the rules about GPUs open on metrics that a fault moves. Pure: the limits are the rules' own."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import GpuFacts, GpuRule, XidSeen
from health.telemetry.metrics import METRICS, MetricKind
from health.telemetry.snapshot_memory import Growth

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, STEP, LONGEST = timedelta(hours=1), timedelta(minutes=1), timedelta(hours=12)
USUAL: Mapping[str, float] = {"temperature_celsius": 55, "memory_temperature_celsius": 65, "power_watts": 350}


class FindingOpens(NamedTuple):
    """A finding that opens, or gets worse, on a GPU with the fault."""

    after: timedelta  # from the first sign of the fault
    rule: str
    severity: str
    metrics: frozenset[str] = frozenset()  # one of them must be exported; empty: the fault names the rule itself


def findings_of_metrics(metrics: Mapping[str, float], ramp: timedelta) -> tuple[FindingOpens, ...]:
    """Returns the findings by the default limits. A finding opens once its trouble has lasted as its rule asks."""
    rules = (rule for rule in GPU_RULES if not metrics.keys().isdisjoint(rule.metrics))
    return tuple(one for rule in rules for one in _findings_of_rule(rule, metrics, ramp))


def _findings_of_rule(rule: GpuRule, metrics: Mapping[str, float], ramp: timedelta) -> list[FindingOpens]:
    found: list[FindingOpens] = []
    since: dict[str, timedelta] = {}  # by severity
    for step in range(LONGEST // STEP):
        problem = rule.evaluate(_facts(metrics, ramp, step * STEP))
        if problem is None:
            since.clear()
            continue
        lasts = step * STEP - since.setdefault(problem.severity, step * STEP)
        opens_after = rule.after if problem.opens_after is None else problem.opens_after
        if problem.severity not in {one.severity for one in found} and lasts >= (
            problem.worsens_after if found else opens_after
        ):
            its = frozenset(rule.metrics).intersection(metrics)
            found.append(FindingOpens(step * STEP, rule.key, problem.severity.value, its))
    return found


def _facts(metrics: Mapping[str, float], ramp: timedelta, spent: timedelta) -> GpuFacts:
    """Returns a GPU so long after the first sign. A counter reaches its growth an hour, and a gauge its value."""
    now, grown = {}, {}
    at = EPOCH + spent
    for key, target in metrics.items():
        if METRICS[key].kind is MetricKind.COUNTER:
            now[key] = float(math.floor(_total(target, ramp, spent)))
            amount = now[key] - math.floor(_total(target, ramp, spent - HOUR))
            if amount:
                grown[key] = Growth(amount, (at - HOUR).timestamp())
        else:
            usual = USUAL.get(key, 0.0)
            now[key] = usual + (target - usual) * _share(ramp, spent)
    xid = XidSeen(round(metrics["xid"]), EPOCH + ramp) if "xid" in metrics and spent >= ramp else None
    return GpuFacts(
        "",
        "The GPU",
        now=now | ({"xid": 0.0} if not xid and "xid" in now else {}),
        grown=grown,
        at=dict.fromkeys(now, at),
        xid=xid,
        evaluated_at=at,
    )


def _share(ramp: timedelta, spent: timedelta) -> float:
    return min(1.0, spent / ramp) if ramp else 1.0


def _total(an_hour: float, ramp: timedelta, spent: timedelta) -> float:
    """Returns by how much a counter has grown, whose growth rises evenly during the ramp."""
    if spent <= timedelta(0):
        return 0.0
    rising = min(spent, ramp)
    risen = rising * (rising / (2 * ramp)) if ramp else timedelta(0)
    return an_hour * ((risen + spent - rising) / HOUR)
