import base64
import gzip
import html
import json
import logging
import socket
import time
from urllib.parse import quote, quote_plus

import pytest

from health.telemetry.prometheus import client
from health.telemetry.prometheus.answers import Unusable, labels
from health.telemetry.prometheus.client import Address, Bounds, Client
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying
from tests.health.telemetry.prometheus.an_authority import Authority

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
        (404, b"<html>", "No Prometheus at this address (404)"),
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
        assert "redirects to http://169.254.169.254/" in trouble(url, token="sesame")
        assert len(server.queries) == 1


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (
            "https://amy:sesame@sso.internal:8443/login?token=sesame#sesame",
            "to https://sso.internal:8443/login. Redirects",
        ),
        ("/-/login?token=sesame", "to /-/login. Redirects"),
        ("//sesame@other/" + "a" * 5000, "to //other/aaa"),
        ("http://[sesame/", "to an invalid address. Redirects"),
        ("", "to nowhere. Redirects"),
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


ECHO = "Bearer {}", "user {} is unknown", '"{}"', "{}"


def spellings(secret: str) -> list[str]:
    """As a server may write what it was sent."""
    in_base64 = [base64.b64encode(f"{before}{secret}".encode()).decode() for before in ("", "a", "ab", "ada:")]
    return [
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        html.escape(secret),
        *in_base64,
    ]


@pytest.mark.parametrize("secret", ["sesame-open", "p+w/0=rd '<\"&>\\ x", "eyJhbGciOi.J9_x-y"])
@pytest.mark.parametrize("given", [{"user": "ada", "password": "{}"}, {"token": "{}"}])
@pytest.mark.parametrize("status", [200, 400])
def test_what_was_sent_is_cut_out_of_what_comes_back(secret, given, status):
    """A server that repeats its request's header: neither what is read as an answer nor a sentence has it. Z39"""
    given = {name: value.format(secret) for name, value in given.items()}
    spelt = spellings(secret)
    said = " ".join(echo.format(each) for each in spelt for echo in ECHO)
    series = {"status": "success", "data": {"result": [{"metric": {"job": said}, "value": [1, "2"]}]}}
    body = series if status == 200 else {"status": "error", "error": said, "errorType": "bad_data"}

    with a_server(saying(json.dumps(body).encode(), status)) as (url, _):
        came = labels(asked(url, **given)[0])["job"] if status == 200 else trouble(url, **given)

    assert "[redacted]" in came
    assert [each for each in spelt if each in came] == []


@pytest.mark.parametrize("header", ["Location", "Content-Encoding"])
def test_what_was_sent_is_cut_out_of_a_header_before_that_is_shortened(header):
    long = "a" * (192 if header == "Location" else 32)
    with a_server(saying(b"", 302, **{header: f"{long}sesame-open"})) as (url, _):
        said = trouble(url, token="sesame-open")

    assert "aaa" in said
    assert "sesa" not in said


def test_a_log_of_everything_has_nothing_of_what_was_sent(caplog):
    caplog.set_level(logging.DEBUG)
    with a_server(saying(VECTOR, **{"X-Repeated": "Bearer sesame-open"})) as (url, _):
        asked(url, token="sesame-open")

    assert "sesame" not in caplog.text


@pytest.fixture
def named(monkeypatch):
    """A name server: what it answers for prometheus.example, one answer after another."""
    real, answers = socket.getaddrinfo, list[list[str]]()

    def look_up(host, port, *args, **more):
        if host != "prometheus.example":
            return real(host, port, *args, **more)
        return [entry for place in answers.pop(0) for entry in real(place, port, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return answers


def at(url: str) -> str:
    return url.replace("127.0.0.1", "prometheus.example")


def test_a_name_is_looked_up_once_and_the_connection_goes_to_the_address_that_was_judged(named):
    """One that leads elsewhere the second time leads nowhere: it is not asked for again. Z39"""
    named += [["127.0.0.1"], ["169.254.169.254"]]
    with a_server(saying(VECTOR)) as (url, server):
        asked(at(url), token="sesame-open")

    assert named == [["169.254.169.254"]]
    assert server.headers_seen[0]["Host"] == at(url).removeprefix("http://")


def test_of_a_name_with_an_address_that_may_not_be_asked_none_is(named):
    named.append(["127.0.0.1", "169.254.169.254"])
    with a_server(saying(VECTOR)) as (url, server):
        assert "which cannot be a server" in trouble(at(url))

    assert server.headers_seen == []


def test_where_one_address_takes_no_connection_the_next_is_asked(named):
    named.append(["127.0.0.2", "127.0.0.1"])
    with a_server(saying(VECTOR)) as (url, server), Client(Address(at(url), may_be_loopback=True)) as each:
        each.query("up")
        each.query("up")

    assert len(server.queries) == 2


def test_a_certificate_is_held_against_the_name_and_not_the_address(named, tmp_path):
    ours = Authority(tmp_path, "our own")
    named += [["127.0.0.1"], ["127.0.0.1"]]
    with a_server(saying(VECTOR), trusted=ours.serving(host="prometheus.example")) as (url, _):
        assert asked(at(url), ca=ours.ca)
    with a_server(saying(VECTOR), trusted=ours.serving(host="127.0.0.1")) as (url, _):
        assert "certificate is for another host name" in trouble(at(url), ca=ours.ca)
