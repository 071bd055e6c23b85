"""The general kind of an error in a line that no other table knows. Pure.

An error of Go has its reason last, after the errors of all its callers: its innermost part that is of a known kind
decides. The object is the one that is nearest to it.
"""

import re
from collections.abc import Iterator

from health.stack.causes.base import Cause, PodSigns, Signs
from health.stack.causes.entries import CauseMatcher, table
from kube.log_lines import LONGEST, LineWeight, message_of, weight

KINDS = table("unknown.kind")
# Python's exceptions for faults of a program itself: a name in their message, such as "timeout", is no kind.
OWN_FAULT = re.compile(r"(?:^|[\]\s(:|])(?:Key|Type|Value|Attribute|Index|Name)Error: ")
PARTS_AT_MOST = 12  # parts of an error that are read, the innermost first


def kind_of_line(signs: Signs) -> Cause | None:
    """Returns the kind of the line that decides: of the log, else of how the container ended or did not start.

    None while the pod is coming up: a program repeats its first requests until they are answered.
    """
    line = _line(signs.pod) if signs.pod and not signs.pod.is_coming_up else ""
    for part in _parts(line):
        if kind := next((each for each in KINDS if each.match([part])), None):
            return kind.cause(signs, line, _object(kind, line))
    return None


def _line(pod: PodSigns) -> str:
    line = pod.decisive_line or (pod.message if pod.has_no_log else "")
    return line if weight(line) >= LineWeight.SECONDHAND and not OWN_FAULT.search(line[:LONGEST]) else ""


def _parts(line: str) -> Iterator[str]:
    """Yields the two innermost parts, such as "open /x: permission denied", then each with the parts around it."""
    parts = message_of(line, LONGEST).split(": ") if line else [""]
    inner = ": ".join(parts[-2:])
    yield inner
    for part in reversed(parts[-PARTS_AT_MOST:-2]):
        inner = f"{part}: {inner}"
        yield inner


def _object(kind: CauseMatcher, line: str) -> dict[str, str]:
    """Returns the object that is named nearest to the reason."""
    named = (found for part in _parts(line) for pattern in kind.facts if (found := pattern.search(part)))
    nearest = next(named, None)
    return {name: text for name, text in nearest.groupdict().items() if text} if nearest else {}
