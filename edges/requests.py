from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from people.models import User

LONGEST_REASON = 1000  # characters, as in its columns


class PersonRequest(HttpRequest):
    """A request of a signed-in person. `SignInFirst` admits nobody else."""

    user: User


def text_of(request: HttpRequest, name: str) -> str:
    """Returns the text of a field; counts a line break as one character, although a browser sends two."""
    return request.POST.get(name, "").replace("\r\n", "\n")


def reason(request: HttpRequest, name: str = "reason") -> str:
    """Returns the reason in a form. Blank: none was given."""
    return text_of(request, name).strip()[:LONGEST_REASON]


@contextmanager
def report_act(
    request: HttpRequest, refusals: tuple[type[Exception], ...], *, done: str = "", ends_form: bool = False
) -> Iterator[None]:
    """Runs one act of a page, and shows success or the refusal on the next page.

    Without `done` the act reports its own result. With `ends_form` the refusal quotes the reason, since the next
    page has no form to show it. Where the form remains, use `edges.kept_input`.
    """
    try:
        yield
    except refusals as refusal:
        written = reason(request) if ends_form else ""
        messages.error(request, f"{refusal} Your text was not saved: {written}" if written else str(refusal))
    else:
        if done:
            messages.success(request, done)
