"""The text of a message: what, where, since when, whom it hurts, values, causes and the next steps."""

import pytest

from notifications.channels.base import Notification
from notifications.texts import message_of_finding
from tests.make import a_cluster, a_finding, a_node
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
        "It slows down.", "Since 2026-11-21 11:55 UTC, cluster eu-1.", "Temperature: 91 °C",
        "Probable cause: A fan stands still", "1. Compare its neighbours.", "2. Look at the fans.",
        f"https://q.example.org/findings?finding={finding.pk}",
    ]  # fmt: skip
    assert told.labels == {"rule": "gpu-hot", "severity": "warning", "node": "gpu-001", "pool": "h200"}


def test_its_end_lists_no_steps(finding):
    told = message(finding, "finding.resolved", reason="")

    assert (told.happened, told.steps, told.details) == ("Resolved.", (), ())


def test_what_is_stored_is_read_as_it_was(finding):
    told = message(finding)

    assert Notification.read(told.written()) == told


def test_a_worker_reads_what_another_version_has_written(finding):
    written = message(finding).written()
    del written["details"]

    told = Notification.read(written | {"from_the_future": 1})

    assert (told.title, told.details) == ("eu-1: GPU 3 of gpu-001 is too hot", ())
