from datetime import datetime

from django import forms

from edges.fields import DateAndTime, Reason
from rollouts.commands import fleet_freezes
from rollouts.commands.refusals import BadFreeze
from rollouts.web.scopes import PlacedForm


class FreezeForm(PlacedForm):
    on = forms.CharField(
        label="Scope",
        error_messages={"required": "Choose what to freeze."},
        widget=forms.Select,
        help_text="The freeze applies to the present nodes of the pool at each moment.",
    )
    until = DateAndTime(label="Until (UTC)", required=False, help_text="Empty: until a person lifts the freeze.")
    reason = Reason(
        label="Reason (stored permanently, and shown by all plans that wait)",
        error_messages={"required": "Give a reason. Every waiting plan shows it."},
    )
    binds_rollbacks = forms.BooleanField(
        label="Bind rollbacks as well",
        required=False,
        help_text="If not selected, rollbacks continue, so that one operator can always roll back without help.",
    )

    @property
    def look(self) -> str:
        """Returns the previewed scope and rule; another one is previewed again."""
        return f"{self['on'].value()} {bool(self['binds_rollbacks'].value())}"

    def clean_until(self) -> datetime | None:
        """Returns the end; None until somebody lifts it."""
        until = self.cleaned_data["until"]
        try:
            fleet_freezes.refuse_end(until, now=self.now)
        except BadFreeze as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return until

    def freeze(self, *, key: str) -> None:
        """Creates the freeze.

        :raises Refusal: when the key made another one
        """
        given = self.cleaned_data
        fleet_freezes.freeze(
            given["on"], actor=self.user.username, reason=given["reason"], until=given["until"],
            binds_rollbacks=given["binds_rollbacks"], key=key, now=self.now,
        )  # fmt: skip
