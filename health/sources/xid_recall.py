"""The Xids of boards of which no frame is kept, as findings about them still have it.

Redis keeps what GPUs have had, and may lose it: the gauge then shows the last Xid alone, and what it hides would be
over. A finding that is open is not over by that: only by what ends it with a frame, too, and by a boot of its node.
That its board began anew in the gap is told by what it had counted when the finding was written.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from gpu.xids import XIDS
from health.models import Finding
from health.rules.gpus.xid import LastXid, counted_in, outlasts_its_window
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import Frame, PastXid
from health.telemetry.snapshot_memory import PAST_XIDS_AT_MOST, KnownXids, begun_lately, recall


def recall_xids(cluster_id: int, before: Frame | None, frame: Frame) -> None:
    """Into a frame, of the boards that the one before had not. One query where there are any."""
    if before is not None and before.devices == frame.devices:
        return
    new = {device.uuid for device in frame.devices} - {device.uuid for device in (before.devices if before else ())}
    if not new:
        return
    open_ones = Finding.objects.unresolved().filter(cluster=cluster_id, rule=LastXid.key, node__isnull=False)
    told: dict[tuple[str, str], KnownXids] = {}
    columns = ("node__name", "gpu_uuid", "evidence", "cause", "since", "node__booted_at")
    for node, uuid, evidence, cause, since, booted_at in open_ones.values_list(*columns):
        if uuid in new:
            xids = {number: xid for number, xid in _xids(evidence, cause) if not _is_over(xid, since, booted_at)}
            told[node, uuid] = KnownXids(xids, evidence.get("counters", {}))
    if told:
        recall(frame, told)


def keep_counted(taken: TelemetryReading) -> None:
    """Into its frame, the Xids that exporters counted within their windows and that outlast these: the gauge shows the
    last one of several that came together, and what the count said is over in minutes.

    Of a GPU that began anew lately nobody knows which of them were before that.
    """
    past, at = dict(taken.frame.past_xids), taken.frame.taken_at
    counted = {key: set(filter(outlasts_its_window, counted_in(parts))) for key, parts in taken.parts.items()}
    if not any(counted.values()):
        return
    anew = frozenset(begun_lately(taken.frame))
    for place, device in enumerate(taken.frame.devices):
        known = past.get(device.key, {})
        if (those := counted.get(device.key, set()) - known.keys()) and place not in anew:
            came = {number: PastXid(at) for number in sorted(those)}
            past[device.key] = dict([*known.items(), *came.items()][:PAST_XIDS_AT_MOST])
    taken.frame.past_xids = past


def _is_over(xid: PastXid, found_at: datetime, booted_at: datetime | None) -> bool:
    """Its node has booted since. One that was there when Quarterdeck first looked came before it was found."""
    came_at = found_at.timestamp() if math.isnan(xid.since) else xid.since
    return booted_at is not None and came_at < booted_at.timestamp()


def _xids(evidence: Mapping[str, Any], cause: str) -> Iterator[tuple[int, PastXid]]:
    """What stands there is our own word or the exporter's: only the exporter's is in the cause.

    A finding of before says of the others only the numbers; none is of before the worst one's driver.
    """
    since, words = _instant(evidence.get("since")), evidence.get("words", "")
    others = evidence.get("others", {})
    for other in others:
        yield int(other), PastXid(_instant(others[other]) if isinstance(others, dict) else since)
    if isinstance(number := evidence.get("xid"), int):
        known = XIDS.get(number)
        is_ours = known is not None and words == known.title and words not in cause
        yield number, PastXid(since, "" if is_ours else words)


def _instant(said: str | None) -> float:
    """NaN: nobody saw when."""
    return datetime.fromisoformat(said).timestamp() if said else math.nan
