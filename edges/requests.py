from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from people.models import User


class PersonRequest(HttpRequest):
    """A request of somebody who has signed in: `LoginRequiredMiddleware` lets nobody else reach a page."""

    user: User


@contextmanager
def answered(request: HttpRequest, refusals: tuple[type[Exception], ...], *, done: str) -> Iterator[None]:
    """One act of a page: the next page says that it is done, or the sentence of its refusal."""
    try:
        yield
    except refusals as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, done)
