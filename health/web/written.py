"""What somebody wrote for an act on a finding that was refused: it comes back once, as it does of plans."""

from collections.abc import Iterator
from contextlib import contextmanager

from edges.moves import IllegalMove, LostRace
from edges.requests import PersonRequest, answered, reason
from health.inbox.refusals import FindingRefusal
from people.rights import NotAllowed

KEY = "written-of-finding"
REFUSALS = (FindingRefusal, IllegalMove, LostRace, NotAllowed)


@contextmanager
def kept_if_refused(request: PersonRequest, finding_id: int, verb: str, *, done: str) -> Iterator[None]:
    """The next page says that it is done, or the sentence of its refusal, and has what was written once more."""
    with answered(request, REFUSALS, done=done):
        try:
            yield
        except REFUSALS:
            request.session[KEY] = {"finding": finding_id, "verb": verb, "because": reason(request)}
            raise


def take(request: PersonRequest, finding_id: int | None) -> dict[str, str]:
    """Empty: nothing was refused of this finding."""
    if finding_id is None or request.session.get(KEY, {}).get("finding") != finding_id:
        return {}
    return dict(request.session.pop(KEY))
