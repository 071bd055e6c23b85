"""The lines of an exporter's text, in one pass and with a limit on their number.

prometheus.io/docs/instrumenting/exposition_formats: a line is a name, labels in braces, a value, and perhaps a time. A
quoted name may be the first label (docs/guides/utf8). An invalid line is skipped.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from health.telemetry.identity import in_lower_case

LINES_AT_MOST = 20_000  # 16 boards of 7 slices with 40 series are 4,480
# Nothing of these is tried twice (possessive quantifiers): whatever is written costs its length.
_SERIES = re.compile(
    r'\s*+([a-zA-Z_:][a-zA-Z0-9_:]*+)?+\s*+\{\s*+(?:"((?:[^"\\]|\\.)*+)"\s*+(?:,|(?=\})))?+'
    r'([^"}]*+(?:"(?:[^"\\]|\\.)*+"[^"}]*+)*+)\}(.*+)'
)
_LABEL = re.compile(r'[\s,]*+([a-zA-Z_][a-zA-Z0-9_]*+)\s*+=\s*+"((?:[^"\\]|\\.)*+)"')
_ESCAPED = re.compile(r"\\(.)")
# After the value may stand a time, which OpenMetrics writes with a fraction (prometheus/common, expfmt/
# openmetrics_create.go: as 1.7e+09), and there an exemplar.
_VALUE = re.compile(r"\s*+(\S++)(?:\s++-?[\d.]++(?:[eE][+-]?\d++)?+)?+\s*+(?:# .*+)?+$")
_WITHOUT_LABELS = re.compile(r"\s*+[a-zA-Z_:][a-zA-Z0-9_:]*+(\s.*+)")

AMDS_NAMES_IN_CAPITALS = ("GPU_", "PCIE_", "AMD_GPU_")


class UnreadableMetrics(Exception):
    """The answer is not a text of metrics."""


class MetricLine(NamedTuple):
    """A line with labels, as all GPU series have."""

    name: str
    labels: str  # as they are written
    rest: str  # as it is written: exporters have words in it for fields that are no numbers (dcgm-exporter #394)

    @property
    def value(self) -> float | None:
        """Returns the value; None if it is no number."""
        return _parse_number(self.rest)


def lines_in(text: str) -> Iterator[MetricLine]:
    """Yields the lines.

    :raises UnreadableMetrics: when it is no text of metrics, or longer than any node's
    """
    number, is_text = 0, False
    for line in text.replace("\0", "").split("\n"):  # PostgreSQL keeps no NUL
        if not line or line.startswith("#"):
            is_text = is_text or line.startswith("# ")
            continue
        number += 1
        if number > LINES_AT_MOST:
            raise UnreadableMetrics(f"The answer has more than {LINES_AT_MOST} series. No node has so many GPUs.")
        if (match := _SERIES.match(line)) is not None:
            name, quoted, labels, rest = match.groups()
            is_text = is_text or not labels.strip() or bool(labels_in(labels))
            yield MetricLine(_canonical_name(name or quoted or ""), labels, rest)
        elif not is_text and (plain := _WITHOUT_LABELS.match(line)) is not None:
            is_text = _parse_number(plain.group(1)) is not None
    if text.strip() and not is_text:
        raise UnreadableMetrics("The answer is not metrics text.")


def _canonical_name(name: str) -> str:
    return name.lower() if name.isupper() and name.startswith(AMDS_NAMES_IN_CAPITALS) else name


def labels_in(written: str) -> dict[str, str]:
    """Returns the labels of a line, AMD's in lower case, in one pass.

    A search would take quadratic time on bad text.
    """
    found, at = dict[str, str](), 0
    while match := _LABEL.match(written, at):
        found[match.group(1)] = _ESCAPED.sub(r"\1", match.group(2))
        at = match.end()
    return in_lower_case(found)


def _parse_number(rest: str) -> float | None:
    match = _VALUE.match(rest)
    try:
        return float(match.group(1)) if match is not None else None
    except ValueError:
        return None
