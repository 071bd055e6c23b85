"""The lives of certificates and tokens, as they are read."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from kube.credential_life import CredentialLife
from kube.credentials import lives_of
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.make import NOON


def a_token(**claims) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer e30.{payload}.c2ln"


def lives(authorization: str = "", file: str = "") -> list[CredentialLife]:
    return list(lives_of(certificate_file=file, authorization=authorization, peer=None))


def test_a_token_says_when_it_ends():
    begins, ends = NOON.timestamp(), (NOON + timedelta(days=30)).timestamp()

    (life,) = lives(a_token(iat=begins, exp=ends, sub="x"))

    assert (life.kind, life.begins_at, life.ends_at) == ("token", NOON, NOON + timedelta(days=30))
    assert life.is_renewed_by_hand
    assert CredentialLife.read(life.written()) == life
    assert not lives(a_token(iat=begins, exp=begins + 3600))[0].is_renewed_by_hand


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer abc", "Bearer a.b.c", "Bearer a.?.c", a_token(sub="x"), a_token(iat=1, exp="x"), "Basic YTpi",
     a_token(iat=0, exp=1e300)],
)  # fmt: skip
def test_another_token_says_nothing(authorization):
    assert lives(authorization) == []


def test_a_client_certificate_is_read_from_its_file_and_a_bad_file_is_no_error(tmp_path):
    path = Authority(tmp_path, "ca").issue("quarterdeck")
    (life,) = lives(file=str(path))

    assert life.kind == "client certificate"
    assert life.ends_at > datetime.now(UTC)
    path.write_text("nothing")
    assert lives(file=str(path)) == []
    assert lives(file=str(tmp_path / "gone")) == []
