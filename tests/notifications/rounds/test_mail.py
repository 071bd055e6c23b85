"""A real SMTP server: one thread for each finding, and its own words on a refusal."""

from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MessageHandler

from demo.ports import LOOPBACK, free_port
from notifications.models import Delivery
from tests.make import a_cluster, a_finding
from tests.notifications.make import a_channel, catch_all, happened

pytestmark = pytest.mark.django_db


class Sink(MessageHandler):
    def __init__(self) -> None:
        super().__init__(EmailMessage)
        self.mails: list[EmailMessage] = []
        self.refuses = ""

    async def handle_RCPT(self, _server, _session, envelope, address, _options) -> str:  # noqa: N802 - aiosmtpd calls it so
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    def handle_message(self, message: EmailMessage) -> None:
        self.mails.append(message)


@pytest.fixture
def sink(settings) -> Iterator[Sink]:
    sink = Sink()
    controller = Controller(sink, hostname=LOOPBACK, port=free_port())
    controller.start()
    settings.SMTP_URL = "smtp://sink"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = LOOPBACK, controller.port
    yield sink
    controller.stop()


@pytest.fixture
def finding():
    catch_all(a_channel("oncall", "mail", recipients=["oncall@example.org", "lead@example.org"]))
    return a_finding(a_cluster("eu-1"), "node gpu-001", title="Its kubelet is silent.\nReally.")


def test_the_mails_about_a_finding_are_one_thread(sink, finding, route_and_send):
    happened(finding)
    happened(finding, "finding.resolved", reason="")

    route_and_send()

    first, second = sink.mails
    assert second["In-Reply-To"] == second["References"] == first["Message-ID"]
    assert (first["Auto-Submitted"], first["To"]) == ("auto-generated", "oncall@example.org, lead@example.org")
    assert second["Subject"].startswith("Resolved: [warning] eu-1: Its kubelet is silent.")
    assert "Its kubelet is silent." in str(first.get_payload())


@pytest.mark.parametrize(
    ("answer", "state"), [("451 Try later, greylisted", "waiting"), ("550 No such mailbox", "dead")]
)
def test_a_refusal_is_shown_in_the_servers_own_words(sink, finding, route_and_send, answer, state):
    sink.refuses = answer
    happened(finding)

    route_and_send()

    row = Delivery.objects.get()
    status, _, words = answer.partition(" ")
    assert (row.state, row.status) == (state, int(status))
    assert words in row.sentence


def test_a_server_that_is_away_is_tried_again(sink, finding, route_and_send, settings, clock):
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, free_port()
    happened(finding)
    route_and_send()
    assert "cannot be reached" in Delivery.objects.get().sentence

    settings.EMAIL_PORT = port
    clock.later(6)
    route_and_send()

    assert len(sink.mails) == 1


def test_without_a_server_the_channel_says_what_to_set(finding, route_and_send, settings):
    settings.SMTP_URL = ""
    happened(finding)

    route_and_send()

    assert "QUARTERDECK_SMTP_URL" in Delivery.objects.get().sentence
