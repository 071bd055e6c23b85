from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from fleet.models import GoneNode
from health.models import GpuHour
from health.sources.hours import provide_partition
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
SAID = {"seen_s": 3600.0, "busy_s": 1800.0, "temperature_max": 81.0, "xids": 1}


@pytest.fixture
def node():
    return make.a_node(make.a_cluster(), created_at=NOON - timedelta(days=30))


def an_hour(node, ago: int, index: int = 0, **given) -> None:
    hour = NOON - timedelta(hours=ago)
    provide_partition(hour)
    row = {"uuid": f"GPU-{index}", "index": index, "node_name": node.name} | SAID | given
    GpuHour.objects.create(cluster=node.cluster, hour=hour, **row)


def strip_and_rest(node):
    ada = make.a_user(role="viewer")
    client = APIClient()
    client.force_authenticate(ada)
    return page(visiting(ada), f"/parts/nodes/{node.pk}/hours"), client.get(f"/api/v1/nodes/{node.pk}/hours").json()


def test_the_strip_and_rest_sum_to_the_same(node):
    for index in range(8):
        an_hour(node, 3, index)
    an_hour(node, 2, busy_s=None, temperature_max=None, xids=0)
    make.a_finding(
        node.cluster, node=node, title="GPU 3 is hot.", severity="critical", opened_at=NOON - timedelta(hours=2),
        resolved_at=NOON - timedelta(hours=1, minutes=1),
    )  # fmt: skip

    seen, rest = strip_and_rest(node)

    assert len(rest) == 72
    assert sum(hour["gpu_hours_seen"] for hour in rest) == 9
    assert (
        "2 of 72 hours with telemetry: 9.0 GPU-hours, 4.0 under load and 1.0 with unknown utilisation; maximum "
        "81 °C; at least 8 Xids." in seen.text
    )
    assert "Findings were open in 1 hour." in seen.text
    assert [hour["severity"] for hour in rest if hour["findings"]] == ["critical"]
    assert {hour["gpu_hours_busy"] for hour in rest if hour["devices"]} == {4.0, None}


def test_an_hour_of_which_nothing_says_how_busy_it_was_is_drawn_as_no_idle_one(node):
    an_hour(node, 2, busy_s=None)
    an_hour(node, 3, busy_s=0.0)
    an_hour(node, 4)
    an_hour(node, 4, index=1, busy_s=None)

    html = visiting(make.a_user(role="viewer")).get(f"/parts/nodes/{node.pk}/hours").content.decode()
    (half, idle, unsaid) = (hour for hour in strip_and_rest(node)[1] if hour["devices"])

    assert (html.count('class="is-reporting"'), html.count('class="is-unknown"')) == (2, 1)
    assert html.count('height="2"') == 1  # of the idle one
    assert "2.0 GPU-hours measured, 0.5 of them under load and 1.0 with unknown utilisation." in html
    assert [hour["gpu_hours_unknown"] for hour in (half, idle, unsaid)] == [1.0, 0.0, 1.0]
    assert [hour["gpu_hours_busy"] for hour in (half, idle, unsaid)] == [0.5, 0.0, None]


def test_what_no_exporter_says_is_said_and_not_nought(node):
    an_hour(node, 2, busy_s=None, temperature_max=None, xids=None)
    an_hour(node, 3, xids=0)

    _, rest = strip_and_rest(node)
    html = visiting(make.a_user(role="viewer")).get(f"/parts/nodes/{node.pk}/hours").content.decode()

    (known, unknown) = (hour for hour in rest if hour["devices"])
    assert (known["devices"][0]["xids"], unknown["devices"][0]["xids"]) == (0, None)
    unsaid = "their utilisation is unknown. Their temperature is unknown. The Xids that they had are unknown."
    assert f"1.0 GPU-hours measured, {unsaid}<" in html
    assert "1.0 GPU-hours measured, 0.5 of them under load. The hottest GPU had 81 °C.<" in html
    GpuHour.objects.filter(xids=0).delete()
    strip = strip_and_rest(node)[0].text
    assert "1.0 GPU-hours, utilisation unknown; temperature unknown; Xids unknown." in strip


def test_a_gpu_that_is_cut_is_one_and_so_is_its_xid(node):
    for index in range(8):
        an_hour(node, 2, index, busy_s=None, xids=1)
        for gi_id in range(7):
            an_hour(node, 2, index, gi_id=str(gi_id), busy_s=600.0 * (gi_id == 3), xids=1)

    seen, rest = strip_and_rest(node)

    assert [hour["gpu_hours_seen"] for hour in rest if hour["devices"]] == [8]
    assert "8.0 GPU-hours, 1.3 under load; maximum 81 °C; at least 8 Xids." in seen.text


def test_an_hour_that_nobody_heard_hides_no_finding(node):
    make.a_finding(node.cluster, node=node, title="Nothing is heard.", opened_at=NOON - timedelta(hours=2))

    seen, rest = strip_and_rest(node)

    assert "0 of 72 hours with telemetry." in seen.text
    assert [bool(hour["findings"]) for hour in rest][-3:] == [False, True, True]


def test_before_anything_is_known_it_says_so(node):
    seen, _ = strip_and_rest(node)

    assert "No telemetry of this node in 72 whole hours" in seen.text


def test_another_machine_that_had_its_name_is_not_this_one():
    node = make.a_node(make.a_cluster(), created_at=NOON - timedelta(hours=2))
    an_hour(node, 5)
    an_hour(node, 2)

    _, rest = strip_and_rest(node)

    assert [len(hour["devices"]) for hour in rest] == [1, 0]


def test_how_it_was_at_a_moment_has_its_hour(node):
    make.a_node_event(node, "Seen for the first time.", at=NOON - timedelta(days=2), detail={"ready": True})
    for index in range(8):
        an_hour(node, 3, index)

    seen = page(visiting(make.a_user(role="viewer")), f"/nodes/{node.pk}/history?at=2026-11-21T09:40").text

    hours = "8.0 GPU-hours measured, 4.0 of them under load"
    said = f"From 09:00 to 10:00: {hours}. The hottest GPU had 81 °C. At least 8 Xids."
    assert said in seen


SAID_OF_8 = "8.0 GPU-hours measured, 4.0 of them under load. The hottest GPU had 81 °C. At least 8 Xids."


@pytest.fixture
def gone(node):
    """It left at half past nine, after eight of its GPUs were heard for an hour."""
    make.a_node_event(node, "Seen for the first time.", at=NOON - timedelta(days=2), detail={"ready": True})
    for index in range(8):
        an_hour(node, 3, index)
    row = GoneNode.objects.create(
        cluster=node.cluster, node_id=node.pk, uid=node.uid, name=node.name, gone_at=NOON - timedelta(minutes=150)
    )
    node.delete()
    return row


def seen_at(row, at: str) -> str:
    return page(visiting(make.a_user(role="viewer")), f"/nodes/{row.node_id}/history?at=2026-11-21T{at}").text


def test_how_a_node_that_left_was_at_a_moment_has_its_hour(gone):
    assert f"From 09:00 to 10:00: {SAID_OF_8}" in seen_at(gone, "09:20")


@pytest.mark.parametrize("is_gone_too", [False, True])
def test_an_hour_in_which_another_node_had_its_name_is_said_to_be_of_both(gone, is_gone_too):
    other = make.a_node(gone.cluster, gone.name, uid="another", created_at=NOON - timedelta(minutes=140))
    make.a_node_event(other, "Seen for the first time.", at=NOON - timedelta(minutes=140), detail={"ready": True})
    if is_gone_too:
        other.delete()

    assert (f"From 09:00 to 10:00, of this node and another node that had the same name then: {SAID_OF_8}") in seen_at(
        gone, "09:20"
    )


def test_an_hour_that_is_of_another_node_that_had_its_name_is_not_its(gone):
    other = make.a_node(gone.cluster, gone.name, uid="another", created_at=NOON - timedelta(minutes=50))
    make.a_node_event(other, "Seen for the first time.", at=NOON - timedelta(minutes=50), detail={"ready": True})

    assert f"From 09:00 to 10:00: {SAID_OF_8}" in seen_at(gone, "09:20")


@pytest.mark.parametrize("hours", ["0", "745", "x"])
def test_no_other_number_of_hours(node, hours):
    client = APIClient()
    client.force_authenticate(make.a_user(role="viewer"))

    assert client.get(f"/api/v1/nodes/{node.pk}/hours?hours={hours}").status_code == 400
