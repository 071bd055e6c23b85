"""The input of a refused act on a finding. The next page shows it once, as plans do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edges import kept_input
from edges.requests import PersonRequest, report_act
from edges.transition_errors import IllegalMove, LostRace
from health.inbox.refusals import FindingRefusal
from people.rights import NotAllowed

WRITTEN = ("reason", "to", "scope", "hours")
REFUSALS = (kept_input.BadForm, FindingRefusal, IllegalMove, LostRace, NotAllowed)


@contextmanager
def kept_if_refused(request: PersonRequest, finding_id: int, verb: str, *, done: str) -> Iterator[None]:
    """Shows success or the sentence of the refusal on the next page, with the input once more."""
    kept = kept_input.kept_if_refused(request, _input_key(finding_id), *WRITTEN, refusals=REFUSALS, verb=verb)
    with report_act(request, REFUSALS, done=done), kept:
        yield


def pop_finding_input(request: PersonRequest, finding_id: int) -> dict[str, Any]:
    """Returns the kept input; empty if no act on this finding was refused."""
    return kept_input.pop_kept_input(request, _input_key(finding_id))


def _input_key(finding_id: int) -> str:
    return f"finding-{finding_id}"
