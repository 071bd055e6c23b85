"""The page of a node's history and REST, which say the same."""

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from fleet.models import NodeNote
from people.models import AuditEntry
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def node():
    node = make.a_node(make.a_cluster())
    make.a_node_event(node, "Seen for the first time.", at=NOON - timedelta(days=1), detail={"ready": True})
    make.a_node_event(node, "Cordoned.", at=NOON - timedelta(hours=2), kind="cordon")
    at = NOON - timedelta(hours=1)
    finding = make.a_finding(node.cluster, node=node, title="GPU 3 is hot.", opened_at=at)
    make.an_event_of(finding, at=at)
    return node


def rest(user) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def test_page_and_rest_have_the_same_lines_of_the_same_kinds(node):
    ada = make.a_user(role="viewer")
    client = rest(ada)
    for query, wanted in (("", 3), ("?kind=finding", 1), ("?kind=cordon&kind=finding", 2), ("?kind=note", 0)):
        lines = client.get(f"/api/v1/nodes/{node.pk}/timeline{query}").json()
        seen = page(visiting(ada), f"/nodes/{node.pk}/history{query}").text
        assert len(lines) == wanted
        assert [line["at"] for line in lines] == sorted((line["at"] for line in lines), reverse=True)
        assert all(line["sentence"] in seen for line in lines)


def test_the_older_ones_are_a_page_away(node):
    for number in range(120):
        make.a_node_event(node, f"Change {number}.", at=NOON - timedelta(minutes=number))
    viewer = visiting(make.a_user(role="viewer"))

    first = page(viewer, f"/nodes/{node.pk}/history")
    (older,) = [link for link in first.links if "before=" in link]

    assert "Seen for the first time." not in first.text
    assert "Seen for the first time." in page(viewer, older).text


def test_lines_of_one_instant_are_not_torn_apart(node):
    """A flush writes all that it saw with one time."""
    for number in range(130):
        make.a_node_event(node, f"Change {number}.", at=NOON - timedelta(minutes=number // 13))
    client, seen, before = rest(make.a_user(role="viewer")), [], ""
    while lines := client.get(f"/api/v1/nodes/{node.pk}/timeline", {"before": before} if before else {}).json():
        seen += [line["sentence"] for line in lines]
        before = lines[-1]["at"]

    assert len(seen) == len(set(seen)) == 133


def test_how_it_was_at_a_moment(node):
    ada = make.a_user(role="viewer")

    seen = page(visiting(ada), f"/nodes/{node.pk}/history?at=2026-11-21T11:30")
    said = rest(ada).get(f"/api/v1/nodes/{node.pk}/moment?at={(NOON - timedelta(minutes=30)).isoformat()[:19]}").json()

    assert "The node at 2026-11-21 11:30:00 UTC" in seen.text
    assert [one["sentence"] for one in said["true_then"]] == ["GPU 3 is hot."]
    assert said["unseen"] == ""


def test_a_moment_of_another_zone_is_asked_for_as_people_write_it(node):
    """In an address the + of an offset is a blank, unless somebody spells it %2B."""
    ada = make.a_user(role="viewer")

    seen = visiting(ada).get(f"/nodes/{node.pk}/history?at=2026-11-21T13:30+02:00").content.decode()
    said = rest(ada).get(f"/api/v1/nodes/{node.pk}/moment?at=2026-11-21T13:30+02:00").json()

    assert "The node at 2026-11-21 11:30:00 UTC" in seen
    assert 'name="at" value="2026-11-21 11:30:00"' in seen
    assert said["at"] == "2026-11-21T11:30:00Z"


def test_of_a_node_that_is_cut_and_shared_slices_and_shares_are_said(node):
    amounts = {"gpu_capacity": None, "gpu_allocatable": None, "slices_allocatable": 14, "shares_allocatable": 32}
    type(node).objects.filter(pk=node.pk).update(**amounts)
    ada = make.a_user(role="viewer")

    seen = page(visiting(ada), f"/nodes/{node.pk}/history?at=2026-11-21T11:30").text
    facts = rest(ada).get(f"/api/v1/nodes/{node.pk}/moment?at=2026-11-21T11:30:00").json()["facts"]

    assert "Slices that can be allocated 14" in seen
    assert "Shares that can be allocated 32" in seen
    assert "Whole GPUs" not in seen
    said = {fact["name"]: fact["value"] for fact in facts}
    assert (said["slices_allocatable"], said["shares_allocatable"]) == (14, 32)
    assert "gpu_capacity" not in said


@pytest.mark.parametrize("at", ["yesterday", "2026-13-41T00:00", "2999-01-01T00:00", "９" * 10, "2" * 5000])
def test_what_is_no_moment_is_said_at_its_field(node, at):
    ada = make.a_user(role="viewer")

    assert "alert" in visiting(ada).get(f"/nodes/{node.pk}/history", {"at": at}).content.decode()
    assert visiting(ada).get(f"/nodes/{node.pk}/history", {"at": at}).status_code == 400
    assert rest(ada).get(f"/api/v1/nodes/{node.pk}/moment", {"at": at}).status_code == 400


@pytest.mark.parametrize("name", ["at", "before"])
@pytest.mark.parametrize("edge", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z"])
def test_a_time_at_the_edge_of_all_times_is_no_error(node, name, edge):
    viewer = visiting(make.a_user(role="viewer"))

    assert viewer.get(f"/nodes/{node.pk}/history", {name: edge}).status_code in {200, 400}


def test_an_unknown_kind_is_refused_by_rest_and_passed_over_by_the_page(node):
    ada = make.a_user(role="viewer")

    assert rest(ada).get(f"/api/v1/nodes/{node.pk}/timeline?kind=rubbish").status_code == 400
    assert "Cordoned." in page(visiting(ada), f"/nodes/{node.pk}/history?kind=rubbish").text


def test_a_note_is_on_the_timeline_once_with_its_author_and_is_audited(node):
    bob = make.a_user("bob", role="operator")
    client = rest(bob)
    for _ in range(2):
        said = client.post(
            f"/api/v1/nodes/{node.pk}/notes", {"text": HOSTILE}, format="json", headers={"Idempotency-Key": "k"}
        )
        assert (said.status_code, said.json()["by"]) == (201, "bob")

    assert HOSTILE in page(visiting(bob), f"/nodes/{node.pk}/history?kind=note").text
    assert NodeNote.objects.count() == 1
    assert AuditEntry.objects.filter(verb="node.note").count() == 1


def test_a_note_by_the_page(node):
    operator = visiting(make.a_user(role="operator"))

    assert operator.post(f"/nodes/{node.pk}/notes", {"text": " Reseated GPU 3. ", "key": "a"}).status_code == 302
    assert "Reseated GPU 3." in page(operator, f"/nodes/{node.pk}/history").text


def test_a_note_is_as_long_as_its_writer_counts_it(node):
    """A browser lets 1,000 characters be typed, and sends two for each end of a line."""
    operator = visiting(make.a_user(role="operator"))

    operator.post(f"/nodes/{node.pk}/notes", {"text": "x\r\n" * 499 + "xx"})

    assert NodeNote.objects.get().text == "x\n" * 499 + "xx"


@pytest.mark.parametrize("text", ["", "   ", "x" * 1001])
def test_no_note_without_text_or_with_too_much(node, text):
    operator = make.a_user(role="operator")

    assert rest(operator).post(f"/api/v1/nodes/{node.pk}/notes", {"text": text}, format="json").status_code == 400
    visiting(operator).post(f"/nodes/{node.pk}/notes", {"text": text})
    assert not NodeNote.objects.exists()


def test_a_note_that_is_refused_comes_back_once(node):
    operator = visiting(make.a_user("ada", role="operator"))
    written = "x" * 999 + "<>"

    operator.post(f"/nodes/{node.pk}/notes", {"text": written})
    shown, again = (operator.get(f"/nodes/{node.pk}/history").content.decode() for _ in range(2))
    operator.post(f"/nodes/{node.pk}/notes", {"text": "Reseated."})
    done = operator.get(f"/nodes/{node.pk}/history").content.decode()

    assert "x" * 999 + "&lt;</textarea>" in shown
    assert "required></textarea>" in again
    assert "required></textarea>" in done


def test_a_note_of_who_may_write_none_any_more_is_said_beside_the_refusal(node):
    viewer = visiting(make.a_user(role="viewer"))

    viewer.post(f"/nodes/{node.pk}/notes", {"text": "Reseated <3>."})

    assert "Your text was not saved: Reseated <3>." in page(viewer, f"/nodes/{node.pk}/history").text


def test_who_may_only_look_writes_nothing_and_has_no_form(node):
    viewer = make.a_user(role="viewer")

    assert rest(viewer).post(f"/api/v1/nodes/{node.pk}/notes", {"text": "Hm."}, format="json").status_code == 403
    visiting(viewer).post(f"/nodes/{node.pk}/notes", {"text": "Hm."})
    assert not NodeNote.objects.exists()
    assert "A note" not in page(visiting(viewer), f"/nodes/{node.pk}/history").text


def test_who_sees_nothing_of_it_finds_nothing(node):
    eve = make.a_user("eve")

    page(visiting(eve), f"/nodes/{node.pk}/history", status=404)
    for path in ("timeline", "moment?at=2026-11-21T11:30"):
        assert rest(eve).get(f"/api/v1/nodes/{node.pk}/{path}").status_code == 404
