import msgspec
import pytest

from kube.client import errors
from kube.client.errors import PATCH_DOES_NOT_APPLY, error_for


def status(code: int, message: str = "no", **more: object) -> bytes:
    return msgspec.json.encode({"kind": "Status", "status": "Failure", "code": code, "message": message, **more})


def test_what_no_row_can_keep_is_in_no_sentence():
    """An exporter behind its proxy says what it likes."""
    assert str(error_for(500, status(500, "no\0 more"))) == "no more"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (401, errors.BadCredentials),
        (403, errors.Forbidden),
        (404, errors.Absent),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Refused),
        (429, errors.TooManyRequests),
        (500, errors.InternalError),
        (502, errors.ServerFailing),
        (503, errors.ServerFailing),
    ],
)
def test_every_status_has_its_own_meaning(code, expected):
    error = error_for(code, status(code, "reason"))

    assert type(error) is expected
    assert str(error) == "reason"


def test_a_patch_whose_test_failed_is_a_conflict_and_not_a_refusal():
    error = error_for(422, status(422, PATCH_DOES_NOT_APPLY, reason="Invalid"))

    assert isinstance(error, errors.Conflict)


def test_the_wait_is_the_servers_own_where_it_names_one():
    by_header = error_for(429, status(429), retry_after="7")
    by_body = error_for(429, status(429, details={"retryAfterSeconds": 10}))

    assert by_header.retry_after_s == 7
    assert by_body.retry_after_s == 10


def test_asking_again_is_useless_where_we_may_not_or_it_is_not_there():
    assert error_for(403, status(403)).retry_after_s is None
    assert error_for(404, status(404)).retry_after_s is None


def test_an_api_group_that_is_not_installed_answers_in_plain_text():
    assert isinstance(error_for(404, b"404 page not found\n"), errors.Absent)


def test_a_web_page_is_not_an_api_server():
    assert isinstance(error_for(302, b"<html>"), errors.NotAnApiServer)
