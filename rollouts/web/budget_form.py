from django import forms

from edges.digits import whole_number
from edges.fields import Reason
from edges.reason_form import SAY_WHY
from operations.failure_domains import DomainKind
from rollouts.commands.domain_budgets import kind_named
from rollouts.commands.refusals import Refusal


class BudgetForm(forms.Form):
    kind = forms.CharField(required=False)
    max_unavailable = forms.CharField(required=False)
    label = forms.CharField(required=False)
    reason = Reason(error_messages={"required": SAY_WHY})

    def clean_kind(self) -> DomainKind:
        try:
            return kind_named(self.cleaned_data["kind"])
        except Refusal as refusal:
            raise forms.ValidationError(str(refusal)) from refusal

    def clean_max_unavailable(self) -> int | None:
        """Returns the number; None for any number."""
        written = self.cleaned_data["max_unavailable"]
        most = whole_number(written)
        if written and most is None:
            raise forms.ValidationError(f"“{written[:20]}” is not a number. Leave the field empty for no limit.")
        return most
