"""The text of a message: what, where, since when, whom it hurts, values, causes and the next steps."""

from dataclasses import replace
from datetime import timedelta

import pytest

from maintenance.models import AutomaticQuarantine, NodeCase
from notifications.channels.base import Notification
from notifications.rounds.subjects import Subjects
from notifications.texts import UNTOUCHED, message_of_finding
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, a_pool
from tests.notifications.make import happened

pytestmark = pytest.mark.django_db


@pytest.fixture
def finding():
    cluster = a_cluster("eu-1")
    return a_finding(
        cluster, node=a_node(cluster, "gpu-001"), rule="gpu-hot", title="GPU 3 of gpu-001 is too hot",
        summary="It slows down.", evidence=[{"label": "Temperature", "value": 91, "unit": "°C"}],
        causes=["A fan stands still"], steps=["Compare its neighbours.", "Look at the fans."],
    )  # fmt: skip


def message(finding, kind: str = "finding.opened", **facts) -> Notification:
    return message_of_finding(happened(finding, kind, **facts), finding, impact=None, pools=("h200",))


def test_it_says_all_that_the_finding_says(finding, settings):
    settings.PUBLIC_URL = "https://q.example.org/"

    told = message(finding)

    assert told.title == "eu-1: GPU 3 of gpu-001 is too hot"
    assert told.paragraphs == [
        "It slows down.",
        f"Since 2026-11-21 11:55 UTC, cluster eu-1. {UNTOUCHED}",
        "Temperature: 91 °C",
        "Probable cause: A fan stands still", "1. Compare its neighbours.", "2. Look at the fans.",
        f"https://q.example.org/findings?finding={finding.pk}", "Node: gpu-001",
    ]  # fmt: skip
    assert told.labels == {"rule": "gpu-hot", "severity": "warning", "node": "gpu-001", "pool": "h200"}


def test_its_end_lists_no_steps(finding):
    told = message(finding, "finding.resolved", reason="")

    assert (told.happened, told.steps, told.details, told.happens_next) == ("Resolved.", (), (), "")


def test_what_is_stored_is_read_as_it_was(finding):
    told = message(finding)

    assert Notification.read(told.written()) == told


def test_a_worker_reads_what_another_version_has_written(finding):
    written = message(finding).written()
    del written["details"]

    told = Notification.read(written | {"from_the_future": 1})

    assert (told.title, told.details) == ("eu-1: GPU 3 of gpu-001 is too hot", ())


def test_times_are_in_utc_and_in_the_zone_of_the_channel(finding):
    told = replace(message(finding), zone="Europe/Berlin", second="pager", second_at=NOON + timedelta(hours=11))

    assert "Since 2026-11-21 11:55 UTC (12:55 Europe/Berlin), cluster eu-1." in told.paragraphs[1]
    assert told.next.endswith(
        "Without an answer, pager gets it at 2026-11-21 23:00 UTC (2026-11-22 00:00 Europe/Berlin)."
    )
    assert Notification.read(told.written()) == told


def test_what_happens_next_is_the_case_of_the_node_or_automatic_quarantine(finding):
    case = a_case(finding.node, state="probation")
    pool = a_pool(finding.cluster, "h200")
    pool.nodes.add(finding.node)
    AutomaticQuarantine.objects.create(
        pool=pool, mode="act", mode_since=NOON, changed_by="ada",
        breaker_since=NOON, evidence_after=NOON,
    )  # fmt: skip
    xid = a_finding(finding.cluster, "GPU 1 of gpu-001", node=finding.node, rule="gpu-xid")

    def next_of(finding) -> str:
        event = happened(finding)
        return Subjects([event], NOON).message(event).happens_next

    assert next_of(xid).startswith(f"Case {case.pk}: Pods start on the node. The case closes after 72 h")
    NodeCase.objects.all().delete()
    assert next_of(xid) == "Automatic quarantine of h200 may quarantine the node."
    assert next_of(finding) == UNTOUCHED
