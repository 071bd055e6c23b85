"""The faults that a rehearsal can give to a new driver, from `data/faults.toml` or a file of yours. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from gpu.entry_files import BadEntry, entry_of, make_entries, read_file
from health.rules import RULES
from health.rules.base import RANKS
from health.rules.gpus import GPU_RULES
from rollouts.node_order.node_selection import FACTORS

FILE = Path(__file__).parent / "data" / "faults.toml"
MOST_SEED = 2**31 - 1
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
    STAY_AWAY = "stay-away"


@dataclass(frozen=True, kw_only=True)
class DriverFault:
    """The effects of a driver on an affected node. The head of the file describes each field."""

    key: str
    title: str
    after_minutes: int = 0
    factor: str = ""  # all nodes with one value of this property; blank: any nodes
    share_percent: int = 100
    never_loads: bool = False
    validator: ValidatorFault = ValidatorFault.NONE
    node: NodeFault = NodeFault.NONE
    pods: PodFault = PodFault.NONE
    findings: Mapping[str, str] = field(default_factory=dict)  # severity by rule
    missing_gpus: int = 0
    throughput_percent: int = 100
    ramp_minutes: int = 0
    is_exporter_silent: bool = False

    @property
    def after(self) -> timedelta:
        return timedelta(minutes=self.after_minutes)

    @property
    def shows_by_findings_alone(self) -> bool:
        others = (self.never_loads, self.validator, self.node, self.pods, self.missing_gpus, self.is_exporter_silent)
        return bool(self.findings) and not any(others) and self.throughput_percent == 100

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
            or self.missing_gpus
            or self.is_exporter_silent
            or is_seen_at_once
        )


def _fault(row: Mapping[str, Any]) -> DriverFault:
    fault = entry_of(row, DriverFault)
    effects = (
        fault.never_loads, fault.validator, fault.node, fault.pods, fault.findings, fault.missing_gpus,
        fault.throughput_percent != 100, fault.is_exporter_silent,
    )  # fmt: skip
    if not any(effects):
        raise ValueError("it has no effect")
    if fault.factor and fault.factor not in FACTORS:
        raise ValueError(f"factor is one of {', '.join(FACTORS)}")
    if not 0 < fault.share_percent <= 100 or not 0 < fault.throughput_percent <= 100:
        raise ValueError("share_percent and throughput_percent are from 1 to 100")
    if min(fault.after_minutes, fault.missing_gpus, fault.ramp_minutes) < 0:
        raise ValueError("after_minutes, missing_gpus and ramp_minutes are 0 or more")
    if unknown := fault.findings.keys() - RULE_TITLES.keys():
        raise ValueError(f"findings: no rule is called {sorted(unknown)[0]}")
    if set(fault.findings.values()) - RANKS.keys():
        raise ValueError(f"findings: a severity is one of {', '.join(RANKS)}")
    return fault


def read_faults(path: Path) -> Mapping[str, DriverFault]:
    """Returns the faults of a file by key.

    :raises BadEntry: for the first entry that does not fit, and for a file without entries
    """
    rows = read_file(path).get("faults", ())
    if not rows:
        raise BadEntry(f"{path.name}: it has no [[faults]]")
    return {fault.key: fault for fault in make_entries(path, "faults", rows, _fault)}


FAULTS = read_faults(FILE)
