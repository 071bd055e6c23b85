"""Restores Xids of boards without a stored snapshot from the findings about them.

Redis keeps the Xids of GPUs, and may lose them. The gauge then shows only the last Xid, and hides open faults. An open
finding survives the loss: the same events as before end it, and a boot of its node. The counters stored with the
finding show whether its board restarted meanwhile.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from health.models import Finding
from health.rules.gpus.xid import LastXid, counted_in, outlasts_its_window
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import PastXid, TelemetrySnapshot
from health.telemetry.snapshot_memory import PAST_XIDS_AT_MOST, KnownXids, begun_lately, recall


def recall_xids(cluster_id: int, before: TelemetrySnapshot | None, snapshot: TelemetrySnapshot) -> None:
    """Adds Xids to a snapshot, for boards that the previous snapshot lacked. One query if there are any."""
    if before is not None and before.devices == snapshot.devices:
        return
    new = {device.uuid for device in snapshot.devices} - {device.uuid for device in (before.devices if before else ())}
    if not new:
        return
    open_ones = Finding.objects.unresolved().filter(cluster=cluster_id, rule=LastXid.key, node__isnull=False)
    told: dict[tuple[str, str], KnownXids] = {}
    columns = ("node__name", "gpu_uuid", "facts", "since", "node__booted_at")
    for node, uuid, facts, since, booted_at in open_ones.values_list(*columns):
        if uuid in new:
            xids = {number: xid for number, xid in _xids(facts) if not _is_over(xid, since, booted_at)}
            told[node, uuid] = KnownXids(xids, facts.get("counters", {}))
    if told:
        recall(snapshot, told)


def add_counted_xids(taken: TelemetryReading) -> None:
    """Adds the counted Xids that outlast their exporter's window to the snapshot.

    The gauge shows only the last of several simultaneous Xids, and the counts expire in minutes. For a GPU that
    restarted lately, it is unknown which Xids came before the restart.
    """
    past, at = dict(taken.snapshot.past_xids), taken.snapshot.taken_at
    counted = {key: set(filter(outlasts_its_window, counted_in(parts))) for key, parts in taken.parts.items()}
    if not any(counted.values()):
        return
    anew = frozenset(begun_lately(taken.snapshot))
    for place, device in enumerate(taken.snapshot.devices):
        known = past.get(device.key, {})
        if (those := counted.get(device.key, set()) - known.keys()) and place not in anew:
            came = {number: PastXid(at) for number in sorted(those)}
            past[device.key] = dict([*known.items(), *came.items()][:PAST_XIDS_AT_MOST])
    taken.snapshot.past_xids = past


def _is_over(xid: PastXid, found_at: datetime, booted_at: datetime | None) -> bool:
    """Returns whether the node has booted since. An Xid present at the first observation is older than its finding."""
    came_at = found_at.timestamp() if math.isnan(xid.since) else xid.since
    return booted_at is not None and came_at < booted_at.timestamp()


def _xids(facts: Mapping[str, Any]) -> Iterator[tuple[int, PastXid]]:
    """Yields the Xids of a finding.

    Older findings have only the numbers of the other Xids; none of those is from before the worst one's driver.
    """
    since = _instant(facts.get("since"))
    others = facts.get("others", {})
    for other in others:
        yield int(other), PastXid(_instant(others[other]) if isinstance(others, dict) else since)
    if isinstance(number := facts.get("xid"), int):
        yield number, PastXid(since, facts.get("words", ""))


def _instant(said: str | None) -> float:
    """Returns the time; NaN if unknown."""
    return datetime.fromisoformat(said).timestamp() if said else math.nan
