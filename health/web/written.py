"""What somebody wrote for an act on a finding or a mute that was refused: it comes back once, as it does of plans."""

from collections.abc import Iterator
from contextlib import contextmanager

from edges.moves import IllegalMove, LostRace
from edges.requests import PersonRequest, answered, reason
from health.inbox.refusals import FindingRefusal
from people.rights import NotAllowed

KEY = "written-of-finding"
LIFT = "lift"  # of a mute: no act on a finding
REFUSALS = (FindingRefusal, IllegalMove, LostRace, NotAllowed)


@contextmanager
def kept_if_refused(request: PersonRequest, finding_id: int | None, verb: str, *, done: str) -> Iterator[None]:
    """The next page says that it is done, or the sentence of its refusal, and has what was written once more.

    `finding_id` None: it was about a mute, and whichever finding is shown next has it.
    """
    with answered(request, REFUSALS, done=done):
        try:
            yield
        except REFUSALS:
            request.session[KEY] = {"finding": finding_id, "verb": verb, "because": reason(request)}
            raise


def take(request: PersonRequest, finding_id: int | None) -> dict[str, str]:
    """Empty: nothing was refused of this finding. None: none is shown."""
    kept = request.session.get(KEY)
    if kept is None or kept["finding"] not in (None, finding_id):
        return {}
    return dict(request.session.pop(KEY))
