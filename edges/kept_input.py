"""What somebody wrote into a dialog whose act was refused: the next page about the same has it once more.

Beside each field stands what is wrong with it, where the form or the refusal says which one it is about.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.http import HttpRequest

from edges.requests import LONGEST_REASON, text_of

KEY = "written"
AT_MOST = 5  # things in one session: each is up to a few thousand characters in a row of the database


class BadForm(Exception):
    """What was written into a form makes no act."""

    def __init__(self, form: forms.BaseForm) -> None:
        found = form.errors.get_json_data().items()
        self.problems = [{"field": field, "sentence": one["message"]} for field, several in found for one in several]
        super().__init__(" ".join(problem["sentence"] for problem in self.problems))


def read(form: forms.BaseForm) -> dict[str, Any]:
    """What was written, as the form cleans it.

    :raises BadForm: with a sentence for each field that it is about
    """
    if not form.is_valid():
        raise BadForm(form)
    return dict(form.cleaned_data)


def keep(request: HttpRequest, about: str, *names: str, verb: str = "", refusal: Exception | None = None) -> None:
    """`about`: what was acted on, as `plan-7`. `names`: of the fields whose text is kept."""
    others = {key: kept for key, kept in request.session.get(KEY, {}).items() if key != about}
    newest = dict(list(others.items())[-(AT_MOST - 1) :])
    kept: dict[str, Any] = {"verb": verb, **{name: _cut(request, name) for name in names}}
    if wrong := _wrong(refusal):
        kept["wrong"] = wrong
    request.session[KEY] = newest | {about: kept}


@contextmanager
def kept_if_refused(
    request: HttpRequest, about: str, *names: str, refusals: tuple[type[Exception], ...], verb: str = ""
) -> Iterator[None]:
    """The same, where the act is refused; the refusal goes on to who says it."""
    try:
        yield
    except refusals as refusal:
        keep(request, about, *names, verb=verb, refusal=refusal)
        raise


def take(request: HttpRequest, about: str) -> dict[str, Any]:
    """Empty: nothing was refused of this, or a page has had it."""
    kept = dict(request.session.get(KEY, {}))
    found: dict[str, Any] = kept.pop(about, {})
    if found:
        request.session[KEY] = kept
    return found


def _wrong(refusal: Exception | None) -> dict[str, str]:
    """By field the sentences about it: those of a form, and of a refusal that names fields."""
    found = defaultdict(list)
    for problem in getattr(refusal, "problems", ()):
        found[problem["field"]].append(problem["sentence"])
    return {field: " ".join(said)[:LONGEST_REASON] for field, said in found.items()}


def _cut(request: HttpRequest, name: str) -> str:
    return text_of(request, name)[:LONGEST_REASON]
