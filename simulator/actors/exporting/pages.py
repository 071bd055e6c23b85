"""The text of one exporter, prepared: labels are written when who holds what changes, and only numbers each time.

NVIDIA/dcgm-exporter, internal/pkg/rendermetrics/render_metrics.go: the template's labels, then those that are fields
(sorted), then those that were mapped (sorted); internal/pkg/transformation/kubernetes.go: DCGM_EXPORTER_KUBERNETES adds
who holds the device, of a shared one whoever comes last; with KUBERNETES_VIRTUAL_GPUS there is a line for each of them,
and none for nobody.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.actors.exporting.counters import (
    BLANK_UNDER_MIG,
    CLOCK_COUNT,
    DOUBLES,
    DRIVER_VERSION,
    HEALTH,
    XID,
    XID_COUNT,
    Counter,
)
from simulator.actors.exporting.meters import WINDOW_S, Meter
from simulator.actors.exporting.settings import Settings
from simulator.actors.exporting.xids import text_of
from simulator.actors.objects import Obj, name, namespace, uid
from simulator.faults.gpu_health import WATCHES

Values = dict[str, Any]
Pairs = tuple[tuple[str, str], ...]
WINDOW_LABEL = ("window_size_in_ms", str(int(WINDOW_S * 1000)))


@dataclass(frozen=True, slots=True)
class Line:
    """One device that series are written of. `place`: of the instance; -1: the whole GPU."""

    gpu: int
    uuid: str
    place: int = -1
    profile: str = ""
    holder: Obj | None = None
    vgpu: str = ""
    claim: Pairs = ()


@dataclass(frozen=True, slots=True)
class Tags:
    """The labels of a line, in the parts that others come between."""

    head: str
    fields: Pairs
    mapped: Pairs

    def text(self, *, fields: Pairs = (), mapped: Pairs = ()) -> str:
        """Of those that are fields and those that were mapped, each part is sorted by itself."""
        parts = (sorted([*self.fields, *fields]), sorted([*self.mapped, *mapped]))
        return self.head + "".join(f',{key}="{value}"' for part in parts for key, value in part)


class Page:
    def __init__(self, settings: Settings, model: str, hostname: str, driver: str, lines: Sequence[Line]) -> None:
        self.lines = lines
        self._tags = [_tags(settings, model, hostname, driver, line) for line in lines]
        self._slots: list[tuple[int, str]] = []
        self._blocks: list[Counter] = []
        self._beginnings: dict[tuple[str, int, Pairs], str] = {}
        self._template = "".join(self._family(counter, settings) for counter in settings.counters)

    def _family(self, counter: Counter, settings: Settings) -> str:
        if counter.name in BLOCKS:
            self._blocks.append(counter)
            return ""
        written = []
        for at, line in enumerate(self.lines):
            if line.profile and counter.name in BLANK_UNDER_MIG:
                if not settings.skips_blanks:
                    written.append(f"{counter.name}{{{_escaped(self._tags[at].text())}}} 0\n")
                continue
            if counter.name == XID:
                mapped = (("err_code", "\0d"), ("err_msg", "\0s"))
                tags = _escaped(self._tags[at].text(mapped=mapped)).replace("\0", "%")
                self._slots += [(at, XID), (at, "err_msg")]
            else:
                tags = _escaped(self._tags[at].text())
            self._slots.append((at, counter.name))
            written.append(f"{counter.name}{{{tags}}} {'%f' if counter.name in DOUBLES else '%d'}\n")
        return _escaped(_opening(counter)) + "".join(written) if written else ""

    def render(self, values: Sequence[Values], meters: Sequence[Meter]) -> str:
        """Both are by line."""
        for each, meter in zip(values, meters, strict=True):
            each[XID], each["err_msg"] = meter.xid, text_of(meter.xid)
        text = self._template % tuple([values[at][called] for at, called in self._slots])
        return text + "".join(self._block(counter, meters) for counter in self._blocks)

    def _block(self, counter: Counter, meters: Sequence[Meter]) -> str:
        """What the exporter counts itself: as many lines as there is something to say."""
        lines = [
            f"{self._begun(counter, at, labels)}{value}\n"
            for at, meter in enumerate(meters)
            for labels, value in BLOCKS[counter.name](meter)
        ]
        return _opening(counter) + "".join(lines) if lines else ""

    def _begun(self, counter: Counter, at: int, labels: Pairs) -> str:
        """The same few come again with every answer."""
        asked = (counter.name, at, labels)
        if asked not in self._beginnings:
            self._beginnings[asked] = f"{counter.name}{{{self._tags[at].text(fields=labels)}}} "
        return self._beginnings[asked]


def _tags(settings: Settings, model: str, hostname: str, driver: str, line: Line) -> Tags:
    head = {
        "gpu": str(line.gpu),
        settings.uuid: line.uuid,
        "pci_bus_id": f"00000000:{16 + line.gpu * 16:02X}:00.0",
        "device": f"nvidia{line.gpu}",
        "modelName": model,
    }
    if line.profile:
        head |= {"GPU_I_PROFILE": line.profile, "GPU_I_ID": str(line.place + 1)}
    head[settings.hostname] = hostname
    fields = ((DRIVER_VERSION, driver),) if settings.names_driver else ()
    return Tags(",".join(f'{key}="{value}"' for key, value in head.items()), fields, tuple(_mapped(settings, line)))


def _mapped(settings: Settings, line: Line) -> Iterable[tuple[str, str]]:
    if line.holder is None or not settings.names_pods or (line.claim and not settings.names_claims):
        return
    yield from line.claim
    called = settings.of_pod
    yield called[0], line.holder["spec"]["containers"][0]["name"]
    yield called[1], namespace(line.holder)
    yield called[2], name(line.holder)
    if settings.names_uids:
        yield "pod_uid", uid(line.holder)
    if line.vgpu:
        yield "vgpu", line.vgpu


def _opening(counter: Counter) -> str:
    return f"# HELP {counter.name} {counter.help}\n# TYPE {counter.name} {counter.type}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _xid_counts(meter: Meter) -> Iterable[tuple[Pairs, int]]:
    counts = meter.recent_xids()
    if not counts:
        yield (WINDOW_LABEL,), 0
    for code, count in sorted(counts.items()):
        yield (WINDOW_LABEL, ("xid", str(code))), count


def _clock_counts(meter: Meter) -> Iterable[tuple[Pairs, int]]:
    counts = meter.recent_events()
    if not counts:
        yield (WINDOW_LABEL,), 0
    for event, count in sorted(counts.items()):
        yield (("clock_event", str(event.name).lower()), WINDOW_LABEL), count


def _health(meter: Meter) -> Iterable[tuple[Pairs, int]]:
    for watch in WATCHES:
        result, code = meter.health(watch)
        yield (("health_error_code", code), ("health_watch", watch)), result


BLOCKS: dict[str, Callable[[Meter], Iterable[tuple[Pairs, int]]]] = {
    XID_COUNT: _xid_counts,
    CLOCK_COUNT: _clock_counts,
    HEALTH: _health,
}
