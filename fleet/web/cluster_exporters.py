"""The state of a cluster's GPU exporters as a line beside its kinds."""

from datetime import datetime

from fleet.freshness.kinds import rule_for
from fleet.models import Cluster, ExporterReading, ExporterRound, ExportersState
from fleet.models.exporter import CURRENT_FOR
from fleet.web.cluster_kinds import KindLine

NAME = "GPU allocations by exporters"
RULE = "pods/proxy:exporters"
WORDS = {
    ExportersState.WAITING: ("waiting", "not asked for yet"),
    ExportersState.NONE: ("unseen", "not installed"),
    ExportersState.FORBIDDEN: ("bad", "not permitted"),
    ExportersState.TOO_MANY: ("warn", "too many"),
    ExportersState.UNSEEN: ("unseen", "not asked"),
}
SILENT_NAMED = 3


def exporter_line(cluster: Cluster, *, now: datetime) -> KindLine:
    """Returns the line. Two queries."""
    asked = ExporterRound.objects.filter(cluster=cluster).first()
    if asked is None:
        return _exporter_line(None, *WORDS[ExportersState.WAITING])
    silent = list(ExporterReading.objects.filter(cluster=cluster).exclude(refused="").order_by("refused_since", "pk"))
    if asked.state != ExportersState.ASKED:
        return _exporter_line(asked, *WORDS[ExportersState(asked.state)], asked.message)
    if asked.read_at is None or now - asked.read_at > CURRENT_FOR:
        return _exporter_line(asked, "bad", "silent", _silence(silent))
    if silent or asked.answered < asked.exporters:
        message = (
            _silence(silent) or "There was no time for the other exporters. They are queried first in the next round."
        )
        message = f"{message} {asked.message}".rstrip()
        return _exporter_line(asked, "warn", f"{asked.answered} of {asked.exporters} answered", message)
    return _exporter_line(asked, "warn" if asked.message else "ok", "fresh", asked.message)


def _silence(silent: list[ExporterReading]) -> str:
    named = [f"{row.node_name}: {row.refused}" for row in silent[:SILENT_NAMED]]
    more = [f"and {len(silent) - SILENT_NAMED} more"] if len(silent) > SILENT_NAMED else []
    return "; ".join([*named, *more])


def _exporter_line(asked: ExporterRound | None, glyph: str, word: str, message: str = "") -> KindLine:
    is_forbidden = asked is not None and asked.state == ExportersState.FORBIDDEN
    return KindLine(
        kind=RULE,
        name=NAME,
        glyph=glyph,
        word=word,
        message=message,
        last_seen_at=asked.read_at if asked else None,
        since=asked.state_since if asked else None,
        rows=asked.answered if asked and asked.state == ExportersState.ASKED else None,
        rule=rule_for(RULE).rstrip() if is_forbidden else "",
        unread=0,
        unread_names="",
        message_has_names=asked is not None and asked.state == ExportersState.ASKED,
    )
