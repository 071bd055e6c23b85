from datetime import timedelta

import pytest

from fleet.models import DomainEvent
from health.models import Finding
from notifications.models import Channel, Conversation, Delivery
from notifications.retention import end_orphans, tidy
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, an_operation
from tests.notifications.make import a_channel, catch_all, happened

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(route_and_send):
    catch_all(a_channel("chat", "slack"))
    finding = a_finding(a_cluster())
    happened(finding)
    route_and_send()
    return finding


def test_what_a_removed_cluster_leaves_open_is_ended_once(sent):
    assert end_orphans(now=NOON) == 0
    DomainEvent.objects.all().delete()
    Finding.objects.all().delete()

    assert [end_orphans(now=NOON), end_orphans(now=NOON)] == [1, 0]

    told = Delivery.objects.get(act="resolve")
    assert (told.key, told.message["happened"]) == (f"finding/{sent.pk}", "Its cluster was removed from Quarterdeck.")
    assert not Conversation.objects.open().exists()


def test_conversations_about_operations_and_cases_are_no_orphans(sent):
    cluster = Finding.objects.get().cluster
    operation = an_operation(cluster, "gpu-8")
    case = a_case(a_node(cluster, "gpu-9"))
    for key in (f"operation/{operation.pk}", f"case/{case.pk}", "case/0"):
        Conversation.objects.create(
            channel=Channel.objects.get(), key=key, opened_at=NOON, message=Delivery.objects.first().message
        )

    assert end_orphans(now=NOON) == 1
    assert not Conversation.objects.open().filter(key="case/0").exists()


def test_the_log_is_kept_for_ninety_days(sent):
    assert tidy(before=NOON, now=NOON + timedelta(days=89)) == 0
    assert tidy(before=NOON, now=NOON + timedelta(days=91)) == 1  # its conversation is open still

    assert not Delivery.objects.exists()
