import base64
import gzip
import socket
import time
from threading import Event

import pytest

from health.telemetry.prometheus import client
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Address, Bounds, Client, check_host
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying

VECTOR = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}'


def asked(url: str, **given: str) -> list:
    with Client(Address(url, may_be_loopback=True, **given)) as each:
        return each.query("up")


def trouble(url: str, **given: str) -> str:
    with pytest.raises(Unusable) as refusal:
        asked(url, **given)
    return str(refusal.value)


def test_asks_and_reads_the_answer():
    with a_server(saying(VECTOR)) as (url, server):
        assert asked(url)[0].value.value == 2.0
        assert server.queries == ["query=up"]


def test_says_who_it_is_by_password_or_by_token():
    with a_server(saying(VECTOR)) as (url, server):
        asked(url, user="ada", password="correct horse")
        asked(url, token="sesame")

    basic, bearer = (each["Authorization"] for each in server.headers_seen)
    assert basic == "Basic " + base64.b64encode(b"ada:correct horse").decode()
    assert bearer == "Bearer sesame"


def test_no_secret_is_in_what_is_printed_of_an_address():
    assert "sesame" not in repr(Address("http://x", token="sesame", password="sesame"))


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"Unauthorized", "(401): the user name, password or token is wrong"),
        (404, b"<html>", "no Prometheus at this address (404)"),
        (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', "bad_data: parse error"),
        (503, b"", "(503)"),
        (418, b"", "It answers 418."),
        (200, b"<!doctype html>", "a web page"),
    ],
)
def test_says_what_helps_when_it_is_refused(status, body, said):
    with a_server(saying(body, status)) as (url, _):
        assert said in trouble(url)


def test_follows_nobody_elsewhere():
    with a_server(saying(b"", 302, Location="http://169.254.169.254/")) as (url, server):
        assert "sends us on to http://169.254.169.254/" in trouble(url, token="sesame")
        assert len(server.queries) == 1


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("https://amy:sesame@sso.internal:8443/login?token=sesame#sesame", "to https://sso.internal:8443/login, which"),
        ("/-/login?token=sesame", "to /-/login, which"),
        ("//sesame@other/" + "a" * 5000, "to //other/aaa"),
        ("http://[sesame/", "to an address that is none, which"),
        ("", "to nowhere, which"),
    ],
)
def test_says_where_it_is_sent_on_to_without_what_may_be_a_secret(to: str, said: str):
    with a_server(saying(b"", 302, Location=to)) as (url, _):
        sentence = trouble(url)

    assert said in sentence
    assert "sesame" not in sentence
    assert len(sentence) < 300


def test_stops_reading_what_is_too_large(monkeypatch):
    monkeypatch.setattr(client, "ANSWER_BYTES", 1 << 20)

    def endless(to):
        to.send_response(200)
        to.end_headers()
        while True:
            to.wfile.write(b" " * 65536)

    with a_server(endless) as (url, _):
        assert "larger than 1 MiB" in trouble(url)


def test_stops_waiting_for_one_that_trickles():
    bounds = Bounds(connect_s=3, read_s=5, answer_s=0.4, answer_bytes=1 << 20)

    def trickle(to):
        to.send_response(200)
        to.end_headers()
        for _ in range(100):
            to.wfile.write(b" ")
            to.wfile.flush()
            time.sleep(0.05)

    begun = time.monotonic()
    with a_server(trickle) as (url, _):
        with (
            Client(Address(url, may_be_loopback=True), bounds) as each,
            pytest.raises(Unusable, match="took longer than"),
        ):
            each.query("up")
        assert time.monotonic() - begun < 4.0


@pytest.mark.parametrize("dripped", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 "])
def test_stops_waiting_for_headers_that_trickle(dripped):
    """No timeout between two pieces ends it: each comes in time."""
    bounds = Bounds(connect_s=3, read_s=5, answer_s=0.4, answer_bytes=1 << 20)

    def trickle(to):
        to.wfile.write(dripped)
        for _ in range(100):
            to.wfile.write(b"X-More: of it\r\n" if dripped.endswith(b"\n") else b"2")
            to.wfile.flush()
            time.sleep(0.05)

    begun = time.monotonic()
    with a_server(trickle) as (url, _), Client(Address(url, may_be_loopback=True), bounds) as each:
        with pytest.raises(Unusable, match="took longer than"):
            each.query("up")
        assert time.monotonic() - begun < 2.0


def test_asks_again_after_it_cut_one_off():
    bounds = Bounds(connect_s=3, read_s=5, answer_s=0.3, answer_bytes=1 << 20)
    slow = iter([True, False])

    def answer(to):
        if next(slow):
            to.wfile.write(b"HTTP/1.1 200 OK\r\n")
            time.sleep(0.6)
        saying(VECTOR)(to)

    with a_server(answer) as (url, _), Client(Address(url, may_be_loopback=True), bounds) as each:
        with pytest.raises(Unusable):
            each.query("up")
        assert each.query("up") is not None


def test_reads_nothing_that_is_compressed():
    packed = gzip.compress(b" " * (64 << 20))

    with a_server(saying(packed, **{"Content-Encoding": "gzip"})) as (url, _):
        assert "compressed (gzip)" in trouble(url)


def test_says_that_nobody_listens():
    assert "cannot be reached" in trouble(f"http://127.0.0.1:{a_closed_port()}")


def test_says_that_it_hung_up():
    with a_server(lambda to: to.connection.close()) as (url, _):
        assert trouble(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.org", "begins with http://"),
        ("example.org:9090", "begins with http://"),
        ("http://", "has a host"),
        ("http://[::1", "cannot be read"),
        ("http://example.org:99999", "cannot be read"),
        ("http://ada:secret@192.0.2.1", "no user, password"),
        ("http://192.0.2.1/?x=1", "no user, password"),
        ("http://169.254.169.254/latest", "which is no server's"),
        ("http://[fe80::1]", "which is no server's"),
        ("http://[::ffff:169.254.169.254]", "which is no server's"),
        ("http://0.0.0.0", "which is no server's"),
        ("http://224.0.0.1", "which is no server's"),
        ("http://127.0.0.1:9090", "this machine itself"),
        ("http://[::1]:9090", "this machine itself"),
        ("http://nowhere.invalid", "cannot be looked up"),
        ("http://a\0b", "cannot be looked up"),
        (f"http://{'a' * 64}.example", "cannot be looked up"),
    ],
)
def test_asks_no_address_that_is_no_prometheus(url, said):
    with pytest.raises(Unusable, match=said):
        check_host(url, may_be_loopback=False)


def test_waits_no_longer_for_a_name_than_for_an_answer(monkeypatch):
    """A name server that says nothing costs half a minute, and whoever asks meanwhile waits on a page."""
    is_over = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(10) and [])
    began = time.monotonic()

    with pytest.raises(Unusable, match=r"cannot be looked up: no answer within 0\.2 s"):
        Client(Address("http://prometheus.example"), Bounds(1.0, 1.0, 0.2, 1 << 20))

    is_over.set()
    assert time.monotonic() - began < 5


def test_looks_who_answers_once_more_when_connected(monkeypatch):
    """A name that led elsewhere when it was checked: who listens there is asked nothing, and hears no token."""
    monkeypatch.setattr(client, "check_host", lambda *_, **__: None)
    with a_server(saying(VECTOR)) as (url, server), Client(Address(url, token="t0ken")) as each:
        for _ in range(2):
            with pytest.raises(Unusable, match="itself"):
                each.query("up")

    assert server.headers_seen == []


def test_a_ca_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Unusable, match="CA cannot be read: "):
        Client(Address("https://192.0.2.1", ca_file=str(tmp_path / "none.pem")))
