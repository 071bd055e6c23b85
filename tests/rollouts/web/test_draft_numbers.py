"""Numbers of the draft form: what is none is refused beside its field, and never crashes the page."""

from contextlib import suppress

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from rollouts.commands.refusals import BadPlan
from rollouts.components.driver import is_version
from rollouts.web.draft_form import DraftForm

FIELDS = ["count", "max_unavailable", "timeout_min", "approvals", "soak_min", "tolerate", "pool"]


def form_with(**given: str) -> DraftForm:
    post = QueryDict(mutable=True)
    stages = {"stage-TOTAL_FORMS": "1", "stage-INITIAL_FORMS": "0"}
    post.update({**stages, "revision": "1", **{f"stage-0-{name}": value for name, value in given.items()}})
    return DraftForm(post)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("written", ["１０", "inf", "nan", "1e9", "1_0", "9" * 900, "²", "+1", "0x1"])
def test_what_is_no_number_here_is_said_beside_its_field(field: str, written: str):
    with pytest.raises(BadPlan) as refusal:
        form_with(**{field: written}).stages()

    assert [problem["field"] for problem in refusal.value.problems] == [f"stages.0.{field}"]


@given(field=st.sampled_from(FIELDS), written=st.text(max_size=20) | st.floats().map(str) | st.integers().map(str))
def test_no_text_does_more_than_be_refused(field: str, written: str):
    with suppress(BadPlan):
        form_with(**{field: written}).stages()


@pytest.mark.parametrize("options", ["[" * 900, "{" * 900, '{"soak": NaN}', "nope", '{"soak": 1}', "9" * 900])
def test_options_that_nobody_can_read_are_refused(options: str):
    with pytest.raises(BadPlan) as refusal:
        form_with(options=options).stages()

    assert [problem["field"] for problem in refusal.value.problems] == ["stages.0.options"]


@pytest.mark.parametrize(
    "text", ["５８０.１２６.２０", "580.126.２0", "580.126.20\n", "580", "580.1.2.3.4", "5" * 70 + ".1", ""]
)
def test_a_version_has_ascii_digits(text: str):
    assert not is_version(text)
    assert is_version("580.126.20")
