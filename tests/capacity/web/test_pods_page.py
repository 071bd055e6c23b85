"""The list of GPU pods."""

import csv
from datetime import timedelta
from io import StringIO
from urllib.parse import urlencode

import pytest

from capacity.pods import files
from capacity.web import pods_page
from fleet.models import Bookmark, Pod, Workload
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def cluster():
    return make.a_cluster("east")


@pytest.fixture
def node(cluster):
    return make.a_node(cluster, "gpu-1", pool=make.a_pool(cluster, "h200"))


@pytest.fixture
def viewer():
    return visiting(make.a_user("bob", role="viewer"))


def names(viewer, **query: str) -> list[str]:
    """The pods of the table in their order."""
    links = page(viewer, f"/parts/pods?{urlencode(query)}").links
    keys = [int(link.removeprefix("/pods/")) for link in links if link.startswith("/pods/")]
    found = Pod.objects.in_bulk(keys)
    return [found[key].name for key in keys]


def file_rows(viewer, **query: str) -> list[list[str]]:
    text = b"".join(viewer.get(f"/pods.csv?{urlencode(query)}")).decode()
    return list(csv.reader(StringIO(text)))


def test_it_is_in_the_menu_and_shows_pods_of_every_state(viewer, cluster, node):
    make.a_pod(node, "serving")
    make.a_pod(
        node,
        "broken",
        is_ready=False,
        stuck_container="main",
        waiting_reason="CrashLoopBackOff: x",
        status="CrashLoopBackOff",
    )
    make.a_pod(node, "refused", phase="Failed", is_ready=False, status="OutOfnvidia.com/gpu")
    make.a_pod(node, "pulling", phase="Pending", is_ready=False, status="ContainerCreating")
    make.a_pending_pod(cluster, "waiting", gpus=2)

    seen = page(viewer, "/pods")

    assert "/pods" in page(viewer, "/").links
    assert "All 5 Failing 1 Rejected 1 Pending 1 Starting 1 Running 1" in seen.text
    assert "team-a/waiting east Pending Job train 2 GPUs none" in seen.text
    assert "team-a/serving east Running Deployment model 1 GPU gpu-1 h200" in seen.text
    assert names(viewer) == ["broken", "refused", "waiting", "pulling", "serving"]


def test_pods_of_the_gpu_stack_are_not_listed(viewer, node):
    make.a_pod(node, "driver", operand="driver", gpus=0)

    assert "No GPU pods" in page(viewer, "/pods").text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "serv"}, ["serving"]),
        ({"q": "big"}, ["waiting"]),
        ({"cluster": "east"}, ["waiting", "serving"]),
        ({"cluster": "eas"}, []),
        ({"namespace": "team-b"}, ["elsewhere"]),
        ({"state": "pending"}, ["waiting"]),
        ({"state": "no-such"}, []),
        ({"pool": "east/h200"}, ["serving"]),
        ({"pool": "h200"}, ["serving"]),
        ({"pool": "west/h200"}, []),
        ({"pool": "none"}, ["elsewhere"]),
        ({"resource": "nvidia.com/mig-1g.10gb"}, ["waiting"]),
        ({"resource": "claim"}, ["elsewhere"]),
        ({"node": "gpu-1"}, ["serving"]),
        ({"ordering": "-gpus", "q": "ing"}, ["waiting", "serving"]),
        ({"ordering": "created_at"}, ["elsewhere", "serving", "waiting"]),
        ({"ordering": "-created_at"}, ["waiting", "serving", "elsewhere"]),
        ({"ordering": "name"}, ["serving", "waiting", "elsewhere"]),
        ({"ordering": "no-such"}, ["waiting", "elsewhere", "serving"]),
    ],
)
def test_filters_and_orders(viewer, cluster, node, query, expected):
    make.a_pod(node, "serving")
    make.a_pending_pod(cluster, "waiting", gpus=4, resources={"nvidia.com/mig-1g.10gb": 4}, owner_name="big-job")
    west = make.a_node(make.a_cluster("west"), "gpu-9")
    make.a_pod(west, "elsewhere", namespace="team-b", claims=["gpu"], created_at=NOON - timedelta(days=1))

    assert names(viewer, **query) == expected
    assert [row[2] for row in file_rows(viewer, **query)[1:]] == expected


def test_the_topmost_watched_owner_is_shown(viewer, cluster, node):
    row = {"kind": "ReplicaSet", "namespace": "team-a", "name": "chat-7d", "uid": "rs", "created_at": NOON}
    Workload.objects.create(
        cluster=cluster, changed_at=NOON, owner_kind="Deployment", owner_name="chat", owner_uid="d", **row
    )
    make.a_pod(node, "chat-7d-x", owner_kind="ReplicaSet", owner_name="chat-7d", owner_uid="rs")

    assert "Deployment chat" in page(viewer, "/pods").text


def test_a_viewer_of_one_pool_sees_its_pods_alone(cluster, node):
    other = make.a_node(cluster, "gpu-2")
    make.a_pod(node, "mine")
    make.a_pod(other, "theirs")
    make.a_pending_pod(cluster, "waiting")
    viewer = visiting(make.a_user("pia", role="viewer", on=node.pools.get()))

    assert names(viewer) == ["mine"]
    assert names(viewer, pool="none") == []
    assert [row[2] for row in file_rows(viewer)[1:]] == ["mine"]
    assert "All 1 Running 1" in page(viewer, "/pods").text


def test_a_stranger_sees_no_pod(node):
    make.a_pod(node, "mine")
    stranger = visiting(make.a_user("eve"))

    assert "mine" not in page(stranger, "/pods").text
    assert "mine" not in stranger.get("/parts/pods").content.decode()


def test_a_filter_that_finds_nothing_names_what_would_find_more(viewer, node):
    make.a_pod(node, "serving")

    seen = page(viewer, "/parts/pods?q=serv&state=pending")

    assert "No pod matches. Without the state : 1 pod" in seen.text
    assert "/pods?q=serv" in seen.links


def test_pages_follow_one_another_and_one_too_far_is_the_last(viewer, node, monkeypatch):
    monkeypatch.setattr(pods_page, "PER_PAGE", 2)
    for number in range(5):
        make.a_pod(node, f"pod-{number}")

    assert "5–5 of 5" in page(viewer, "/parts/pods?page=9").text
    assert "1–2 of 5" in page(viewer, "/parts/pods?page=x").text
    assert "page 2 of 3" in page(viewer, "/parts/pods?page=2&ordering=name").text


def test_what_people_wrote_is_text(viewer, cluster):
    make.a_pending_pod(
        cluster,
        "x",
        uid="uid-of-x",
        namespace=HOSTILE[:60],
        owner_name=HOSTILE,
        waiting_reason=f"Unschedulable: {HOSTILE}",
    )

    page(viewer, "/pods")
    page(viewer, f"/pods?{urlencode({'q': HOSTILE, 'pool': HOSTILE, 'resource': HOSTILE, 'namespace': HOSTILE})}")


def test_no_cell_of_the_file_is_a_formula(viewer, cluster):
    make.a_pending_pod(cluster, "=cmd")

    assert file_rows(viewer)[1][2] == "'=cmd"


def test_a_file_that_would_be_too_long_is_refused(viewer, node, monkeypatch):
    monkeypatch.setattr(files, "MOST_ROWS", 1)
    make.a_pod(node)
    make.a_pod(node)

    answer = viewer.get("/pods.csv")

    assert (answer.status_code, answer.content) == (
        400,
        b"2 pods match. A file has at most 1: filter by cluster or namespace.",
    )


def test_pods_of_an_unseen_cluster_are_marked(viewer, node):
    make.a_pod(node, "serving")
    Bookmark.objects.filter(kind="pods").update(last_seen_at=NOON - timedelta(hours=1))

    seen = viewer.get("/parts/pods").content.decode()

    assert "is-stale" in seen
    assert "was Running, as of 11:00" in seen


def test_it_costs_no_query_more_for_more_pods(viewer, cluster, node, queries_of):
    paths = ("/pods", "/parts/pods?ordering=-gpus&pool=h200&q=p&resource=nvidia.com/gpu", "/pods.csv")
    broken = {"is_ready": False, "stuck_container": "main", "waiting_reason": "CrashLoopBackOff", "status": "x"}
    make.a_pod(node, "pod-a", owner_uid="a", **broken)
    make.a_pending_pod(cluster)
    few = {path: queries_of(viewer, path) for path in paths}

    for number in range(8):
        other = make.a_node(cluster, f"more-{number}", pool=cluster.pools.get())
        make.a_pod(other, owner_uid=f"uid-{number}", **broken)
        make.a_pending_pod(cluster)

    assert {path: queries_of(viewer, path) for path in paths} == few
