from datetime import timedelta

import pytest

from fleet.messages import announce
from health.announce import number_of
from health.inbox.telemetry_sources import BadSource, put_source, remove_source, try_source
from health.models import SourceState, TelemetrySource
from health.sources import hours, snapshots, source_round
from health.sources.node_telemetry import source_state
from people.models import AuditEntry
from tests import make
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.rounds]
LABELS = {"UUID": "GPU-a", "Hostname": "gpu-1", "gpu": "0"}


@pytest.fixture(autouse=True)
def _here(redis, settings):
    settings.TELEMETRY_LOOPBACK = True


@pytest.fixture
def cluster():
    row = make.a_cluster()
    make.a_node(row, "gpu-1")
    return row


@pytest.fixture
def url():
    playing = Playing(NOON.timestamp())
    playing.add("DCGM_FI_DEV_GPU_TEMP", LABELS, 61)
    with a_server(playing) as (address, _):
        yield address


def a_source(cluster, url: str, **given) -> TelemetrySource:
    return put_source(cluster, actor="ada", now=NOON, url=url, is_on=True, **given)


def asked(cluster, *, at=NOON) -> TelemetrySource:
    source_round.ask(cluster.pk, clock=lambda: at)
    return TelemetrySource.objects.get(cluster=cluster)


def test_keeps_a_frame_and_says_how_it_went(cluster, url):
    a_source(cluster, url)

    row = asked(cluster)

    assert (row.state, row.message, row.devices) == (SourceState.ANSWERING, "", 1)
    assert row.exported == ["temperature_celsius"]
    assert snapshots.of_node(cluster.pk, "gpu-1").snapshot.columns["temperature_celsius"].values[0] == 61.0


def test_what_was_found_of_another_is_kept_when_one_is_asked_again(cluster, url, monkeypatch):
    """Else each of many clusters is looked through anew in every round."""
    monkeypatch.setattr(source_round, "MOST_KNOWN", 2)
    a_source(cluster, url)
    source_round._known[0, NOON] = None
    asked(cluster)

    asked(cluster, at=NOON + timedelta(minutes=1))

    assert len(source_round._known) == 2
    assert (0, NOON) in source_round._known


@pytest.fixture
def told(monkeypatch) -> list[tuple[tuple[str, ...], dict]]:
    messages: list[tuple[tuple[str, ...], dict]] = []
    monkeypatch.setattr(announce, "send", lambda groups, message: messages.append((tuple(groups), message)))
    return messages


def test_keeps_how_far_its_clock_is_from_ours(cluster):
    with a_server(everything(NOON.timestamp() + 7200)) as (url, _):
        a_source(cluster, url)
        row = asked(cluster)

    assert row.clock_offset_s == -7200
    assert row.notes == ["The server's clock is 7200 s ahead of ours. Times are shown by our clock."]


def test_browsers_are_told_once_of_each_round_that_was_answered_however_many_gpus_there_are(cluster, url, told):
    a_source(cluster, url)
    asked(cluster)
    told.clear()  # that it answers at all

    row = asked(cluster, at=NOON + timedelta(seconds=15))

    topic = f"telemetry-{cluster.pk}"
    message = {"type": "topic.changed", "topic": topic, "keys": [topic], "seq": number_of(row.answered_at)}
    assert told == [((topic, "telemetry"), message)]


def test_nobody_is_told_of_newer_telemetry_by_a_round_that_is_not_answered_or_not_due(cluster, url, told):
    a_source(cluster, f"http://127.0.0.1:{a_closed_port()}")
    asked(cluster)
    asked(cluster, at=NOON + timedelta(seconds=1))

    assert {message["type"] for _, message in told} == {"cluster.changed"}


def test_says_since_when_it_is_silent_and_why(cluster):
    a_source(cluster, f"http://127.0.0.1:{a_closed_port()}")
    asked(cluster)

    row = asked(cluster, at=NOON + timedelta(minutes=1))

    assert row.state == SourceState.SILENT
    assert row.state_since == NOON
    assert "cannot be reached" in row.message


def test_a_source_that_falls_silent_leaves_what_was_seen(cluster, url):
    a_source(cluster, url)
    asked(cluster)
    TelemetrySource.objects.update(url=f"http://127.0.0.1:{a_closed_port()}")

    row = asked(cluster, at=NOON + timedelta(minutes=1))

    assert row.state == SourceState.SILENT
    assert row.answered_at == NOON
    assert snapshots.of_node(cluster.pk, "gpu-1") is not None


def wrongly(body: bytes, *, at: int, playing):
    """As `playing` answers, but for one of the round's questions."""
    asked = iter(range(10_000))
    return lambda to: saying(body)(to) if next(asked) == at else playing(to)


def everything(now: float) -> Playing:
    """With series of each kind that a round asks for."""
    playing = Playing(now)
    playing.add("DCGM_FI_DEV_GPU_TEMP", LABELS, 61)
    playing.add("DCGM_FI_DEV_XID_ERRORS", {**LABELS, "err_code": "79", "err_msg": "GPU has fallen off the bus"}, 79)
    playing.add("DCGM_EXP_GPU_HEALTH_STATUS", {**LABELS, "health_watch": "PCIE"}, 20)
    return playing


BAD = {
    "nothing": b"",
    "a page": b"<html>Sign in</html>",
    "an error": b'{"status":"error","errorType":"timeout","error":"query timed out"}',
    "an error with NUL": rb'{"status":"error","errorType":"timeout","error":"query timed\u0000 out"}',
    "a part": b'{"status":"success","warnings":["store eu-2 away"],"data":{"resultType":"vector","result":[]}}',
    "another shape": b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
}


@pytest.mark.parametrize("called", BAD)
def test_whatever_it_answers_to_any_question_costs_its_round_and_is_one_sentence(cluster, url, called):
    other, at, asides = make.a_cluster("other"), NOON, list[int]()
    make.a_node(other, "gpu-1")
    a_source(other, url)
    with a_server(everything(NOON.timestamp())) as (whole, server):
        a_source(cluster, whole)
        assert asked(cluster).state == SourceState.ANSWERING
        questions = len(server.queries)
    before = snapshots.newest(cluster.pk).snapshot.columns
    assert questions > 10

    for number in range(questions):
        at += timedelta(minutes=10)
        source_round._known.clear()
        with a_server(wrongly(BAD[called], at=number, playing=everything(at.timestamp()))) as (bad, _):
            TelemetrySource.objects.filter(cluster=cluster).update(url=bad, next_look_at=at)
            row = asked(cluster, at=at)

        now = snapshots.newest(cluster.pk).snapshot.columns
        if (
            row.state == SourceState.ANSWERING
        ):  # whether there are too many series is one thing, and what GPUs say another
            asides.append(number)
            assert row.notes[0].startswith("It is unknown whether an exporter has too many series: ")
            assert now["temperature_celsius"].times[0] > before["temperature_celsius"].times[0]
            before = now
            continue
        assert (row.state, bool(row.message)) == (SourceState.SILENT, True), number
        assert now == before

    assert len(asides) == 2
    assert asked(other).state == SourceState.ANSWERING


def test_is_asked_once_when_two_workers_come(cluster, url):
    a_source(cluster, url)

    assert TelemetrySource.take(cluster.pk, now=NOON) is not None
    assert TelemetrySource.take(cluster.pk, now=NOON) is None
    assert TelemetrySource.take(cluster.pk, now=NOON + timedelta(seconds=30)) is None


def test_whoever_asked_before_it_was_changed_keeps_nothing(cluster, url, monkeypatch):
    a_source(cluster, url)
    take = source_round.taken_from

    def changed_meanwhile(source, *, clock):
        taken = take(source, clock=clock)
        put_source(cluster, actor="bob", now=NOON, matchers='cluster="other"')
        return taken

    monkeypatch.setattr(source_round, "taken_from", changed_meanwhile)

    assert source_round.ask(cluster.pk, clock=lambda: NOON) is None
    assert TelemetrySource.objects.get(cluster=cluster).state == SourceState.WAITING
    assert snapshots.newest(cluster.pk) is None


def asleep_while(monkeypatch, *acts) -> None:
    """The next round has its answers, and sleeps while each of these is done."""
    take = source_round.taken_from

    def slept(source, *, clock):
        monkeypatch.setattr(source_round, "taken_from", take)
        taken = take(source, clock=clock)
        for act in acts:
            act()
        return taken

    monkeypatch.setattr(source_round, "taken_from", slept)


def test_who_slept_through_their_lease_writes_no_frame_and_no_hour(cluster, url, monkeypatch):
    a_source(cluster, url)
    asked(cluster)
    later = NOON + timedelta(hours=2)
    counted = []
    count = hours.count
    monkeypatch.setattr(hours, "count", lambda *args, now: (counted.append(now), count(*args, now=now)))
    asleep_while(monkeypatch, lambda: asked(cluster, at=later))

    assert source_round.ask(cluster.pk, clock=lambda: NOON + timedelta(minutes=1)) is None

    assert snapshots.newest(cluster.pk).snapshot.taken_at == later.timestamp()
    assert counted == [later.timestamp()]


def test_what_a_source_said_that_is_removed_during_its_round_does_not_come_back(
    cluster, url, monkeypatch, django_capture_on_commit_callbacks
):
    source = a_source(cluster, url)
    asked(cluster)

    def removed() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            remove_source(source, actor="bob", now=NOON)

    asleep_while(monkeypatch, removed)

    assert source_round.ask(cluster.pk, clock=lambda: NOON + timedelta(minutes=1)) is None
    assert snapshots.newest(cluster.pk) is None


def test_one_that_is_switched_off_is_not_asked(cluster, url):
    a_source(cluster, url)
    put_source(cluster, actor="ada", now=NOON, is_on=False)

    assert list(TelemetrySource.objects.due(now=NOON)) == []
    assert TelemetrySource.take(cluster.pk, now=NOON) is None


def test_a_secret_that_is_not_there_is_a_sentence(cluster, url):
    a_source(cluster, url, secret_from="env:QUARTERDECK_SOURCE_NONE")

    assert asked(cluster).message.startswith("This place has no secret for this cluster")


def test_no_secret_is_in_a_row_or_in_the_audit(cluster, url, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_SOURCE_P", "sesame-open")
    monkeypatch.setenv("QUARTERDECK_SOURCE_P_CLUSTERS", "*")
    a_source(cluster, url, user="ada", secret_from="env:QUARTERDECK_SOURCE_P")

    row = asked(cluster)

    assert row.state == SourceState.ANSWERING
    assert "sesame" not in str([list(TelemetrySource.objects.values()), list(AuditEntry.objects.values())])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://169.254.169.254"}, "url"),
        ({"url": "http://192.0.2.1", "matchers": "eu"}, "matchers"),
        ({"url": "http://192.0.2.1", "secret_from": "sesame"}, "secret_from"),
        ({"url": "http://192.0.2.1", "secret_from": "env:QUARTERDECK_SECRET_KEY"}, "secret_from"),
        ({"url": "http://192.0.2.1", "user": "ada"}, "secret_from"),
        ({"url": "http://192.0.2.1", "ca_file": "/dev/zero"}, "ca_file"),
    ],
)
def test_refuses_what_cannot_be_a_source(cluster, given, field):
    with pytest.raises(BadSource) as refusal:
        put_source(cluster, actor="ada", now=NOON, **given)

    assert refusal.value.field == field
    assert not TelemetrySource.objects.exists()
    assert not AuditEntry.objects.exists()


def test_sends_no_password_over_http(cluster, settings):
    settings.TELEMETRY_LOOPBACK = False

    with pytest.raises(BadSource, match="Use https:// with a password or token"):
        put_source(cluster, actor="ada", now=NOON, url="http://192.0.2.1", secret_from="env:QUARTERDECK_SOURCE_P")


def test_a_trial_says_what_there_is(cluster, url):
    trial = try_source(cluster, url=url)

    assert trial.sentence.startswith("The source answers with 1 device of this cluster and 1 metric.")
    assert not TelemetrySource.objects.exists()


def test_removing_it_is_kept_as_a_decision(cluster, url):
    source = a_source(cluster, url)
    asked(cluster)

    remove_source(source, actor="ada", now=NOON)

    assert [entry.verb for entry in AuditEntry.objects.all()] == ["telemetry.put", "telemetry.remove"]
    assert not TelemetrySource.objects.exists()


@pytest.mark.parametrize(("took_ms", "period_s"), [(None, 15), (40, 15), (500, 25), (800, 40), (60_000, 45)])
def test_one_that_takes_long_is_asked_less_often(cluster, url, took_ms, period_s):
    """A fiftieth of its period at most, as long as one more may be missed before what it said grows stale."""
    TelemetrySource.objects.filter(pk=a_source(cluster, url).pk).update(took_ms=took_ms)

    row, _ = TelemetrySource.take(cluster.pk, now=NOON)
    row.refresh_from_db()

    assert row.next_look_at == NOON + timedelta(seconds=period_s)


@pytest.mark.parametrize("took_ms", [None, 500, 1000, 60_000])
@pytest.mark.parametrize("age_s", [0, 44, 46, 89, 91, 134, 136, 3600])
def test_its_card_calls_nothing_answering_of_which_pages_of_gpus_hear_nothing(cluster, url, took_ms, age_s):
    source = a_source(cluster, url)
    source.state, source.took_ms, source.answered_at = SourceState.ANSWERING, took_ms, NOON - timedelta(seconds=age_s)

    is_silent = source_state(source, None, now=NOON).is_silent

    assert is_silent == (age_s > 90)
    assert source.state_at(NOON) in (("late",) if is_silent else ("answering", "late"))
