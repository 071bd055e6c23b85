"""What somebody wrote for an act on a finding or a mute that was refused: it comes back once, as it does of plans."""

from collections.abc import Iterator
from contextlib import contextmanager

from edges import written
from edges.moves import IllegalMove, LostRace
from edges.requests import PersonRequest, answered
from health.inbox.refusals import FindingRefusal
from people.rights import NotAllowed

LIFT = "lift"  # of a mute: no act on a finding
MUTES = "mutes"
REFUSALS = (FindingRefusal, IllegalMove, LostRace, NotAllowed)


@contextmanager
def kept_if_refused(request: PersonRequest, finding_id: int | None, verb: str, *, done: str) -> Iterator[None]:
    """The next page says that it is done, or the sentence of its refusal, and has what was written once more.

    `finding_id` None: it was about a mute, and whichever finding is shown next has it.
    """
    kept = written.kept_if_refused(request, _about(finding_id), "because", refusals=REFUSALS, verb=verb)
    with answered(request, REFUSALS, done=done), kept:
        yield


def take(request: PersonRequest, finding_id: int | None) -> dict[str, str]:
    """Empty: nothing was refused of this finding, nor of a mute. None: none is shown."""
    return written.take(request, _about(finding_id)) or written.take(request, MUTES)


def _about(finding_id: int | None) -> str:
    return MUTES if finding_id is None else f"finding-{finding_id}"
