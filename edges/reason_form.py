"""The form that asks only for a reason, as most dialogs do."""

from typing import Any

from django import forms
from django.http import QueryDict

from edges.fields import Reason
from edges.kept_input import cleaned_input
from edges.requests import PersonRequest

SAY_WHY = "Give a reason. It is shown to the next person on this page."


class WhyForm(forms.Form):
    """`key` identifies one press of a button; a repeat with the same key counts as the same press. Blank: not
    counted."""

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
