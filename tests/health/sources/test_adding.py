"""A Prometheus added in the shell: it is tried first, and added where it answers or where somebody says anyway."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from fleet.messages import wake
from health.models import TelemetrySource
from people.models import AuditEntry
from people.roster.accounts import CONSOLE
from tests import make
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.patience import get_through

pytestmark = [pytest.mark.django_db, pytest.mark.rounds, pytest.mark.usefixtures("redis")]
USUAL = "Not exported: Utilisation, Graphics engine active"
SWITCHED_ON = "Not exported unless switched on at the exporter: Power limit, ECC errors corrected"


@pytest.fixture(autouse=True)
def _on_this_machine(settings):
    settings.TELEMETRY_LOOPBACK = True


@pytest.fixture
def cluster():
    row = make.a_cluster("eu-1")
    make.a_node(row, "gpu-1")
    return row


@pytest.fixture
def url():
    playing = Playing(timezone.now().timestamp())
    playing.add("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-a", "Hostname": "gpu-1", "gpu": "0", "cluster": "eu-1"}, 61)
    with a_server(playing) as (address, _):
        yield address


def add(*asked: str) -> str:
    written = StringIO()
    call_command("add_prometheus", "eu-1", *asked, stdout=written)
    return written.getvalue()


def test_one_that_answers_is_added_with_all_that_was_given_and_workers_are_told(
    cluster, url, settings, monkeypatch, tmp_path, sent, django_capture_on_commit_callbacks
):
    monkeypatch.setenv("QUARTERDECK_SOURCE_P", "sesame-open")
    monkeypatch.setenv("QUARTERDECK_SOURCE_P_CLUSTERS", "*")
    settings.SECRETS_DIR = str(tmp_path)
    ca_file = Authority(tmp_path, "our own").ca_file
    given = ("--match", 'cluster="eu-1"', "--user", "ada", "--secret", "env:QUARTERDECK_SOURCE_P")

    with django_capture_on_commit_callbacks(execute=True):
        said = add(url, *given, "--ca-file", ca_file)
    get_through(wake._nudges)

    first, usual, others, last = said.splitlines()
    assert first == "It answers: 1 device of this cluster, 1 metric."
    assert (USUAL in usual, SWITCHED_ON in others) == (True, True)
    assert last == "Workers ask it for eu-1 from now on."
    source = TelemetrySource.objects.get(cluster=cluster)
    assert (source.url, source.matchers, source.user) == (url, 'cluster="eu-1"', "ada")
    assert (source.secret_from, source.ca_file) == ("env:QUARTERDECK_SOURCE_P", ca_file)
    assert (source.is_on, source.state, source.added_by) == (True, "waiting", CONSOLE)
    assert [(entry.verb, entry.actor) for entry in AuditEntry.objects.all()] == [("telemetry.put", CONSOLE)]
    assert "sesame" not in said + str(list(AuditEntry.objects.values()))
    assert ("health.tasks.ask_telemetry", {"cluster_id": cluster.pk}) in [
        (name, asked["kwargs"]) for name, asked in sent
    ]


def test_another_one_takes_the_place_of_the_one_there_was(cluster, url):
    make.a_source(cluster, url="https://one.example.org", matchers='cluster="old"')

    add(url)

    source = TelemetrySource.objects.get(cluster=cluster)
    assert (source.url, source.matchers, source.state) == (url, "", "waiting")


def test_one_that_does_not_answer_is_not_added_and_says_how_it_would_be(cluster):
    with pytest.raises(CommandError) as refusal:
        add(f"http://127.0.0.1:{a_closed_port()}")

    assert str(refusal.value).startswith("It cannot be reached: ")
    assert str(refusal.value).endswith(" Nothing was changed; --anyway adds it all the same.")
    assert not TelemetrySource.objects.exists()
    assert not AuditEntry.objects.exists()


def test_anyway_it_is_added_and_what_is_wrong_is_said_all_the_same(cluster):
    closed = f"http://127.0.0.1:{a_closed_port()}"

    trouble, last = add(closed, "--anyway").splitlines()

    assert trouble.startswith("It cannot be reached: ")
    assert last == "Workers ask it for eu-1 from now on."
    assert TelemetrySource.objects.get().url == closed


def test_anyway_what_cannot_be_a_source_is_none(cluster):
    with pytest.raises(CommandError, match="no variable for a secret"):
        add("http://127.0.0.1:9", "--secret", "env:HOME", "--anyway")

    assert not TelemetrySource.objects.exists()


def test_a_trial_changes_nothing_and_offers_no_more(cluster, url):
    assert add(url, "--only-try").startswith("It answers: 1 device of this cluster, 1 metric.")
    with pytest.raises(CommandError) as refusal:
        add(f"http://127.0.0.1:{a_closed_port()}", "--only-try")

    assert "--anyway" not in str(refusal.value)
    assert not TelemetrySource.objects.exists()


def test_of_a_cluster_that_nobody_knows_it_says_so():
    with pytest.raises(CommandError, match="no cluster named eu-1"):
        add("http://127.0.0.1:9")
