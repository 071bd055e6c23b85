"""The axis of steps: one entry for a kind, one module for a step, and nobody else knows its options."""

import pytest

from operations.api.option_fields import field_of as rest_field_of
from operations.kinds import KINDS
from operations.steps import OPTIONS, STEPS
from operations.steps.options import DurationOption
from operations.web.operation_page import OperationForm
from operations.web.option_fields import name_of, value_of


def test_every_step_is_of_a_kind_and_every_kind_has_steps():
    assert {key for kind in KINDS.values() for key in kind.steps} == set(STEPS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_names_only_kinds_that_there_are(kind):
    assert {*kind.undone_by, kind.trial, kind.follow_up} - {""} <= set(KINDS)
    assert bool(kind.why_fewer) is (kind.most_nodes < max(each.most_nodes for each in KINDS.values()))


def test_steps_that_take_an_option_of_one_name_take_the_same():
    assert all(option is OPTIONS[option.name] for step in STEPS.values() for option in step.options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_has_the_fields_of_its_kind_and_gives_every_option(kind):
    form = OperationForm({"reason": "Xid 79.", "deadline_min": "30", "at_once": "5"}, kind=kind)
    its = {name_of(option) for key in KINDS[kind].steps for option in STEPS[key].options}

    assert form.is_valid()
    assert {field.name for field, _ in form.shown} == its
    assert set(form.options) == set(OPTIONS)


def test_people_give_minutes_and_rest_takes_seconds():
    option = OPTIONS["deadline_s"]
    assert isinstance(option, DurationOption)

    assert (name_of(option), value_of(option, {"deadline_min": 30})) == ("deadline_min", 1800)
    assert rest_field_of(option).run_validation(1800) == 1800
    assert value_of(option, {}) is None
