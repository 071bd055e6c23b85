"""Why there are no minutes of a node's GPUs to be drawn, where exporters are asked one by one: in sentences."""

from collections.abc import Sequence
from datetime import datetime

from fleet.models import ExportersState
from fleet.models.exporter import ASKED_AT_MOST
from health.sources.node_telemetry import DeviceTelemetry, NodeTelemetry
from health.telemetry.minutes import KEPT_S, MINUTE_S
from health.telemetry.prometheus.ranges import Steps

SOON = "The first points come within two minutes"


def why_not_kept(known: NodeTelemetry) -> str:
    """Why nobody keeps minutes of its cluster. Blank: they are kept."""
    state = ExportersState(known.exporters.state) if known.exporters is not None else ExportersState.WAITING
    lacking = "Its cluster has no Prometheus" if known.source is None else "Its cluster's Prometheus is switched off"
    if known.exporters is not None and state == ExportersState.TOO_MANY:
        return (
            f"{lacking}. It has {known.exporters.exporters} exporters, and at most {ASKED_AT_MOST} are asked one by "
            "one: no minutes are kept. With a Prometheus there are plots."
        )
    if known.standing.has_source:
        return ""
    reason = {
        ExportersState.NONE: "no exporter of GPUs is seen in it.",
        ExportersState.FORBIDDEN: "its exporters may not be asked.",
        ExportersState.UNSEEN: "its exporters are not asked, because the cluster does not answer.",
    }.get(state, f"no exporter has answered yet. {SOON} of the first answer.")
    return f"{lacking}, and {reason}"


def why_no_line(devices: Sequence[DeviceTelemetry], asked: Steps, *, whose: str, now: datetime) -> str:
    """Why no minute of these devices is in this time, in a cluster whose minutes are kept."""
    if asked.last < now.timestamp() - KEPT_S:
        return "Without a Prometheus minutes are kept for 24 h, and this was before."
    if not devices:
        return f"No exporter has named {whose}."
    if asked.last < now.timestamp() - 2 * MINUTE_S:
        return "No minute of this time was kept."
    if any(reading.is_fresh for device in devices for reading in device.metrics.values()):
        return f"{SOON}."
    return "The exporter of this node did not answer in this time."
