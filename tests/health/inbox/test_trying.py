"""A source that is tried before it is saved: who may, what a worker finds, and what is said while none has."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.messages import wake
from fleet.models import LostLease
from health import tasks
from health.inbox.source_trials import TrialOpen, ask_trial, run_trial, trial_summary
from health.models import TelemetrySource, TelemetryTrial
from health.models.telemetry_source import ROUND_LEASE
from health.sources import source_round
from health.telemetry.metrics import METRICS
from people.models import AuditEntry
from tests import make
from tests.callers import calling
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting
from tests.patience import get_through

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
ADDRESS = "https://192.0.2.1"
SECRET = "env:QUARTERDECK_SOURCE_P"


@pytest.fixture
def cluster():
    row = make.a_cluster("eu-1")
    make.a_node(row, "gpu-1")
    return row


@pytest.fixture
def admin():
    return visiting(make.a_user("root", role="admin"))


def place(cluster) -> str:
    return f"/api/v1/clusters/{cluster.pk}/telemetry-source/trials"


def a_trial(cluster, **given) -> TelemetryTrial:
    return ask_trial(cluster, actor="root", now=NOON, **{"url": ADDRESS} | given)


def run(trial) -> TelemetryTrial:
    run_trial(trial.pk, clock=lambda: NOON)
    trial.refresh_from_db()
    return trial


def test_a_worker_asks_it_once_and_nothing_of_the_cluster_changes(cluster, settings, monkeypatch):
    settings.TELEMETRY_LOOPBACK = True
    monkeypatch.setenv("QUARTERDECK_SOURCE_P", "sesame-open")
    monkeypatch.setenv("QUARTERDECK_SOURCE_P_CLUSTERS", "*")
    playing = Playing(timezone.now().timestamp())
    playing.add("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-a", "Hostname": "gpu-1", "gpu": "0", "cluster": "eu-1"}, 61)
    with a_server(playing) as (url, server):
        trial = run(a_trial(cluster, url=url, matchers='cluster="eu-1"', secret_from=SECRET))
        asked = len(server.queries)
        run(trial)

    assert (asked > 0, len(server.queries)) == (True, asked)
    assert (trial.state_at(NOON), trial.devices, trial.exported) == ("answered", 1, ["temperature_celsius"])
    assert trial_summary(trial, now=NOON) == "The source answers with 1 device of this cluster and 1 metric."
    assert not TelemetrySource.objects.exists()
    assert "sesame" not in str(list(TelemetryTrial.objects.values())) + str(list(AuditEntry.objects.values()))


@pytest.fixture
def by_two_vendors(cluster, settings):
    """A Prometheus with the exporters of two of three nodes, which do not have the same metrics."""
    settings.TELEMETRY_LOOPBACK = True
    source_round._known.clear()
    make.a_node(cluster, "amd-1", gpu_vendor="amd")
    make.a_node(cluster, "amd-2", gpu_vendor="amd")
    make.a_node(cluster, "no-gpus", is_gpu_node=False)
    make.a_node(make.a_cluster("eu-2"), "elsewhere")
    playing = Playing(NOON.timestamp())
    for name in ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"):
        playing.add(name, {"UUID": "GPU-a", "Hostname": "gpu-1", "gpu": "0"}, 0.5)
    for name in ("gpu_junction_temperature", "gpu_used_vram"):
        playing.add(name, {"serial_number": "AMD-1", "hostname": "amd-1", "gpu_id": "0"}, 55)
    with a_server(playing) as (url, _):
        yield url


# Exported, not exported, and no series of the node: each of three is in one of them.
BY_NODES = {"temperature_celsius": (2, 0, 1), "tensor_active_ratio": (1, 2, 0), "memory_used_mib": (1, 1, 1)}
UNHEARD = "It has no series for 1 of 3 nodes with GPUs."


def test_what_only_some_exporters_have_is_said_by_nodes(cluster, admin, by_two_vendors):
    trial = run(a_trial(cluster, url=by_two_vendors))
    said = admin.get(f"{place(cluster)}/{trial.pk}").json()
    shown = page(admin, f"/parts/clusters/{cluster.pk}/telemetry-trials/{trial.pk}").text

    assert {key: tuple(said["nodes"][key].values()) for key in BY_NODES} == BY_NODES
    assert all(sum(numbers.values()) == 3 for numbers in said["nodes"].values())
    assert set(said["nodes"]) == set(METRICS)
    for key, (_, not_exported, _) in BY_NODES.items():
        words = f"{METRICS[key].title} (not on {not_exported} of 3 nodes)"
        assert (words in shown) == (not_exported > 0), key
    assert all(UNHEARD in told for told in (said["sentence"], shown))
    assert "No series of 1 of 3 nodes with GPUs" in shown
    assert "within a day" not in shown


def test_a_trial_counts_what_the_source_says_once_it_is_saved(cluster, admin, by_two_vendors):
    trial = run(a_trial(cluster, url=by_two_vendors))
    make.a_source(cluster, url=by_two_vendors, next_look_at=NOON, lease_until=NOON)
    source_round.ask(cluster.pk, clock=lambda: NOON)

    saved = admin.get(f"/api/v1/clusters/{cluster.pk}/exported-metrics").json()

    tried = admin.get(f"{place(cluster)}/{trial.pk}").json()
    assert tried["nodes"] == saved["nodes"]


def test_a_node_that_comes_after_a_trial_is_none_of_those_that_were_counted(cluster, admin, by_two_vendors):
    trial = run(a_trial(cluster, url=by_two_vendors))
    make.a_node(cluster, "amd-3", gpu_vendor="amd")

    said = admin.get(f"{place(cluster)}/{trial.pk}").json()

    assert tuple(said["nodes"]["temperature_celsius"].values()) == (2, 0, 1)


@pytest.mark.parametrize(
    "ended", [{}, {"ended_at": NOON, "trouble": "The server cannot be reached"}, {"ended_at": NOON}]
)
def test_where_nothing_was_counted_rest_has_no_numbers(cluster, admin, ended):
    trial = a_trial(cluster)
    TelemetryTrial.objects.update(**ended)

    said = admin.get(f"{place(cluster)}/{trial.pk}").json()

    assert said["nodes"] is None
    assert "nodes with GPUs" not in said["sentence"]


def test_what_is_wrong_is_one_sentence(cluster, settings):
    settings.TELEMETRY_LOOPBACK = True
    with a_server(saying(b"<html>sign in</html>")) as (url, _):
        trial = run(a_trial(cluster, url=url))
    closed = run(a_trial(cluster, url=f"http://127.0.0.1:{a_closed_port()}"))
    lacks = run(a_trial(cluster, secret_from=SECRET))

    assert trial.state_at(NOON) == "troubled"
    assert trial_summary(trial, now=NOON).startswith(
        "The server returns a web page instead of JSON, as a sign-in page or a proxy does"
    )
    assert trial_summary(closed, now=NOON).startswith("The server cannot be reached: ")
    assert trial_summary(lacks, now=NOON).startswith("This place has no secret for this cluster")


def test_a_worker_with_other_settings_asks_nobody_and_says_why(cluster, settings):
    settings.TELEMETRY_LOOPBACK = True
    with a_server(saying(b"")) as (url, server):
        trial = a_trial(cluster, url=url)
        settings.TELEMETRY_LOOPBACK = False
        run(trial)

    assert (trial.state_at(NOON), server.queries) == ("troubled", [])
    assert "127.0.0.1" in trial.trouble


def test_of_two_workers_one_asks(cluster):
    trial = a_trial(cluster)

    first, second = (TelemetryTrial.take(trial.pk, now=NOON) for _ in range(2))

    assert (first, second) == (trial, None)


def test_what_comes_when_nobody_waits_for_it_is_not_written(cluster):
    trial = TelemetryTrial.take(a_trial(cluster).pk, now=NOON)
    late = NOON + ROUND_LEASE

    with pytest.raises(LostLease):
        trial.end(now=late, devices=8)

    trial.refresh_from_db()
    assert (trial.state_at(late), trial.devices) == ("lost", 0)
    assert trial_summary(trial, now=late).endswith(
        "The worker stopped before it reported a result. Start the test again."
    )


def test_one_that_no_worker_takes_up_says_which_worker_is_missing(cluster):
    trial = a_trial(cluster)

    assert trial_summary(trial, now=NOON) == "No worker has begun the test yet."
    assert "queue “default”" in trial_summary(trial, now=NOON + ROUND_LEASE)
    assert TelemetryTrial.take(trial.pk, now=NOON + ROUND_LEASE) is None


def test_of_a_cluster_one_is_tried_at_a_time(cluster):
    first = a_trial(cluster)

    with pytest.raises(TrialOpen, match=r"root is testing https://192\.0\.2\.1 for eu-1") as refusal:
        ask_trial(cluster, actor="ada", now=NOON, url="https://192.0.2.2")

    assert refusal.value.trial == first
    assert [(entry.verb, entry.actor) for entry in AuditEntry.objects.all()] == [("telemetry.try", "root")]
    a_trial(make.a_cluster("eu-2"))
    ask_trial(cluster, actor="ada", now=NOON + ROUND_LEASE, url="https://192.0.2.2")


def test_a_worker_is_woken_and_a_nudge_that_is_lost_is_made_up_for(cluster, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        waiting = a_trial(cluster)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.sweep_telemetry()
    get_through(wake._nudges)

    nudges = [asked["kwargs"] for name, asked in sent if name == "health.tasks.try_telemetry"]
    assert nudges == [{"trial_id": waiting.pk}] * 2

    run_trial(waiting.pk, clock=lambda: NOON)
    sent.clear()
    with django_capture_on_commit_callbacks(execute=True):
        tasks.sweep_telemetry()
    get_through(wake._nudges)
    assert sent == []


def test_by_rest_an_admin_tries_the_document_that_put_would_save(root, cluster):
    given = {"url": ADDRESS, "matchers": 'cluster="eu-1"', "secret_from": SECRET}

    made = root.post(place(cluster), given, format="json")

    assert (made.status_code, made.json()["state"], made.json()["matchers"]) == (201, "waiting", 'cluster="eu-1"')
    assert made.json()["exported"] is None
    assert made.json()["devices"] is None
    trial = TelemetryTrial.objects.get()
    trial.begun_at, trial.ended_at, trial.exported = NOON, NOON, ["temperature_celsius"]
    trial.save()
    said = root.get(f"{place(cluster)}/{trial.pk}").json()
    assert (said["state"], said["exported"], said["devices"]) == ("answered", ["temperature_celsius"], 0)
    assert "xid" in said["not_exported"]
    assert said["secret_from"] == SECRET
    assert not TelemetrySource.objects.exists()


def test_who_may_try_one_and_who_sees_where_its_secret_is(ada, bob, eve, cluster):
    body = {"url": ADDRESS}
    assert [who.post(place(cluster), body, format="json").status_code for who in (ada, bob, eve)] == [403, 403, 404]
    assert not TelemetryTrial.objects.exists()
    its = f"{place(cluster)}/{a_trial(cluster, secret_from=SECRET).pk}"

    assert [who.get(its).status_code for who in (ada, bob, eve)] == [200, 200, 404]
    assert bob.get(its).json()["secret_from"] is None
    run(TelemetryTrial.objects.get())
    for told in (bob.get(its).json(), ada.get(its).json()):
        assert told["state"] == "troubled"
        assert SECRET.removeprefix("env:") not in str(told)
    page_of = f"/parts/clusters/{cluster.pk}/telemetry-trials/{TelemetryTrial.objects.get().pk}"
    shown = visiting(make.a_user("vic", role="viewer")).get(page_of).content.decode()
    assert "This place has no secret for this cluster" in shown
    assert SECRET.removeprefix("env:") not in shown
    pat = calling(make.a_user("pat", role="viewer", on=make.a_pool(cluster)))
    assert pat.get(its).status_code == 404
    assert bob.get(f"{place(make.a_cluster('eu-2'))}/{TelemetryTrial.objects.get().pk}").status_code == 404


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"url": ADDRESS, "matchers": "eu"}, "matchers"),
        ({"url": ADDRESS, "secret_from": "sesame"}, "secret_from"),
        ({"url": ADDRESS, "secret_from": "env:QUARTERDECK_SECRET_KEY"}, "secret_from"),
        ({"url": ADDRESS, "ca_file": "/etc/ssl/certs/ca-certificates.crt"}, "ca_file"),
        ({"url": "http://192.0.2.1", "secret_from": SECRET}, "url"),
        ({"url": ADDRESS, "token": "sesame"}, "token"),
    ],
)
def test_what_cannot_be_a_source_is_not_tried(root, cluster, given, field):
    said = root.post(place(cluster), given, format="json")

    assert said.status_code == 400
    assert [error["field"] for error in said.json()["errors"]] == [field]
    assert not TelemetryTrial.objects.exists()


def test_while_one_is_on_its_way_rest_says_whose(root, cluster):
    a_trial(cluster)

    said = root.post(place(cluster), {"url": "https://192.0.2.2"}, format="json")

    assert (said.status_code, said.json()["type"]) == (409, "urn:quarterdeck:problem:trial-open")


def test_its_form_tries_it_and_follows_it_to_its_end(admin, cluster):
    form = admin.get(f"/clusters/{cluster.pk}/telemetry").content.decode()
    assert f'hx-post="/clusters/{cluster.pk}/telemetry/try"' in form

    begun = admin.post(f"/clusters/{cluster.pk}/telemetry/try", {"url": ADDRESS, "is_on": "on", "was": "x"})
    trial = TelemetryTrial.objects.get()
    its = f"/parts/clusters/{cluster.pk}/telemetry-trials/{trial.pk}"
    assert f'data-part="{its}"' in begun.content.decode()
    assert "No worker has begun the test yet." in page(admin, its).text

    TelemetryTrial.objects.update(begun_at=NOON, ended_at=NOON, notes=[HOSTILE], exported=["temperature_celsius"])
    over, html = page(admin, its), admin.get(its).content.decode()
    assert "data-part" not in html
    assert "The source answers with 0 devices of this cluster and 1 metric." in over.text
    assert "No series is of a node of this cluster" in over.text
    assert "Usual metrics that are missing" in over.text
    assert "<script>" not in html
    TelemetryTrial.objects.update(trouble="The server cannot be reached: no route.")
    assert "The server cannot be reached: no route." in page(admin, its).text


def test_its_form_says_what_cannot_be_tried_and_shows_the_one_that_is(admin, cluster):
    at = f"/clusters/{cluster.pk}/telemetry/try"
    assert "Address: Say where it is." in admin.post(at, {"url": ""}).content.decode()
    assert (
        "That is not a variable for a secret"
        in admin.post(at, {"url": ADDRESS, "secret_from": "env:HOME"}).content.decode()
    )
    trial = a_trial(cluster)

    said = admin.post(at, {"url": "https://192.0.2.2"}).content.decode()

    assert "Wait for the result" in said
    assert f"telemetry-trials/{trial.pk}" in said
    assert TelemetryTrial.objects.count() == 1


def test_who_may_not_save_one_tries_none_on_its_page(cluster):
    ada, eve = visiting(make.a_user("ada", role="operator")), visiting(make.a_user("eve"))
    at = f"/clusters/{cluster.pk}/telemetry/try"

    assert (ada.post(at, {"url": ADDRESS}).status_code, eve.post(at, {"url": ADDRESS}).status_code) == (403, 404)
    assert not TelemetryTrial.objects.exists()


def test_after_a_day_it_is_gone_and_the_decision_stays(cluster):
    from health import retention

    a_trial(cluster)

    assert retention.tidy(before=NOON - timedelta(days=90), now=NOON + timedelta(hours=23)) == 0
    assert retention.tidy(before=NOON - timedelta(days=90), now=NOON + timedelta(hours=25)) == 1
    assert AuditEntry.objects.get().verb == "telemetry.try"
