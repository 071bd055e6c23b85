"""A Prometheus with a certificate that an authority of somebody's own signed: trusted where that is named, else not."""

import pytest

from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Address, Client
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.health.telemetry.prometheus.an_authority import DAY, Authority

VECTOR = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}'


@pytest.fixture
def ours(tmp_path):
    return Authority(tmp_path, "our own")


def asked(url: str, **given: str) -> list:
    with Client(Address(url, may_be_loopback=True, **given)) as each:
        return each.query("up")


def trouble(url: str, **given: str) -> str:
    with pytest.raises(Unusable) as refusal:
        asked(url, **given)
    return str(refusal.value)


def test_is_trusted_where_the_authority_that_signed_is_named(ours):
    with a_server(saying(VECTOR), trusted=ours.serving()) as (url, server):
        assert asked(url, ca=ours.ca)[0].value.value == 2.0
        assert asked(url, ca=ours.ca, token="sesame")

    assert [each.get("Authorization") for each in server.headers_seen] == [None, "Bearer sesame"]


def test_without_an_authority_it_says_to_name_one(ours):
    with a_server(saying(VECTOR), trusted=ours.serving()) as (url, server):
        said = trouble(url, token="sesame")

    assert said.startswith("No CA that this host trusts signed the server's certificate. Name its CA.")
    assert server.headers_seen == []


def test_another_authority_than_the_one_that_signed_is_named_as_wrong(ours, tmp_path):
    with a_server(saying(VECTOR), trusted=ours.serving()) as (url, server):
        said = trouble(url, ca=Authority(tmp_path, "another").ca, token="sesame")

    assert said.startswith("The given CA did not sign the server's certificate. Name the CA that signed it.")
    assert server.headers_seen == []


@pytest.mark.parametrize(
    ("serving", "begins"),
    [
        ({"from_": -2 * DAY, "to": -DAY}, "The server's certificate has expired. Its owner must renew it."),
        (
            {"from_": DAY, "to": 2 * DAY},
            "The server's certificate is not valid yet. Check the clocks of the server and of this host.",
        ),
        (
            {"host": "192.0.2.1"},
            "The server's certificate is for another host name. Use a name of the certificate in the address.",
        ),
        (
            {"host": "example.org"},
            "The server's certificate is for another host name. Use a name of the certificate in the address.",
        ),
    ],
    ids=["expired", "not yet valid", "another address", "another name"],
)
def test_a_certificate_that_is_not_its_own_or_not_for_now_says_which(ours, serving, begins):
    with a_server(saying(VECTOR), trusted=ours.serving(**serving)) as (url, server):
        said = trouble(url, ca=ours.ca, token="sesame")

    assert said.startswith(begins)
    assert server.headers_seen == []


def test_a_server_without_tls_is_said_to_be_one():
    with a_server(saying(VECTOR)) as (url, _):
        said = trouble(url.replace("http://", "https://"))

    assert said.startswith("The server does not speak TLS")


@pytest.mark.parametrize("content", ["\n", "no certificate\n"])
def test_a_ca_that_is_no_certificate_trusts_nobody_in_its_place(content):
    with pytest.raises(Unusable, match="The CA file cannot be read"):
        Client(Address("https://192.0.2.1", ca=content))
