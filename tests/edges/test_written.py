import pytest
from django.test import RequestFactory

from edges.written import AT_MOST, keep, kept_if_refused, take


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
            asked(session, because="one\r\ntwo", other="x"), "plan-7", "because", refusals=(Refused,), verb="halt"
        ),
    ):
        raise Refused

    assert take(asked(session), "plan-8") == {}
    assert take(asked(session), "plan-7") == {"verb": "halt", "because": "one\ntwo"}
    assert take(asked(session), "plan-7") == {}


def test_what_was_done_is_not_kept():
    session: dict = {}

    with kept_if_refused(asked(session, because="Fine."), "plan-7", "because", refusals=(Refused,)):
        pass

    assert take(asked(session), "plan-7") == {}


def test_two_pages_do_not_take_each_others_and_a_session_does_not_grow():
    session: dict = {}
    for number in range(AT_MOST + 3):
        keep(asked(session, because="x" * 5000), f"plan-{number}", "because")

    assert take(asked(session), "plan-0") == {}
    assert len(take(asked(session), f"plan-{AT_MOST}")["because"]) == 1000
    assert take(asked(session), f"plan-{AT_MOST + 2}")["verb"] == ""
    assert len(session["written"]) == AT_MOST - 2
