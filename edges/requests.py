from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from people.models import User

LONGEST_REASON = 1000  # characters: as its columns have them


class PersonRequest(HttpRequest):
    """A request of somebody who has signed in: `SignInFirst` lets nobody else reach a page."""

    user: User


def text_of(request: HttpRequest, name: str) -> str:
    """What somebody wrote, as they count it: a browser sends two characters for the end of a line."""
    return request.POST.get(name, "").replace("\r\n", "\n")


def reason(request: HttpRequest, name: str = "reason") -> str:
    """Why a person does it, as a form says it. Blank: they did not say."""
    return text_of(request, name).strip()[:LONGEST_REASON]


@contextmanager
def answered(
    request: HttpRequest, refusals: tuple[type[Exception], ...], *, done: str = "", ends_form: bool = False
) -> Iterator[None]:
    """One act of a page: the next page says that it is done, or the sentence of its refusal.

    Without `done` the act itself says what it has done. `ends_form`: who is refused finds no form for it any more, so
    that the reason they wrote is said beside the sentence. For one that is there see `edges.kept_input`.
    """
    try:
        yield
    except refusals as refusal:
        written = reason(request) if ends_form else ""
        messages.error(request, f"{refusal} Not kept. You wrote: {written}" if written else str(refusal))
    else:
        if done:
            messages.success(request, done)
