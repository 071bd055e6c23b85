"""The faults that a rehearsal can give to a new driver, from `data/faults.toml` or a file of yours. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from gpu.entry_files import BadEntry, entry_of, make_entries, read_file
from health.rules import RULES
from health.rules.base import RANKS
from health.rules.gpus import GPU_RULES
from health.telemetry.metrics import METRICS
from rollouts.node_order.node_selection import FACTORS
from rollouts.rehearsal.metric_findings import FindingOpens, findings_of_metrics

FILE = Path(__file__).parent / "data" / "faults.toml"
MOST_SEED = 2**31 - 1
MOST_MINUTES = 14 * 24 * 60
GPU_RULE_KEYS = frozenset(rule.key for rule in GPU_RULES)
RULE_TITLES = {rule.key: rule.title for rule in RULES} | {rule.key: rule.title for rule in GPU_RULES}


class ValidatorFault(StrEnum):
    NONE = ""
    ABSENT = "absent"
    FAILS = "fails"


class NodeFault(StrEnum):
    NONE = ""
    LOST = "lost"
    FLAPS = "flaps"


class PodFault(StrEnum):
    NONE = ""
    CRASH = "crash"
    TENANTS_CRASH = "tenants-crash"
    STAY_AWAY = "stay-away"


@dataclass(frozen=True, kw_only=True)
class DriverFault:
    """The effects of a driver on an affected node. The head of the file describes each field."""

    key: str
    title: str
    after_minutes: int = 0
    factor: str = ""  # all nodes with one value of this property; blank: any nodes
    value: str = ""  # of that property; blank: the seed chooses it
    share_percent: int = 100
    never_loads: bool = False
    validator: ValidatorFault = ValidatorFault.NONE
    node: NodeFault = NodeFault.NONE
    pods: PodFault = PodFault.NONE
    findings: Mapping[str, str] = field(default_factory=dict)  # severity by rule
    metrics: Mapping[str, float] = field(default_factory=dict)  # the value, or of a counter the growth an hour
    missing_gpus: int = 0
    throughput_percent: int = 100
    ramp_minutes: int = 0
    is_exporter_silent: bool = False
    is_source_silent: bool = False
    on_minutes: int = 0  # with off_minutes: the fault alternates
    off_minutes: int = 0

    @property
    def after(self) -> timedelta:
        return timedelta(minutes=self.after_minutes)

    @property
    def on(self) -> timedelta:
        return timedelta(minutes=self.on_minutes)

    @property
    def off(self) -> timedelta:
        return timedelta(minutes=self.off_minutes)

    @cached_property
    def opens(self) -> tuple[FindingOpens, ...]:
        """Returns the findings of an affected node, as they open."""
        named = tuple(FindingOpens(timedelta(0), *each) for each in self.findings.items())
        ramp = timedelta(minutes=self.ramp_minutes)
        return named + (findings_of_metrics(self.metrics, ramp) if self.metrics else ())

    @property
    def shows_by_findings_alone(self) -> bool:
        others = (
            self.never_loads, self.validator, self.node, self.pods, self.missing_gpus, self.is_exporter_silent,
            self.is_source_silent,
        )  # fmt: skip
        return bool(self.findings or self.metrics) and not any(others) and self.throughput_percent == 100

    @property
    def first_finding_after(self) -> timedelta | None:
        """Returns the time from the first sign to the first finding; None if none opens in half a day."""
        return min((one.after for one in self.opens), default=None)

    @property
    def shows_on_idle_nodes(self) -> bool:
        """Returns whether a node without tenants shows the fault, at least to a test Job that runs at once."""
        is_seen_at_once = self.throughput_percent < 100 and not self.ramp_minutes
        return bool(
            self.never_loads
            or self.validator
            or self.node
            or self.pods is PodFault.CRASH
            or self.findings
            or self.metrics
            or self.missing_gpus
            or self.is_exporter_silent
            or self.is_source_silent
            or is_seen_at_once
        )


def _fault(row: Mapping[str, Any]) -> DriverFault:
    fault = entry_of(row, DriverFault)
    for problem in (*_bad_numbers(fault), *_bad_names(fault), *_without_effect(fault)):
        raise ValueError(problem)
    return fault


def _bad_numbers(fault: DriverFault) -> Iterator[str]:
    minutes = (fault.after_minutes, fault.ramp_minutes, fault.on_minutes, fault.off_minutes)
    if not all(0 < percent <= 100 for percent in (fault.share_percent, fault.throughput_percent)):
        yield "share_percent and throughput_percent are from 1 to 100"
    if min(*minutes, fault.missing_gpus) < 0 or max(minutes) > MOST_MINUTES:
        yield f"minutes are from 0 to {MOST_MINUTES}, and missing_gpus is 0 or more"
    if bool(fault.on_minutes) != bool(fault.off_minutes):
        yield "on_minutes and off_minutes belong together"
    for key, value in fault.metrics.items():
        if key in METRICS and not METRICS[key].least <= value <= METRICS[key].most:
            yield f"metrics: {key} is from {METRICS[key].least:g} to {METRICS[key].most:g}"


def _bad_names(fault: DriverFault) -> Iterator[str]:
    if fault.factor and fault.factor not in FACTORS:
        yield f"factor is one of {', '.join(FACTORS)}"
    if fault.value and not fault.factor:
        yield "value needs a factor"
    if unknown := fault.findings.keys() - RULE_TITLES.keys():
        yield f"findings: no rule is called {sorted(unknown)[0]}"
    if set(fault.findings.values()) - RANKS.keys():
        yield f"findings: a severity is one of {', '.join(RANKS)}"
    if unknown := fault.metrics.keys() - METRICS.keys():
        yield f"metrics: no metric is called {sorted(unknown)[0]}"


def _without_effect(fault: DriverFault) -> Iterator[str]:
    if not fault.shows_on_idle_nodes and not fault.pods and fault.throughput_percent == 100:
        yield "it has no effect"
    if fault.on_minutes and (fault.never_loads or fault.validator or fault.metrics):
        yield "on_minutes: a driver that never loads, a validator and metrics do not come and go"
    if fault.metrics and not fault.opens and fault.shows_by_findings_alone:
        yield "metrics: no rule finds these values within half a day"


def read_faults(path: Path) -> Mapping[str, DriverFault]:
    """Returns the faults of a file by key.

    :raises BadEntry: for the first entry that does not fit, and for a file without entries
    """
    rows = read_file(path).get("faults", ())
    if not isinstance(rows, list) or not rows:
        raise BadEntry(f"{path.name}: it has no [[faults]]")
    found = make_entries(path, "faults", rows, _fault)
    keys = [fault.key for fault in found]
    if twice := next((key for key in keys if keys.count(key) > 1), ""):
        raise BadEntry(f"{path.name}: two faults have the key {twice}")
    return dict(zip(keys, found, strict=True))


FAULTS = read_faults(FILE)
