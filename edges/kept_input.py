"""The input of dialogs. The next page about the same object shows that of a refused one again.

Each field shows its own problem where the form or the refusal names the field.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict

from edges.fields import Reason
from edges.requests import LONGEST_REASON, PersonRequest, text_of

KEY = "written"
SAY_WHY = "Give a reason. It is shown to the next person on this page."
AT_MOST = 5  # dialogs per session; the session is one database row


class BadForm(Exception):
    """The refusal of a form whose input is invalid."""

    def __init__(self, form: forms.BaseForm) -> None:
        errors = form.errors.get_json_data().items()
        self.problems = [
            {"field": field, "sentence": error["message"]} for field, field_errors in errors for error in field_errors
        ]
        super().__init__(" ".join(problem["sentence"] for problem in self.problems))


def cleaned_input(form: forms.BaseForm) -> dict[str, Any]:
    """Returns the cleaned input of a form.

    :raises BadForm: with a sentence per problem
    """
    if not form.is_valid():
        raise BadForm(form)
    return dict(form.cleaned_data)


def keep_input(request: HttpRequest, about: str, *names: str, verb: str = "", refusal: Exception | None = None) -> None:
    """Stores the input for the next page. `about` is the object, such as `plan-7`; `names` are the fields to store."""
    others = {key: stored for key, stored in request.session.get(KEY, {}).items() if key != about}
    newest = dict(list(others.items())[-(AT_MOST - 1) :])
    stored: dict[str, Any] = {"verb": verb, **{name: _cut(request, name) for name in names}}
    if problems := _problems_of(refusal):
        stored["wrong"] = problems
    request.session[KEY] = newest | {about: stored}


@contextmanager
def kept_if_refused(
    request: HttpRequest, about: str, *names: str, refusals: tuple[type[Exception], ...], verb: str = ""
) -> Iterator[None]:
    """Stores the input if the act is refused, and raises the refusal again."""
    try:
        yield
    except refusals as refusal:
        keep_input(request, about, *names, verb=verb, refusal=refusal)
        raise


def pop_kept_input(request: HttpRequest, about: str) -> dict[str, Any]:
    """Returns and removes the stored input. Empty: no act on this object was refused."""
    stored = dict(request.session.get(KEY, {}))
    written: dict[str, Any] = stored.pop(about, {})
    if written:
        request.session[KEY] = stored
    return written


def _problems_of(refusal: Exception | None) -> dict[str, str]:
    """Returns the sentences per field, from a form or from a refusal that names fields."""
    by_field = defaultdict(list)
    for problem in getattr(refusal, "problems", ()):
        by_field[problem["field"]].append(problem["sentence"])
    return {field: " ".join(sentences)[:LONGEST_REASON] for field, sentences in by_field.items()}


def _cut(request: HttpRequest, name: str) -> str:
    return text_of(request, name)[:LONGEST_REASON]


class WhyForm(forms.Form):
    """The form that asks only for a reason, as most dialogs do.

    `key` identifies one press of a button; a repeat with the same key counts as the same press. Blank: not counted.
    """

    reason = Reason()
    key = forms.CharField(required=False, max_length=100)

    def __init__(self, data: QueryDict, *, missing: str = SAY_WHY, **given: Any) -> None:
        """`missing` is the error for an empty reason."""
        super().__init__(data, **given)
        self.fields["reason"].error_messages["required"] = missing


def reason_of(request: PersonRequest, *, missing: str = SAY_WHY) -> str:
    """Returns the reason.

    :raises BadForm: when the reason is empty or too long
    """
    reason: str = cleaned_input(WhyForm(request.POST, missing=missing))["reason"]
    return reason
