import pytest
from django import forms
from django.test import RequestFactory

from edges.kept_input import AT_MOST, BadForm, cleaned_input, keep_input, kept_if_refused, pop_kept_input


class Refused(Exception):
    pass


def asked(session: dict, **written: str):
    request = RequestFactory().post("/", written)
    request.session = session
    return request


def test_what_was_refused_comes_back_once_and_only_where_it_was():
    session: dict = {}
    with (
        pytest.raises(Refused),
        kept_if_refused(
            asked(session, reason="one\r\ntwo", other="x"), "plan-7", "reason", refusals=(Refused,), verb="halt"
        ),
    ):
        raise Refused

    assert pop_kept_input(asked(session), "plan-8") == {}
    assert pop_kept_input(asked(session), "plan-7") == {"verb": "halt", "reason": "one\ntwo"}
    assert pop_kept_input(asked(session), "plan-7") == {}


class HoursForm(forms.Form):
    hours = forms.IntegerField(min_value=1, error_messages={"invalid": "Hours are a number."})
    reason = forms.CharField(error_messages={"required": "Say why."})


def test_what_is_wrong_comes_back_by_field_and_as_one_sentence():
    session: dict = {}
    request = asked(session, hours="many")

    with pytest.raises(BadForm) as refused, kept_if_refused(request, "mute-7", "hours", refusals=(BadForm,)):
        cleaned_input(HoursForm(request.POST))

    assert str(refused.value) == "Hours are a number. Say why."
    kept = pop_kept_input(asked(session), "mute-7")
    assert kept == {"verb": "", "hours": "many", "wrong": {"hours": "Hours are a number.", "reason": "Say why."}}
    assert cleaned_input(HoursForm({"hours": "2", "reason": " So. "})) == {"hours": 2, "reason": "So."}


def test_what_was_done_is_not_kept():
    session: dict = {}

    with kept_if_refused(asked(session, reason="Fine."), "plan-7", "reason", refusals=(Refused,)):
        pass

    assert pop_kept_input(asked(session), "plan-7") == {}


def test_two_pages_do_not_take_each_others_and_a_session_does_not_grow():
    session: dict = {}
    for number in range(AT_MOST + 3):
        keep_input(asked(session, reason="x" * 5000), f"plan-{number}", "reason")

    assert pop_kept_input(asked(session), "plan-0") == {}
    assert len(pop_kept_input(asked(session), f"plan-{AT_MOST}")["reason"]) == 1000
    assert pop_kept_input(asked(session), f"plan-{AT_MOST + 2}")["verb"] == ""
    assert len(session["written"]) == AT_MOST - 2
