"""A real Alertmanager: alerts open, stay open, survive its restart, and end."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
import time_machine
from django.db.models import F
from django.utils import timezone

from demo import tied
from demo.ports import LOOPBACK, free_port
from fleet.models import DomainEvent
from health.evaluation.finding_openings import resolve
from health.inbox import rule_mutes
from health.models import Finding, Mute
from notifications.channels.alertmanager import REFRESH
from notifications.channels.base import Acceptance, SendOutcome
from notifications.models import Channel, Conversation
from notifications.models.router import KEY
from notifications.rounds import own_silences
from notifications.rounds.channel_round import run_channel
from notifications.rounds.router_round import run_router
from notifications.rounds.transport import put_silence
from tests.make import a_cluster, a_finding, a_node, a_user
from tests.notifications.make import a_channel, catch_all, happened
from tests.pages import visiting
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.alertmanager, pytest.mark.django_db]
CONFIGURATION = {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}


class RealAlertmanager:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        (folder / "alertmanager.yml").write_text(json.dumps(CONFIGURATION))
        self.start()

    def start(self) -> None:
        program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager") or ""
        command = [
            program, f"--config.file={self.folder / 'alertmanager.yml'}", f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{self.port}", "--cluster.listen-address=",
        ]  # fmt: skip
        self.child = tied.start("alertmanager", command, log=self.folder / "log", env=os.environ)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                httpx.get(f"{self.url}/-/ready", timeout=5).raise_for_status()
                return
        raise TimeoutError((self.folder / "log").read_text())

    def alerts(self) -> list[dict]:
        return httpx.get(f"{self.url}/api/v2/alerts", timeout=5).raise_for_status().json()

    def silence(self, name: str, value: str, *, by: str) -> str:
        now = timezone.now()
        matcher = {"name": name, "value": value, "isRegex": False, "isEqual": True}
        body = {"matchers": [matcher], "createdBy": by, "comment": "Theirs."}
        body |= {"startsAt": now.isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}
        answer = httpx.post(f"{self.url}/api/v2/silences", json=body, timeout=5).raise_for_status()
        return answer.json()["silenceID"]

    def end(self, silence: str) -> None:
        httpx.delete(f"{self.url}/api/v2/silence/{silence}", timeout=5).raise_for_status()

    def silences(self) -> list[dict]:
        found = httpx.get(f"{self.url}/api/v2/silences", timeout=5).raise_for_status().json()
        return [each for each in found if each["status"]["state"] == "active"]

    def of_mutes(self) -> list[dict]:
        return [each for each in self.silences() if each["comment"].startswith("Muted by")]

    def others(self) -> list[str]:
        return sorted(each["createdBy"] for each in self.silences() if each["comment"] == "Theirs.")


@pytest.fixture
def alertmanager(tmp_path, settings) -> Iterator[RealAlertmanager]:
    settings.NOTIFICATION_NETWORKS = [ip_network("127.0.0.0/8")]
    running = RealAlertmanager(tmp_path)
    yield running
    running.child.stop()


def work() -> None:
    run_router(KEY, owner="worker-1", clock=timezone.now)
    for channel in Channel.objects.all():
        run_channel(channel.pk, owner="worker-1", clock=timezone.now)


def test_an_alert_opens_survives_a_restart_and_ends(alertmanager):
    catch_all(a_channel("alerts", "alertmanager", address=alertmanager.url, lease_until=timezone.now()))
    now = timezone.now()
    cluster = a_cluster("eu-1")
    finding = a_finding(cluster, node=a_node(cluster, "gpu-001"), rule="node-not-ready", severity="critical", since=now)

    happened(finding, at=now)
    work()
    (alert,) = alertmanager.alerts()
    assert alert["labels"] == {
        "alertname": "node-not-ready", "cluster": "eu-1", "node": "gpu-001", "subject": "node gpu-001",
        "quarterdeck_key": f"quarterdeck/default/finding/{finding.pk}",
    }  # fmt: skip
    assert alert["annotations"]["severity"] == "critical"

    alertmanager.child.stop()
    alertmanager.start()
    assert alertmanager.alerts() == []
    Conversation.objects.update(refreshed_at=timezone.now() - REFRESH)
    work()
    assert [each["fingerprint"] for each in alertmanager.alerts()] == [alert["fingerprint"]]

    happened(finding, "finding.resolved", at=timezone.now(), reason="")
    work()

    assert alertmanager.alerts() == []


def test_its_heartbeat_is_an_alert_that_always_fires(alertmanager):
    now = timezone.now()
    a_channel(
        "alerts", "alertmanager", address=alertmanager.url, lease_until=now, heartbeat_min=2, heartbeat_next_at=now
    )

    work()

    (alert,) = alertmanager.alerts()
    assert alert["labels"]["alertname"] == "QuarterdeckHeartbeat"
    assert Channel.objects.get().heartbeat_at


def test_a_silence_is_shown_on_its_finding_until_it_ends(alertmanager):
    catch_all(a_channel("alerts", "alertmanager", address=alertmanager.url, lease_until=timezone.now()))
    now = timezone.now()
    cluster = a_cluster("eu-1")
    silenced, other = (
        a_finding(cluster, node=a_node(cluster, name), rule="node-not-ready", severity="critical", since=now)
        for name in ("gpu-001", "gpu-002")
    )
    for finding in (silenced, other):
        happened(finding, at=now)
    work()
    matcher = {"name": "node", "value": "gpu-001", "isRegex": False, "isEqual": True}
    until = now + timedelta(hours=1)
    silence = {"matchers": [matcher], "createdBy": "ada", "comment": "Cable ordered."}
    silence |= {"startsAt": now.isoformat(), "endsAt": until.isoformat()}
    asked = httpx.post(f"{alertmanager.url}/api/v2/silences", json=silence, timeout=5).raise_for_status()

    read_again()
    viewer = visiting(a_user("bob", role="viewer"))

    sentence = "ada silenced it in Alertmanager alerts until"
    assert sentence in viewer.get(f"/findings?finding={silenced.pk}").content.decode()
    assert sentence not in viewer.get(f"/findings?finding={other.pk}").content.decode()
    with time_machine.travel(until + timedelta(seconds=1)):
        assert sentence not in viewer.get(f"/parts/findings/{silenced.pk}/silences").content.decode()
    httpx.delete(f"{alertmanager.url}/api/v2/silence/{asked.json()['silenceID']}", timeout=5).raise_for_status()
    read_again()
    assert Channel.objects.get().silences == []


@pytest.mark.nightly
def test_silences_that_cannot_be_read_keep_their_age(alertmanager):
    catch_all(a_channel("alerts", "alertmanager", address=alertmanager.url, lease_until=timezone.now()))
    happened(a_finding(a_cluster("eu-1"), rule="xid"), at=timezone.now())
    work()
    read_at = Channel.objects.get().silences_at
    alertmanager.child.stop()

    run_channel_later = timezone.now() + timedelta(minutes=2)
    run_channel(Channel.objects.get().pk, owner="worker-1", clock=lambda: run_channel_later)

    channel = Channel.objects.get()
    assert (channel.silences, channel.silences_at) == ([], read_at)
    assert channel.silences_sentence
    alertmanager.start()


def read_again() -> None:
    Channel.objects.update(silences_at=timezone.now() - timedelta(minutes=2))
    work()


@pytest.fixture
def alerted(alertmanager) -> Finding:
    """An open finding that the Alertmanager has, on whose node somebody else has a silence."""
    catch_all(a_channel("alerts", "alertmanager", address=alertmanager.url, lease_until=timezone.now()))
    now = timezone.now()
    cluster = a_cluster("eu-1")
    finding = a_finding(cluster, node=a_node(cluster, "gpu-001"), rule="node-not-ready", severity="critical", since=now)
    happened(finding, at=now)
    work()
    alertmanager.silence("node", "gpu-009", by="Quarterdeck default")
    alertmanager.silence("quarterdeck_key", f"quarterdeck/default/finding/{finding.pk}", by="eve")
    return finding


def muted(finding: Finding, *, hours: float = 1) -> Mute:
    until = timezone.now() + timedelta(hours=hours)
    row = rule_mutes.mute(
        rule_mutes.scoped(finding, "finding"), actor="ada", reason="Cable ordered.", until=until, now=timezone.now()
    )
    work()
    return row


def lift(row: Mute) -> None:
    rule_mutes.lift(row, actor="ada", reason="Repaired.", now=timezone.now())
    DomainEvent.settle(DomainEvent.objects.values_list("pk", flat=True), cluster_id=row.cluster_id)
    work()


def test_a_mute_is_a_silence_until_it_is_lifted(alertmanager, alerted):
    row = muted(alerted)

    (silence,) = alertmanager.of_mutes()
    key = f"quarterdeck/default/finding/{alerted.pk}"
    assert silence["matchers"] == [{"name": "quarterdeck_key", "value": key, "isRegex": False, "isEqual": True}]
    assert silence["comment"] == "Muted by ada: Cable ordered."
    assert abs(datetime.fromisoformat(silence["endsAt"]) - row.until) < timedelta(seconds=1)
    read_again()
    (conversation,) = Conversation.objects.all()
    assert (conversation.silence_id, conversation.silence_until) == (silence["id"], row.until)
    page = visiting(a_user("bob", role="viewer")).get(f"/findings?finding={alerted.pk}").content.decode()
    assert "Quarterdeck default silenced it in Alertmanager alerts until" in page

    lift(row)

    assert alertmanager.of_mutes() == []
    assert Conversation.objects.get().silence_until is None
    assert alertmanager.others() == ["Quarterdeck default", "eve"]


def test_a_longer_mute_replaces_the_silence_and_the_end_of_the_finding_ends_it(alertmanager, alerted):
    muted(alerted)
    longer = muted(alerted, hours=5)

    (silence,) = alertmanager.of_mutes()
    assert abs(datetime.fromisoformat(silence["endsAt"]) - longer.until) < timedelta(seconds=1)

    alerted.refresh_from_db()
    resolve([alerted], now=timezone.now())
    DomainEvent.objects.update(is_settled=True)
    work()

    assert alertmanager.of_mutes() == []
    assert alertmanager.others() == ["Quarterdeck default", "eve"]


def test_a_silence_that_was_not_recorded_is_found_again(alertmanager, alerted, monkeypatch):
    def lose(*args, **given):
        outcome = put_silence(*args, **given)
        Channel.objects.update(epoch=F("epoch") + 1)  # another worker takes the channel
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(own_silences, "put_silence", lose)
        muted(alerted)
    (created,) = alertmanager.of_mutes()
    assert Conversation.objects.get().silence_until is None

    Channel.objects.update(lease_until=timezone.now())
    work()

    assert [each["id"] for each in alertmanager.of_mutes()] == [created["id"]]
    assert Conversation.objects.get().silence_id == created["id"]


@pytest.mark.nightly
def test_a_silence_that_a_person_ends_there_stays_ended_and_a_lost_one_comes_back(alertmanager, alerted):
    muted(alerted)
    for silence in alertmanager.silences():
        alertmanager.end(silence["id"])
    read_again()
    read_again()
    assert alertmanager.of_mutes() == []

    alertmanager.child.stop()
    shutil.rmtree(alertmanager.folder / "data")
    alertmanager.start()
    read_again()

    assert len(alertmanager.of_mutes()) == 1


def test_a_mute_that_cannot_become_a_silence_says_why_and_is_tried_again(alertmanager, alerted, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(own_silences, "put_silence", lambda *_, **__: SendOutcome(Acceptance.REFUSED, 403, "forbidden"))
        muted(alerted)
    viewer = visiting(a_user("bob", role="viewer"))
    sentence = "The mute is not a silence in Alertmanager alerts yet: forbidden"
    assert sentence in viewer.get(f"/parts/findings/{alerted.pk}/silences").content.decode()

    read_again()

    assert len(alertmanager.of_mutes()) == 1
    assert sentence not in viewer.get(f"/parts/findings/{alerted.pk}/silences").content.decode()
