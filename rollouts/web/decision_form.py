"""The form of a decision on a stage."""

from django import forms

from edges.fields import Reason
from rollouts.commands.plan_approvals import WHY_REJECT

NEITHER = "This says neither approve nor reject: press one of the two."
NO_BUNDLE = "This names no bundle that was ever shown: open the page again, and decide on what it shows."


class DecisionForm(forms.Form):
    """Has no default decision. The command checks whether a reason is needed."""

    decision = forms.ChoiceField(
        choices=[("approve", "Approve"), ("reject", "Reject")],
        error_messages={"required": NEITHER, "invalid_choice": NEITHER},
    )
    bundle_hash = forms.CharField(required=False, max_length=64, error_messages={"max_length": NO_BUNDLE})
    reason = Reason(required=False, strip=False)

    def clean_reason(self) -> str:
        reason: str = self.cleaned_data["reason"].strip()
        if self.cleaned_data.get("decision") == "reject" and not reason:
            raise forms.ValidationError(WHY_REJECT)
        return reason
