"""The forms of a plan's buttons: the reason, and what the page showed when the button was pressed.

The command itself refuses an outdated revision or state. The next page shows the input of a refused one again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms

from edges import kept_input
from edges.fields import Reason, WholeNumber
from edges.kept_input import WhyForm
from edges.requests import PersonRequest
from rollouts.commands.image_pulls import HOW_MANY
from rollouts.commands.plan_approvals import WHY_REJECT
from rollouts.models import Plan
from rollouts.rehearsal.faults import FAULTS, MOST_SEED

NO_REVISION = "The revision of the plan is missing. Open its page again and start the plan there."

OF_A_PLAN = ("reason", "override_reason", "hours", "nodes_each")
NO_OBJECT = "The version and template of this page are unknown. Open the plan's page again and hand over there."


class StartForm(WhyForm):
    revision = WholeNumber(error_messages=dict.fromkeys(("required", "invalid"), NO_REVISION))
    override_reason = Reason(required=False)
    overrides = forms.BooleanField(required=False)  # the page showed blockers, so that its reason is for them

    def clean(self) -> dict[str, Any]:
        """Returns the input without a reason that was left in a hidden field."""
        given = super().clean() or self.cleaned_data
        if not given.pop("overrides", False):
            given["override_reason"] = ""
        return given


class ResumeForm(WhyForm):
    """Resuming depends on what was shown; stopping and rolling back do not."""

    expected_state = forms.CharField(required=False, max_length=16)


class CompleteForm(WhyForm):
    """`seen` is the hash of what the page said it would leave out."""

    seen = forms.CharField(required=False)


class HandOverForm(WhyForm):
    """`seen` is the hash of the object's version and template as shown."""

    seen = forms.CharField(max_length=64, error_messages={"required": NO_OBJECT})


class PullForm(WhyForm):
    nodes_each = WholeNumber(error_messages=dict.fromkeys(("required", "invalid"), HOW_MANY))


class RehearsalForm(forms.Form):
    fault = forms.ChoiceField(
        required=False,
        choices=[("", "none"), *((fault.key, fault.title) for fault in FAULTS.values())],
        error_messages={"invalid_choice": "This fault does not exist."},
    )
    seed = WholeNumber(min_value=0, max_value=MOST_SEED)


NEITHER = "Press either Approve or Reject."
NO_BUNDLE = "The version of this page is unknown. Open the page again and decide there."


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


@contextmanager
def kept_if_refused(
    request: PersonRequest, plan: Plan, verb: str, refusals: tuple[type[Exception], ...]
) -> Iterator[None]:
    with kept_input.kept_if_refused(request, _input_key(plan), *OF_A_PLAN, refusals=refusals, verb=verb):
        yield


def pop_plan_input(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Returns the kept input of this plan; empty if there is none."""
    return kept_input.pop_kept_input(request, _input_key(plan))


def _input_key(plan: Plan) -> str:
    return f"plan-{plan.pk}"
