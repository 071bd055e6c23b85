"""Why somebody does it: what most dialogs ask for, and nothing else."""

from typing import Any

from django import forms
from django.http import QueryDict

from edges.fields import Reason
from edges.kept_input import read
from edges.requests import PersonRequest

SAY_WHY = "Say why: the next person at this page will want to know."


class WhyForm(forms.Form):
    """`key`: which press of its button it is; a second one with the same is the first. Blank: nobody counts them."""

    reason = Reason()
    key = forms.CharField(required=False, max_length=100)

    def __init__(self, data: QueryDict, *, missing: str = SAY_WHY, **given: Any) -> None:
        """`missing`: what is said where no reason was written."""
        super().__init__(data, **given)
        self.fields["reason"].error_messages["required"] = missing


def reason_of(request: PersonRequest, *, missing: str = SAY_WHY) -> str:
    """:raises BadForm: when nothing was written, or more than is kept"""
    reason: str = read(WhyForm(request.POST, missing=missing))["reason"]
    return reason
