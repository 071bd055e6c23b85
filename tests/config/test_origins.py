"""Which pages may open a socket here: those of the same scheme, name and port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.origins import is_ours, parse_origin


def scope(*, origin: str | None, host: str = "testserver:8000", scheme: str = "ws", **more: str) -> dict:
    headers = [(b"host", host.encode("latin-1"))]
    headers += [] if origin is None else [(b"origin", origin.encode("latin-1"))]
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in more.items()]
    return {"type": "websocket", "scheme": scheme, "headers": headers}


@pytest.mark.parametrize(
    ("origin", "host", "scheme", "expected"),
    [
        ("http://testserver:8000", "testserver:8000", "ws", True),
        ("http://testserver", "testserver", "ws", True),
        ("http://testserver:80", "testserver", "ws", True),
        ("https://testserver", "testserver:443", "wss", True),
        ("http://TESTSERVER:8000", "testserver:8000", "ws", True),
        ("http://testserver:8001", "testserver:8000", "ws", False),
        ("https://testserver:8000", "testserver:8000", "ws", False),
        ("http://testserver", "testserver", "wss", False),
        ("http://elsewhere:8000", "testserver:8000", "ws", False),
        ("http://elsewhere:8000", "elsewhere:8000", "ws", False),
        ("http://testserver:8000.evil.example", "testserver:8000", "ws", False),
        ("http://user@testserver:8000", "testserver:8000", "ws", True),
        ("null", "testserver:8000", "ws", False),
        ("", "testserver:8000", "ws", False),
        (None, "testserver:8000", "ws", False),
        ("http://testserver:99999999", "testserver:8000", "ws", False),
        ("file://testserver:8000", "testserver:8000", "ws", False),
    ],
)
def test_scheme_name_and_port_are_compared(settings, origin, host, scheme, expected):
    settings.ALLOWED_HOSTS = ["testserver"]

    assert is_ours(scope(origin=origin, host=host, scheme=scheme)) is expected


def test_behind_tls_the_proxy_says_the_scheme(settings):
    settings.ALLOWED_HOSTS = ["q.example"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    asked = {"host": "q.example", "x_forwarded_proto": "https"}

    assert is_ours(scope(origin="https://q.example", **asked))
    assert not is_ours(scope(origin="http://q.example", **asked))
    assert not is_ours(scope(origin="https://q.example", host="q.example"))


def test_an_origin_that_is_trusted_by_name_is_ours(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://q.example:8443", "https://*.q.example"]

    assert is_ours(scope(origin="https://q.example:8443"))
    assert is_ours(scope(origin="https://eu.q.example"))
    assert not is_ours(scope(origin="https://q.example"))
    assert not is_ours(scope(origin="http://eu.q.example"))


def test_two_origins_are_none(settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    twice = scope(origin="http://testserver:8000")
    twice["headers"].append((b"origin", b"http://testserver:8000"))

    assert not is_ours(twice)


@given(st.text(max_size=60))
def test_no_text_does_more_than_be_no_origin(text: str):
    found = parse_origin(text)

    assert found is None or found.scheme in {"http", "https"}
