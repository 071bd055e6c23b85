"""The forms in the dialogs of a finding."""

from datetime import timedelta

from django import forms
from django.http import QueryDict

from edges.concurrent_edits import LENGTH
from edges.digits import whole_number
from edges.fields import Reason, WholeNumber
from fleet.models import Pool
from health.inbox import rule_mutes
from health.inbox.refusals import BadAct
from health.models import Finding, Mute
from people.models import User
from people.roster.accounts import LONGEST_NAME

LONGEST_H = rule_mutes.MOST // timedelta(hours=1)
HOW_LONG = f"Give a duration from 1 to {LONGEST_H} hours."


class ActForm(forms.Form):
    """The form of an act. Each act decides whether it needs a reason and an assignee."""

    to = forms.CharField(required=False)
    reason = Reason(required=False)
    seen = forms.CharField(required=False, max_length=LENGTH)
    key = forms.CharField(required=False, max_length=100)

    def clean_to(self) -> str:
        to: str = self.cleaned_data["to"]
        return to[: LONGEST_NAME + 1]  # one character more, so that it matches no name


class MuteForm(forms.Form):
    """The form of a mute. `scope` is an unsaved mute."""

    scope = forms.CharField(required=False, max_length=40)
    hours = WholeNumber(
        min_value=1,
        max_value=LONGEST_H,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), HOW_LONG),
    )
    reason = Reason(required=False)
    key = forms.CharField(required=False, max_length=100)

    def __init__(self, data: QueryDict, *, finding: Finding, user: User) -> None:
        super().__init__(data)
        self.finding, self.user = finding, user

    def clean_scope(self) -> Mute:
        scope, _, key = self.cleaned_data["scope"].partition("-")
        try:
            return rule_mutes.scoped(self.finding, scope, pool=self._pool(key) if scope == "pool" else None)
        except BadAct as refusal:
            raise forms.ValidationError(str(refusal)) from refusal

    def _pool(self, key: str) -> Pool | None:
        return Pool.objects.visible_to(self.user).filter(pk=whole_number(key) or 0).first()
