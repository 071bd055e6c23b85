"""Files that whoever administers a cluster may name: in one folder, regular, of a bounded size. Z39"""

import os
import time

import pytest

from fleet.models import Cluster
from health.models import TelemetrySource
from health.sources.addresses import CA_AT_MOST, address_of, check_ca
from health.sources.secrets import NotReadable, read_in_folder
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import UNREADABLE_CA, Client
from tests.health.telemetry.prometheus.an_authority import Authority

OUTSIDE = ["/dev/zero", "/etc/passwd", "../outside.pem", "/no/such/file", ".", "", "a/../../outside.pem", "a\0b"]


@pytest.fixture
def folder(settings, tmp_path):
    settings.SECRETS_DIR = str(tmp_path / "secrets")
    (tmp_path / "secrets").mkdir()
    Authority(tmp_path, "outside").ca_file  # noqa: B018 - it writes the file
    return tmp_path / "secrets"


def trouble(ca_file: str) -> str:
    source = TelemetrySource(cluster=Cluster(name="eu-1"), url="https://192.0.2.1", ca_file=ca_file)
    with pytest.raises(Unusable) as refused:
        Client(address_of(source))
    return str(refused.value)


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_outside_of_the_folder_is_read(folder, name):
    with pytest.raises(NotReadable):
        read_in_folder(name, at_most=100)
    with pytest.raises(Unusable, match="is a file in the folder"):
        check_ca(name)


def test_a_pipe_is_not_read_though_somebody_writes_into_it(folder):
    os.mkfifo(folder / "pipe")
    writing = os.open(folder / "pipe", os.O_RDWR)
    os.write(writing, b"sesame-open")

    with pytest.raises(NotReadable, match="is not a regular file"):
        read_in_folder("pipe", at_most=100)

    os.close(writing)


def test_whatever_is_wrong_with_a_ca_its_sentence_is_the_same(folder):
    """So that nobody learns which files there are, neither in the folder nor outside of it."""
    (folder / "link.pem").symlink_to(folder.parent / "outside.pem")
    (folder / "loop.pem").symlink_to(folder / "loop.pem")
    (folder / "zero.pem").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.pem")
    (folder / "folder.pem").mkdir()
    (folder / "token").write_text("sesame-open")
    (folder / "umlaut.pem").write_text("ä")
    (folder / "blank.pem").write_text("")
    (folder / "large.pem").write_text(Authority(folder, "a").ca + " " * CA_AT_MOST)
    names = {path.name for path in folder.iterdir()} - {"a.pem"}
    began = time.monotonic()

    said = {trouble(name) for name in (*names, *filter(None, OUTSIDE), "none.pem")}

    assert said == {UNREADABLE_CA}
    assert time.monotonic() - began < 10


def test_a_ca_in_the_folder_is_read_by_its_name_or_path(folder):
    authority = Authority(folder, "our own")

    for name in ("our own.pem", authority.ca_file):
        check_ca(name)
        source = TelemetrySource(cluster=Cluster(name="eu-1"), url="https://192.0.2.1", ca_file=name)
        assert address_of(source).ca.startswith("-----BEGIN CERTIFICATE-----")
