"""A Prometheus that lets nobody in who does not say who they are, over TLS by an authority of its own."""

import base64
from datetime import timedelta

import pytest

from health.inbox.telemetry_sources import put_source, try_source
from health.models import SourceState, TelemetrySource
from health.sources import source_round
from people.models import AuditEntry
from tests import make
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.health.telemetry.prometheus.an_authority import DAY, Authority
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.rounds, pytest.mark.usefixtures("redis")]
SECRET = "sesame-open"
WAYS = {
    "basic": ({"user": "ada"}, "Basic " + base64.b64encode(f"ada:{SECRET}".encode()).decode()),
    "bearer": ({}, f"Bearer {SECRET}"),
}
PLACES = ("file:prometheus", "env:QUARTERDECK_SOURCE_PROMETHEUS")


@pytest.fixture
def cluster():
    row = make.a_cluster()
    make.a_node(row, "gpu-1")
    return row


@pytest.fixture
def ours(settings, tmp_path):
    settings.TELEMETRY_LOOPBACK = True
    settings.SECRETS_DIR = str(tmp_path)
    return Authority(tmp_path, "our own")


@pytest.fixture
def keep(tmp_path, monkeypatch):
    """Put a secret in both places."""

    def write(secret: str) -> None:
        (tmp_path / "prometheus").write_text(f"{secret}\n")
        (tmp_path / "prometheus.clusters").write_text("*\n")
        monkeypatch.setenv("QUARTERDECK_SOURCE_PROMETHEUS", secret)
        monkeypatch.setenv("QUARTERDECK_SOURCE_PROMETHEUS_CLUSTERS", "*")

    return write


def letting_in(authorization: str):
    playing = Playing(NOON.timestamp())
    playing.add("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-a", "Hostname": "gpu-1", "gpu": "0"}, 61)
    refuse = saying(b"Unauthorized", 401)
    return lambda to: playing(to) if to.headers.get("Authorization") == authorization else refuse(to)


def asked(cluster, *, at=NOON) -> TelemetrySource:
    source_round.ask(cluster.pk, clock=lambda: at)
    return TelemetrySource.objects.get(cluster=cluster)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_is_let_in_by_a_secret_from_either_place_and_by_no_other(cluster, ours, keep, way, place):
    given, authorization = WAYS[way]
    given = {**given, "secret_from": place, "ca_file": ours.ca_file}
    keep(SECRET)
    with a_server(letting_in(authorization), trusted=ours.serving()) as (url, _):
        assert try_source(cluster, url=url, **given).sentence.startswith(
            "The source answers with 1 device of this cluster"
        )
        put_source(cluster, actor="ada", now=NOON, url=url, is_on=True, **given)
        let_in = asked(cluster)
        keep("another-one")
        refused = asked(cluster, at=NOON + timedelta(minutes=1))
        keep(SECRET)
        again = asked(cluster, at=NOON + timedelta(minutes=2))

    assert (let_in.state, let_in.devices, again.state) == (SourceState.ANSWERING, 1, SourceState.ANSWERING)
    assert refused.state == SourceState.SILENT
    assert "(401): the user name, password or token is wrong" in refused.message
    written = str([list(TelemetrySource.objects.values()), list(AuditEntry.objects.values())])
    assert SECRET not in written
    assert "another-one" not in written


@pytest.mark.parametrize("way", WAYS)
def test_without_a_secret_it_is_said_to_be_missing(cluster, ours, way):
    with a_server(letting_in(WAYS[way][1]), trusted=ours.serving()) as (url, _):
        trial = try_source(cluster, url=url, ca_file=ours.ca_file)

    assert trial.trouble.startswith("Not authenticated (401): the user name, password or token is wrong or missing.")


def test_what_is_wrong_with_its_certificate_is_what_its_row_says(cluster, ours, keep):
    keep(SECRET)
    given = {"secret_from": PLACES[0], "ca_file": ours.ca_file}
    with a_server(letting_in(WAYS["bearer"][1]), trusted=ours.serving(from_=-2 * DAY, to=-DAY)) as (url, server):
        put_source(cluster, actor="ada", now=NOON, url=url, is_on=True, **given)
        row = asked(cluster)

    assert row.state == SourceState.SILENT
    assert row.message.startswith("The server's certificate has expired. Its owner must renew it.")
    assert server.headers_seen == []


def test_an_authority_that_cannot_be_read_is_what_its_row_says(cluster, ours, tmp_path):
    put_source(cluster, actor="ada", now=NOON, url="https://192.0.2.1", is_on=True, ca_file=str(tmp_path / "none.pem"))

    row = asked(cluster)

    assert row.state == SourceState.SILENT
    assert row.message.startswith("The CA file cannot be read")
