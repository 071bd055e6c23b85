"""What somebody wrote into a dialog whose act was refused: the next page about the same has it once more."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest

from edges.requests import LONGEST_REASON, text_of

KEY = "written"
AT_MOST = 5  # things in one session: each is up to a few thousand characters in a row of the database


def keep(request: HttpRequest, about: str, *names: str, verb: str = "") -> None:
    """`about`: what was acted on, as `plan-7`. `names`: of the fields whose text is kept."""
    others = {key: kept for key, kept in request.session.get(KEY, {}).items() if key != about}
    newest = dict(list(others.items())[-(AT_MOST - 1) :])
    request.session[KEY] = newest | {about: {"verb": verb} | {name: _cut(request, name) for name in names}}


@contextmanager
def kept_if_refused(
    request: HttpRequest, about: str, *names: str, refusals: tuple[type[Exception], ...], verb: str = ""
) -> Iterator[None]:
    """The same, where the act is refused; the refusal goes on to who says it."""
    try:
        yield
    except refusals:
        keep(request, about, *names, verb=verb)
        raise


def take(request: HttpRequest, about: str) -> dict[str, str]:
    """Empty: nothing was refused of this, or a page has had it."""
    kept = dict(request.session.get(KEY, {}))
    found: dict[str, str] = kept.pop(about, {})
    if found:
        request.session[KEY] = kept
    return found


def _cut(request: HttpRequest, name: str) -> str:
    return text_of(request, name)[:LONGEST_REASON]
