"""The worst Xid of a GPU since its last reset, by NVIDIA's catalogue. Application Xids are not hardware faults."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from gpu.xids import (
    ACTIONS,
    XIDS,
    Fault,
    XidAction,
    XidEntry,
    XidPattern,
    XidWorkflow,
    fault_of,
    verdict_of,
    workflow_of,
)
from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, XidSeen, devices_at_least
from health.rules.steps import DRAIN, REPLACE, SAVE_LOGS, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import VOLATILE
from wording.reports import EvidenceItem, fit, instant

METRIC, COUNTED = "xid", "xids_counted"
MOST = 1_000_000  # a higher number is DCGM's word for “not known”
BURST = 10  # of one number within the window of its exporter
MOST_KEPT = 50  # times that a finding lists
PASSES_AFTER = timedelta(hours=1)  # an application's: its exporter keeps it for as long as the driver is loaded
ROW_REMAP = 63
WORDS = 120  # of a text that nobody knows
CHANGES_HARDWARE = frozenset({XidAction.RESET_GPU, XidAction.DRAIN_AND_RESET, XidAction.RESTART_NODE})


@dataclass(frozen=True)
class LastXid:
    key: ClassVar[str] = "gpu-xid"
    title: ClassVar[str] = "Xid"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (METRIC, COUNTED)
    steps: ClassVar[tuple[str, ...]] = (
        "Read the Xid's meaning in NVIDIA's catalogue. It separates errors of applications from those of hardware.",
        "Of an application: notify its owner with the time. The GPU stays in use.",
        SAVE_LOGS,
        DRAIN,
        "Reset the GPU or reboot the node, as the finding says. 79 needs a reboot.",
        "After a driver change (119, 120, 143): compare nodes on the previous driver, and halt the plan.",
        "45 alone in the kernel log, without a killed process: NVIDIA asks to restart the Fabric Manager.",
        REPLACE,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        boards = {uuid for uuid, _ in snapshot.past_xids}
        past = [
            place
            for place, device in enumerate(snapshot.devices)
            if device.uuid in boards and device.key in snapshot.past_xids
        ]
        return {*devices_at_least(snapshot, METRIC, 1), *devices_at_least(snapshot, COUNTED, 1), *past}

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        """Returns the worst of the last Xid, the Xids counted by the exporter, and the Xids since the last reset.

        The gauge hides all Xids but the last (Z22), and an exporter restart hides that one too. A hardware fault ends
        with a reset, not with a restart of the exporter.
        """
        counted = _counted(gpu)
        every = _xids_of_gpu(gpu, counted)
        flows = {seen.number: flow for seen in every if (flow := _flow(gpu, seen, every)) is not None}
        told = [seen for seen in every if _is_told(gpu, seen, flows.get(seen.number))]
        if not told:
            return None
        seen = min(told, key=lambda one: _sort_key(one, flows.get(one.number)))
        known, times, flow = XIDS.get(seen.number), counted.get(seen.number, 1), flows.get(seen.number)
        action, others, had = _action(seen, flow), _other_xid_times(seen, told), _times_by_xid(gpu, seen)
        return Problem(
            severity=_severity(seen, action),
            title=fit("{}: Xid {}{}", gpu.name, seen.number, _meaning(seen, known)),
            summary=_since(seen, times),
            evidence=tuple(_evidence(seen, known, action, times, others)),
            causes=tuple(_causes(gpu, seen, flow, every)),
            steps=tuple(_steps(gpu, seen, flow)),
            facts={
                "xid": seen.number,
                "words": seen.words,
                "action": action.value if action else None,
                "at_least": times,
                **({"since": seen.since.isoformat()} if seen.since is not None else {}),
                **({"others": others} if others else {}),
                **({"had": had} if had else {}),
                **({"counters": counters} if (counters := _counters(gpu)) else {}),
                **({"workflow": flow.pattern.value, "source": flow.source} if flow else {}),
                **({"counted": {str(number): counted[number] for number in sorted(counted)}} if counted else {}),
            },
            identity=f"{seen.number} {seen.words} {seen.since} {'burst' if times >= BURST else ''}".rstrip()
            + (f" {flow.pattern}" if flow else ""),
        )


def _meaning(seen: XidSeen, known: XidEntry | None) -> str:
    if known is None or not known.title:
        return ""
    if known.action is not XidAction.FOLLOW_TEXT:
        return f" ({known.title})"
    title, action = verdict_of(seen.words)
    return " (unknown recovery action)" if action is None else f" (GPU recovery action: {title})"


def _evidence(
    seen: XidSeen,
    known: XidEntry | None,
    action: XidAction | None,
    times: int,
    others: Mapping[str, str | None],
) -> Iterator[EvidenceItem]:
    yield EvidenceItem("Xid", seen.number)
    if text := seen.words or (known.title if known else ""):
        yield EvidenceItem("Text", text)
    if action:
        yield EvidenceItem("NVIDIA's action", action.value)
    yield from (EvidenceItem("Other vendors", each) for each in (known.elsewhere if known else ()))
    if (fault := fault_of(seen.number)) not in (Fault.UNKNOWN, Fault.NONE):
        yield EvidenceItem("Suspect", fault.value)
    yield EvidenceItem("Times recorded, at least", times)
    if seen.since is not None:
        yield instant("Since", seen.since)
    if others:
        yield EvidenceItem("Other Xids", ", ".join(others))


def _flow(gpu: GpuFacts, seen: XidSeen, every: Sequence[XidSeen]) -> XidWorkflow | None:
    return workflow_of(
        seen.number, _other_recent_xids(gpu, seen, every), _times_occurred(gpu, seen), gpu.elsewhere.get(seen.number, 0)
    )


def _other_recent_xids(gpu: GpuFacts, seen: XidSeen, every: Sequence[XidSeen]) -> dict[int, timedelta]:
    """Returns the other Xids of the GPU with a known time, by how long before or after this one each came."""
    came = _came_at(gpu, seen)
    pairs = ((one.number, _came_at(gpu, one)) for one in every if one.number != seen.number)
    return {number: abs(at - came) for number, at in pairs if at is not None and came is not None}


def _came_at(gpu: GpuFacts, seen: XidSeen) -> datetime | None:
    """Returns the last time of the Xid. An Xid counted by the exporter lies within its window, which ends now."""
    return gpu.evaluated_at if seen.is_counted else seen.since


def _times_occurred(gpu: GpuFacts, seen: XidSeen) -> int:
    """Returns how often the Xid occurred, including now.

    A gauge that still shows a past Xid does not count (`_is_over`).
    """
    is_one_more = seen.number in gpu.once_more and not _is_over(gpu, seen, _action(seen, None))
    return gpu.again.get(seen.number, 1) + is_one_more


def _times_by_xid(gpu: GpuFacts, seen: XidSeen) -> dict[str, list[str]]:
    """Returns by number when this GPU had each Xid, including now: the newest of those whose workflow counts them."""
    had = dict(gpu.had)
    if seen.number in gpu.new and gpu.evaluated_at is not None:
        had[seen.number] = [*had.get(seen.number, ()), gpu.evaluated_at]
    return {str(number): [at.isoformat() for at in sorted(had[number])[-MOST_KEPT:]] for number in sorted(had)}


def _counters(gpu: GpuFacts) -> dict[str, float]:
    """Returns the counters of the board. A lower value later proves a restart, even without other history."""
    return {key: gpu.now[key] for key in VOLATILE if gpu.now.get(key, 0) > 0}


def _other_xid_times(seen: XidSeen, told: Sequence[XidSeen]) -> dict[str, str | None]:
    """Returns the time of each other Xid by number; None if unknown."""
    those = sorted((one for one in told if one.number != seen.number), key=lambda one: one.number)
    return {str(one.number): one.since.isoformat() if one.since is not None else None for one in those}


def _sort_key(seen: XidSeen, flow: XidWorkflow | None) -> tuple[int, bool]:
    """Returns the sort key: the worst first. Among equals, an Xid whose workflow depends on others comes first."""
    return list(Severity).index(_severity(seen, _action(seen, flow))), flow is None


def _counted(gpu: GpuFacts) -> dict[int, int]:
    return counted_in(gpu.parts)


def counted_in(parts: Mapping[str, Mapping[str, float]]) -> dict[int, int]:
    """Returns by Xid number how often the exporter counted it in its window. Invalid Xid numbers are left out."""
    counted = parts.get(COUNTED, {}).items()
    return {
        int(said): int(times)
        for said, times in counted
        if said.isascii() and said.isdigit() and len(said) < 5 and int(said) and 1 <= times <= MOST
    }


def _xids_of_gpu(gpu: GpuFacts, counted: Mapping[int, int]) -> list[XidSeen]:
    gauge = [gpu.xid] if gpu.xid is not None and gpu.xid.number >= 1 else []
    last = [replace(seen, is_counted=seen.number in counted) for seen in gauge if not _is_of_earlier_boot(gpu, seen)]
    others = sorted(set(counted) - {seen.number for seen in last})
    there = {seen.number for seen in gauge} | set(counted)
    past = [seen for seen in gpu.past_xids if seen.number not in there and not _has_restarted(gpu, seen)]
    return last + [XidSeen(number, None, is_counted=True) for number in others] + past


def _has_restarted(gpu: GpuFacts, seen: XidSeen) -> bool:
    """Returns whether the driver changed or the node booted since, for GPUs whose counters did not show it."""
    return any(at is not None and _is_earlier_xid(seen, at) for at in (gpu.driver_changed_at, gpu.booted_at))


def _is_of_earlier_boot(gpu: GpuFacts, seen: XidSeen) -> bool:
    """Returns whether the node booted since the gauge's last sample with the Xid. A boot loads the driver anew."""
    return gpu.booted_at is not None and seen.sampled_at is not None and seen.sampled_at < gpu.booted_at


def _is_earlier_xid(seen: XidSeen, at: datetime) -> bool:
    return seen.since is not None and seen.since < at


def _is_told(gpu: GpuFacts, seen: XidSeen, flow: XidWorkflow | None) -> bool:
    action = _action(seen, flow)
    return (action != XidAction.IGNORE or seen.number == ROW_REMAP) and not _is_over(gpu, seen, action)


def _action(seen: XidSeen, flow: XidWorkflow | None) -> XidAction | None:
    """Returns the action; None if NVIDIA's catalogue has none, or the text of an Xid 154 is unknown."""
    known = XIDS.get(seen.number)
    if flow is not None or known is None:
        return flow.action if flow is not None else None
    return verdict_of(seen.words).action if known.action == XidAction.FOLLOW_TEXT else known.action


def _is_over(gpu: GpuFacts, seen: XidSeen, action: XidAction | None) -> bool:
    """Returns whether an application's Xid has passed. The gauge keeps it until the driver is reloaded."""
    known = XIDS.get(seen.number)
    if action != XidAction.RESTART_APP or seen.is_counted or (known is not None and known.outlasts_app):
        return False
    return seen.since is None or gpu.evaluated_at is None or gpu.evaluated_at - seen.since > PASSES_AFTER


def outlasts_its_window(number: int) -> bool:
    """Returns whether an Xid counted by the exporter persists after the window, until a reset or a person ends it.

    An application's Xid does not: it may be counted again.
    """
    known = XIDS.get(number)
    if known is None or known.outlasts_app or number == ROW_REMAP:
        return True
    return known.action not in (XidAction.IGNORE, XidAction.RESTART_APP)


def _severity(seen: XidSeen, action: XidAction | None) -> Severity:
    if action is None or seen.number == ROW_REMAP:
        return Severity.WARNING
    return Severity(ACTIONS[action].severity)


def _since(seen: XidSeen, times: int) -> str:
    """Returns the start of the Xid. The gauge hides repetitions (Z22); counters show them only within their window."""
    if times >= BURST:
        return f"A burst: {BURST} times or more within the window of its exporter."
    if seen.is_counted and seen.since is None:
        return "Recorded at least once within the window of its exporter."
    return "Recorded at least once." if seen.since is not None else "Recorded before Quarterdeck first looked."


def _is_suspect(gpu: GpuFacts, seen: XidSeen) -> bool:
    """Returns whether the new driver is the first suspect."""
    changed = gpu.driver_changed_at
    return fault_of(seen.number) is Fault.DRIVER and changed is not None and not _is_earlier_xid(seen, changed)


def _causes(gpu: GpuFacts, seen: XidSeen, flow: XidWorkflow | None, every: Sequence[XidSeen]) -> Iterator[str]:
    if flow is not None:
        other = " ".join(map(str, flow.came_with(_other_recent_xids(gpu, seen, every))[:1]))
        yield flow.cause.format(other=other, times=_times_occurred(gpu, seen))
    if _is_suspect(gpu, seen):
        yield "Its driver was changed within the day before. Suspect the new driver."
    known = XIDS.get(seen.number)
    if known is not None and known.action is XidAction.FOLLOW_TEXT and COUNTED not in gpu.now and len(every) == 1:
        yield "It may hide an earlier Xid. The exporter's gauge shows only the last one."
    if known is not None and known.cause:
        yield known.cause
    elif _action(seen, flow) is XidAction.RESTART_APP and flow is None:
        yield "An application failed. This is not a GPU fault."


def _steps(gpu: GpuFacts, seen: XidSeen, flow: XidWorkflow | None) -> Iterator[str]:
    known, action = XIDS.get(seen.number), _action(seen, flow)
    if flow is not None and flow.step:
        yield flow.step
    if _is_suspect(gpu, seen):
        yield "Compare it with GPUs that still have the previous driver."
    if action is None:
        yield from _steps_without_action(seen, known)
    else:
        is_hardware = action in CHANGES_HARDWARE
        yield from ((SAVE_LOGS,) if is_hardware else ())
        yield from ACTIONS[action].steps
        if known and (flow is None or flow.pattern is XidPattern.BESIDE):
            yield from known.steps
        yield from ((REPLACE, UNCORDON) if is_hardware else ())


def _steps_without_action(seen: XidSeen, known: XidEntry | None) -> Iterator[str]:
    if known is None:
        yield "NVIDIA's catalogue has no action for this Xid. Ask the vendor's support."
    elif seen.words:
        yield f"NVIDIA's list does not have this recovery action: “{seen.words[:WORDS]}”."
    else:
        yield "Its exporter reports no text."
    yield "Read the kernel log (dmesg, NVRM: Xid), and nvidia-smi -q on the node."
