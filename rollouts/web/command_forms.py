"""What the dialogs of a plan's buttons send beside the reason: what the page showed when the button was pressed.

A revision or a state that is not the plan's own is refused by the command itself, which says what the plan is by now.
"""

from django import forms

from edges.fields import Reason, WholeNumber
from edges.reason_form import WhyForm
from rollouts.commands.image_pulls import HOW_MANY

NO_REVISION = "This names no revision of the plan: open its page again, and start what it shows."

NO_VERSION = "This names no version: open the plan's page again, and hand over what it shows."


class StartForm(WhyForm):
    revision = WholeNumber(error_messages=dict.fromkeys(("required", "invalid"), NO_REVISION))
    override_reason = Reason(required=False)


class ResumeForm(WhyForm):
    """Only going on rests on what was seen: nobody who stops or goes back is asked whether they looked again."""

    expected_state = forms.CharField(required=False, max_length=16)


class CompleteForm(WhyForm):
    """`seen`: by its hash, what the page said that it leaves out."""

    seen = forms.CharField(required=False)


class HandOverForm(WhyForm):
    """`version`: what the page said that the object asks for."""

    version = forms.CharField(max_length=64, error_messages={"required": NO_VERSION})


class PullForm(WhyForm):
    nodes_each = WholeNumber(error_messages=dict.fromkeys(("required", "invalid"), HOW_MANY))
