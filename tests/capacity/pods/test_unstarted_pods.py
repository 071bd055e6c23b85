"""The numbers of GPU pods that do not run: on the home page and in REST."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
PART, REST = "/parts/unstarted-pods", "/api/v1/pods/unstarted"


@pytest.fixture
def east():
    return make.a_cluster("east")


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def counts(user) -> dict:
    found = calling(user).get(REST).json()
    return {name: found[name] for name in ("pending", "starting", "failing", "rejected")}


def test_each_state_has_its_number_and_the_longest_wait_leads_to_the_pods(east, bob):
    node = make.a_node(east, "gpu-1")
    make.a_pod(node, "serving")
    make.a_pod(node, "refused", phase="Failed", is_ready=False, status="OutOfnvidia.com/gpu")
    make.a_pod(node, "pulling", phase="Pending", is_ready=False, status="ContainerCreating")
    make.a_pending_pod(east, "young")
    make.a_pending_pod(east, "old", created_at=NOON - timedelta(hours=3))

    seen = page(visiting(bob), PART)

    assert "2 pending 1 starting 0 failing 1 rejected Longest wait for a node 3 h" in seen.text
    assert {"/pods?state=pending", "/pods?state=pending&ordering=created_at"} <= set(seen.links)
    assert counts(bob) == {"pending": 2, "starting": 1, "failing": 0, "rejected": 1}
    assert calling(bob).get(REST).json()["waiting_since"] == f"{NOON - timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}"
    assert PART in visiting(bob).get("/").content.decode()


def test_no_pod_is_zero_and_pods_that_were_never_read_are_unknown(east, bob):
    assert "0 pending 0 starting 0 failing 0 rejected" in page(visiting(bob), PART).text
    assert "Longest" not in page(visiting(bob), PART).text

    Bookmark.objects.filter(kind="pods").delete()

    assert page(visiting(bob), PART).text.endswith("Unknown: no cluster reports pods.")
    assert set(counts(bob).values()) == {None}


def test_a_cluster_without_pods_is_named_beside_the_others(east, bob):
    make.a_pending_pod(east)
    west = make.a_cluster("west")
    Bookmark.objects.filter(cluster=west, kind="pods").delete()
    make.a_pending_pod(west, created_at=NOON - timedelta(days=1))  # of an earlier list that is void

    seen = page(visiting(bob), PART).text

    assert "1 pending 0 starting 0 failing 0 rejected Longest wait for a node 20 min" in seen
    assert "Pods never read: west" in seen


def test_numbers_of_a_silent_cluster_have_their_time(bob):
    silent = make.a_cluster("east", seen_at=NOON - timedelta(hours=1))
    make.a_pending_pod(silent)

    assert "1 pending" in page(visiting(bob), PART).text
    assert "counted as of" in page(visiting(bob), PART).text


def test_a_role_on_a_pool_alone_hides_pods_without_a_node_and_says_so(east):
    pool = make.a_pool(east, "h200")
    node = make.a_node(east, "gpu-1", pool=pool)
    make.a_pod(node, "pulling", phase="Pending", is_ready=False, status="ContainerCreating")
    make.a_pending_pod(east)
    eve = make.a_user("eve", role="viewer", on=pool)

    seen = page(visiting(eve), PART).text

    assert "0 pending 1 starting" in seen
    assert "Pods without a node are not visible to you: east" in seen
    assert calling(eve).get(REST).json()["hidden_clusters"] == ["east"]
