"""A Prometheus as far as the product asks one: it scrapes the simulated exporters, and answers in its own words.

What it scrapes is read here by itself, so that what the truth is does not depend on the product's reading of it. Of a
node on which nothing happens the text of a while ago is taken for what it says now: its load moves in steps.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.finding.day.stage import Stage
from simulator.actors.objects import name, namespace, uid
from simulator.pod_ends import Pace

# What its people let it keep of all that exporters say: what the rules read, and what tells one load from another.
KEPT = (
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_MGMT_LIMIT",
)  # fmt: skip
# What the exporter counts itself, by the label that tells the several series of a GPU apart.
COUNTED = {
    "DCGM_EXP_GPU_HEALTH_STATUS": "health_watch",
    "DCGM_EXP_CLOCK_EVENTS_COUNT": "clock_event",
    "DCGM_EXP_XID_ERRORS_COUNT": "xid",
}
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"  # since the driver was loaded, or the GPU was reset
OWN = "DCGM_EXP_"  # how the names of those begin: its people let their Prometheus keep all of them
LINE = re.compile(r"(\w+)\{(.*)\} ([-+.\w]+)(?: (-?\d+))?")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
NAME = re.compile(r"(\w+)\{")
MATCHER = re.compile(r'(\w+)=~"([^"]*)"')
MORE_THAN = re.compile(r"> (\d+)$")
LOOKBACK_S, AHEAD_S = 300.0, 600.0  # older samples are in no answer, and from further ahead none is taken
STEADY_S = 3600.0  # the load of a node on which nothing happens is looked at anew so often
EVALUATED, SAMPLED = b"@E", b"@S"


class Unparsable(ValueError):
    """The text of a target is not what a Prometheus reads: nothing of it is taken."""


@dataclass(frozen=True, slots=True)
class Part:
    """One series of several that a GPU has of a name. `of`: the value of the label that tells them apart."""

    device: tuple[tuple[str, str], ...]
    of: str
    value: float


@dataclass
class Target:
    """What one node's exporter said last."""

    pod: str = ""
    scraped_s: float = -1.0  # the day's seconds at which its text was asked for
    is_up: bool = False
    skew_s: float = 0.0  # that it writes beside its values; 0: it writes no times
    devices: list[dict[str, str]] = field(default_factory=list)  # with the labels that tell which it is
    values: dict[tuple[str, str], float] = field(default_factory=dict)  # by series and index of the GPU
    anew: Counter[str] = field(default_factory=Counter)  # by index of the GPU, how often its energy alone fell
    joules: dict[str, float] = field(default_factory=dict)  # by index of the GPU, as whoever asks saw it last
    said: dict[str, bytes] = field(default_factory=dict)  # by series, its part of an answer
    times: dict[str, bytes] = field(default_factory=dict)
    is_even: bool = True  # every series is of the same devices
    xids: list[bytes] = field(default_factory=list)
    counted: dict[str, list[Part]] = field(default_factory=dict)  # by series
    numbers: Counter[str] = field(default_factory=Counter)  # of series, by name
    answers: dict[str, bytes] = field(default_factory=dict)  # of what it counts itself, by what was asked

    def said_of(self, series: str, expression: str) -> bytes:
        """Its part of the answer: its text is the same until it is asked again."""
        if expression not in self.answers:
            label = COUNTED[series]
            asked = dict(MATCHER.findall(expression)).get(label, "")
            parts = [part for part in self.counted.get(series, ()) if not asked or part.of in asked.split("|")]
            self.answers[expression] = b",".join(_answered(parts, label, expression))
        return self.answers[expression]


class Prometheus:
    """`is_away`: it does not answer. `is_forgotten`: nobody knows what it answered before. `ahead_s`: its clock is that
    much ahead of ours.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage, self._clock = stage, stage.clock
        self.is_away = self.is_forgotten = False
        self.ahead_s = 0.0
        self.targets = {called: Target() for called in stage.machines}
        self._turn = {called: place / len(self.targets) for place, called in enumerate(self.targets)}
        self._stamps: dict[str, bytes] = {}
        self._answers: dict[str, bytes] = {}
        self._is_even = True  # every series of every target
        self._kept: dict[str, bytes] = {}  # of values: as long as nobody says anything new

    # Scraping

    def scrape(self, lively: frozenset[str], *, period_s: float) -> None:
        """`lively`: the nodes on which something happens. Each is asked at its own moment of the last few seconds."""
        now_s = self._stage.passed_s
        is_new = False
        for called, target in self.targets.items():
            pod = self._stage.exporter_on(called)
            run = uid(pod) if pod else ""
            age_s = now_s - target.scraped_s
            turn_s = STEADY_S * (0.5 + self._turn[called] / 2) if target.scraped_s > 0 else 0.0
            if called in lively or run != target.pod or age_s >= turn_s:
                self.targets[called] = self._scraped(called, run)
                is_new = True
        self._answers = {}
        if is_new:
            self._kept = {}
            self._is_even = all(target.is_even for target in self.targets.values())
        at = self._clock.now().timestamp() + self.ahead_s
        share_s = min(15.0, period_s)
        for called, target in self.targets.items():
            own = target.skew_s if target.skew_s else -share_s * self._turn[called]
            self._stamps[called] = b"%.3f" % (at + own)

    def _scraped(self, called: str, run: str) -> Target:
        before = self.targets[called]
        target = Target(run, self._stage.passed_s, anew=before.anew, joules=before.joules)
        pod = self._stage.exporter_on(called)
        served = self._stage.play.exporters.serve(pod, "/metrics") if pod else None
        if pod is None or served is None or served.status != 200 or served.pace in (Pace.NEVER, Pace.DRIP):
            return target
        try:
            rows = list(_rows(served.body.decode()))
        except (Unparsable, UnicodeDecodeError):
            return target
        target.is_up = True
        at_ms = next((at for *_, at in rows if at is not None), None)
        if at_ms is not None:
            target.skew_s = at_ms / 1000 - self._clock.now().timestamp() or 0.001
            if not -LOOKBACK_S <= target.skew_s <= AHEAD_S:
                return target
        self._take(target, rows, _labels_of_target(pod))
        if not self.is_away:
            self._count_anew(target)
        return target

    def _count_anew(self, target: Target) -> None:
        """Several resets between two looks are one to whoever asks, and none where the first of these is forgotten."""
        said = {gpu: joules for (series, gpu), joules in target.values.items() if series == ENERGY}
        fallen = [gpu for gpu, joules in said.items() if joules < target.joules.get(gpu, 0.0)]
        if len(fallen) == 1 and not self.is_forgotten:  # of several at once the driver was loaded anew
            target.anew.update(fallen)
        target.joules = {**target.joules, **said}

    def _take(self, target: Target, rows: list, added: Mapping[str, str]) -> None:
        devices: dict[tuple[str, str], dict[str, str]] = {}
        said: dict[str, list[bytes]] = {}
        times: dict[str, list[bytes]] = {}
        for series, labels, value, _ in rows:
            target.numbers[series] += 1
            if series not in KEPT:
                self._take_counted(target, series, labels, float(value))
                continue
            key = {name: labels[name] for name in ("UUID", "GPU_I_ID") if labels.get(name)}
            target.values[series, labels.get("gpu", "")] = float(value)
            metric = json.dumps(key, separators=(",", ":")).encode()
            said.setdefault(series, []).append(_sample(metric, value.encode()))
            times.setdefault(series, []).append(_sample(metric, SAMPLED))
            if series == "DCGM_FI_DEV_GPU_TEMP":
                moved = {f"exported_{name}" if name in added else name: text for name, text in labels.items()}
                devices[labels["UUID"], labels.get("GPU_I_ID", "")] = {**moved, **added}
            if series == "DCGM_FI_DEV_XID_ERRORS" and float(value) > 0:
                words = key | {name: labels[name] for name in ("err_code", "err_msg") if labels.get(name)}
                target.xids.append(_sample(json.dumps(words).encode(), value.encode()))
        target.devices = list(devices.values())
        target.said = {series: b",".join(parts) for series, parts in said.items()}
        target.times = {series: b",".join(parts) for series, parts in times.items()}
        target.is_even = len(times) == len(KEPT) and len(set(target.times.values())) == 1

    def _take_counted(self, target: Target, series: str, labels: Mapping[str, str], value: float) -> None:
        if series not in COUNTED:
            return
        of = labels.get(COUNTED[series], "")
        target.values[f"{series} {of}", labels.get("gpu", "")] = value
        device = tuple((name, labels[name]) for name in ("UUID", "GPU_I_ID") if labels.get(name))
        target.counted.setdefault(series, []).append(Part(device, of, value))

    # Answering

    def answer(self, expression: str) -> bytes:
        """To an instant query."""
        if expression not in self._answers:
            self._answers[expression] = self._answered(expression)
        return self._answers[expression]

    def _answered(self, expression: str) -> bytes:
        at = b"%.3f" % (self._clock.now().timestamp() + self.ahead_s)
        return self._result(expression).replace(EVALUATED, at)

    def _result(self, expression: str) -> bytes:
        if expression.startswith("vector("):
            return _vector([_sample(b"{}", EVALUATED)])
        if "instance) (" in expression:
            most = MORE_THAN.findall(expression)
            return _vector(self._exploding(int(most[0])) if most else self._given())
        if expression.startswith("count by (__name__)"):
            return _vector([_sample(b'{"__name__":"%s"}' % series.encode(), b"1") for series in self._exported()])
        if expression.startswith("group by"):
            told = (device for target in self.targets.values() for device in target.devices)
            return _vector([_sample(json.dumps(device).encode(), b"1") for device in told])
        if expression.startswith("count(count by"):
            return _vector(self._doubled())
        if expression.endswith("> 0") and "err_code" in expression:
            return _vector([row for target in self.targets.values() for row in target.xids])
        series = NAME.findall(expression)[0]
        if series in COUNTED:
            return self._counted(series, expression)
        if "timestamp(" in expression and " and " not in expression:
            return self._times(series)
        if series not in self._kept:
            self._kept[series] = _vector(
                [part for target in self.targets.values() if (part := target.said.get(series))]
            )
        return self._kept[series]

    def _exported(self) -> list[str]:
        return sorted({series for target in self.targets.values() for series in (*target.said, *target.counted)})

    def _given(self) -> list[bytes]:
        """How many samples each exporter gave: at least as many as it has too many of."""
        return [
            _sample(
                json.dumps({"instance": target.devices[0]["instance"]}).encode(), b"%d" % sum(target.numbers.values())
            )
            for target in self.targets.values()
            if target.devices
        ]

    def _exploding(self, most: int) -> list[bytes]:
        """What one exporter has too many of, of all that is kept."""
        found = []
        for target in self.targets.values():
            for series, number in target.numbers.items():
                if number > most and target.devices:
                    named = {"__name__": series, "instance": target.devices[0]["instance"]}
                    found.append(_sample(json.dumps(named).encode(), b"%d" % number))
        return found

    def _counted(self, series: str, expression: str) -> bytes:
        """Of each GPU the highest of its series, or when it was taken; with `> 0` all of them that are more."""
        answered = (
            (self._stamps[called], target.said_of(series, expression)) for called, target in self.targets.items()
        )
        return _vector([part.replace(SAMPLED, at) for at, part in answered if part])

    def _doubled(self) -> list[bytes]:
        seen: dict[str, int] = {}
        for target in self.targets.values():
            for device in target.devices:
                seen[device["UUID"]] = seen.get(device["UUID"], 0) + 1
        number = sum(times > 1 for times in seen.values())
        return [_sample(b"{}", b"%d" % number)] if number else []

    def _times(self, series: str) -> bytes:
        """Nearly always all series are of the same devices: their times are the same, too."""
        kept = "times" if self._is_even else f"times of {series}"
        if kept not in self._answers:
            said = [(self._stamps[called], target.times.get(series)) for called, target in self.targets.items()]
            self._answers[kept] = _vector([part.replace(SAMPLED, at) for at, part in said if part])
        return self._answers[kept]


def _rows(text: str) -> Iterator[tuple[str, dict[str, str], str, int | None]]:
    """:raises Unparsable: a line is none; as with a Prometheus, all of it is thrown away then"""
    known: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise Unparsable(line[:80])
        series, written, value, at = match.groups()
        if series not in KEPT and not series.startswith(OWN):
            continue
        if written not in known:
            known[written] = dict(LABEL.findall(written))
        yield series, known[written], value, int(at) if at else None
    if text and not text.endswith("\n"):
        raise Unparsable("it ends in the middle of a line")


def _labels_of_target(pod: dict) -> dict[str, str]:
    """As the GPU operator's ServiceMonitor has them written on all that is scraped."""
    return {
        "pod": name(pod), "namespace": namespace(pod), "container": "nvidia-dcgm-exporter",
        "job": "nvidia-dcgm-exporter", "instance": f"{(pod.get('status') or {}).get('podIP', '')}:9400",
    }  # fmt: skip


def _answered(parts: list[Part], label: str, expression: str) -> Iterator[bytes]:
    if expression.endswith("> 0"):
        for part in parts:
            if part.value > 0:
                yield _sample(json.dumps(dict(part.device) | {label: part.of}).encode(), b"%g" % part.value)
        return
    highest: dict[tuple[tuple[str, str], ...], float] = {}
    for part in parts:
        highest[part.device] = max(part.value, highest.get(part.device, part.value))
    for device, value in highest.items():
        metric = json.dumps(dict(device), separators=(",", ":")).encode()
        yield _sample(metric, SAMPLED if "timestamp(" in expression else b"%g" % value)


def _sample(metric: bytes, value: bytes) -> bytes:
    return b'{"metric":%s,"value":[%s,"%s"]}' % (metric, EVALUATED, value)


def _vector(rows: list[bytes]) -> bytes:
    return b'{"status":"success","data":{"resultType":"vector","result":[%s]}}' % b",".join(rows)
