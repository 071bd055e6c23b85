"""The table of GPUs in REST."""

import pytest

from health.api.gpus import GpuHealthSerializer
from health.gpus.columns import READ
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.health.gpus.telling import tell
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
PLACE = "/api/v1/gpu-health"
FILE = "/api/v1/gpu-health.csv"


def test_it_has_pages_and_an_order(bob):
    make.a_node(make.a_cluster("east"), "gpu-1", gpus=3)

    first = bob.get(f"{PLACE}?limit=2&ordering=-node").json()
    second = bob.get(first["next"]).json()

    assert (first["count"], [row["index"] for row in first["results"]], first["previous"]) == (3, [0, 1], None)
    assert ([row["index"] for row in second["results"]], second["next"]) == ([2], None)
    assert first["results"][0]["metrics"]["temperature_celsius"]["state"] == "no-source"
    assert first["results"][0]["allocations"] == []


def test_what_is_written_is_as_its_schema_says(bob):
    cluster = make.a_cluster("east")
    node = make.a_node(cluster, "gpu-1", gpus=2, pool=make.a_pool(cluster))
    make.a_pod(node, gpus=2)
    make.a_source(cluster)
    tell(cluster, GpuDevice("gpu-1", 0, "GPU-0"), ages=[5], temperature_celsius=[50.0])
    make.a_finding(cluster, "GPU 0 of gpu-1", node=node, rule="gpu-hot", severity="warning")

    found = bob.get(PLACE).json()["results"]

    assert all(found[0][name] for name in ("finding", "allocations", "pools"))
    assert found[0]["metrics"]["temperature_celsius"]["sampled_at"]
    assert found == [GpuHealthSerializer(row).data for row in found]
    assert set(found[0]) == set(GpuHealthSerializer().fields)


@pytest.mark.parametrize(
    "query",
    ["colour=red", "limit=0", "limit=1001", "offset=-1", "ordering=secret", "severity=bad", "state=x", "faults=yes",
     f"q={'x' * 254}", "metric=secret", "metric=xid&reading=secret", "metric=xid&at_least=nan",
     "metric=xid&at_least=1e3", "reading=zero", "at_least=3", "column=secret"],
)  # fmt: skip
def test_what_it_does_not_know_is_refused(bob, query):
    assert bob.get(f"{PLACE}?{query}").status_code == 400


def test_other_metrics_are_written_where_they_are_asked_for_or_by(bob):
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1", gpus=2)
    make.a_source(cluster, exported=["ecc_corrected", "pcie_replays"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "GPU-0"), GpuDevice("gpu-1", 1, "GPU-1"), xids={},
        ecc_corrected=[0.0, 12.0], pcie_replays=[3.0, 0.0],
    )  # fmt: skip

    usual_page = bob.get(PLACE).json()
    usual = usual_page["results"][0]["metrics"]
    asked = bob.get(f"{PLACE}?column=uuid&column=pcie_replays&metric=ecc_corrected&at_least=10").json()

    assert set(usual) == set(READ)
    assert [row["index"] for row in asked["results"]] == [1]
    assert set(asked["results"][0]["metrics"]) == {*READ, "ecc_corrected", "pcie_replays"}
    assert asked["results"][0]["metrics"]["pcie_replays"]["value"] == 0.0
    assert (usual_page["without_value"], asked["without_value"]) == (0, 0)
    assert bob.get(f"{PLACE}?metric=ecc_uncorrected").json()["without_value"] == 2
    assert [row["index"] for row in bob.get(f"{PLACE}?ordering=-pcie_replays").json()["results"]] == [0, 1]
    assert [row["index"] for row in bob.get(f"{PLACE}?metric=ecc_corrected&reading=zero").json()["results"]] == [0]


def test_a_stranger_sees_none_and_nobody_is_asked_to_sign_in(eve, client):
    make.a_node(make.a_cluster("east"), gpus=3)

    assert eve.get(PLACE).json()["results"] == []
    assert client.get(PLACE).status_code == 401


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_its_file_is_the_pages_by_the_same_filters(root):
    make.a_node(make.a_cluster("east"), "gpu-1", gpus=3)
    make.a_node(make.a_cluster("west"), "gpu-2", gpus=2)

    told = root.get(f"{FILE}?cluster=east&ordering=-node")

    assert told["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(told).decode()
    assert len(text.splitlines()) == 1 + 3
    assert "west" not in text
    assert text.encode() == b"".join(
        visiting(make.a_user("amy", role="viewer")).get("/gpus.csv?cluster=east&ordering=-node")
    )
    assert text.encode() == b"".join(root.get(f"{FILE}?cluster=east&ordering=-node", headers={"Accept": "text/csv"}))


@pytest.mark.parametrize("query", ["colour=red", "limit=5", "ordering=secret", "severity=bad"])
def test_a_file_of_what_it_does_not_know_is_refused_in_json(bob, query):
    said = bob.get(f"{FILE}?{query}", headers={"Accept": "text/csv"})

    assert (said.status_code, said["Content-Type"]) == (400, "application/problem+json")
    assert said.json()["type"] == "urn:quarterdeck:problem:bad-request"


def test_a_file_that_would_be_too_long_or_of_nobody_is_refused(bob, eve, client, monkeypatch):
    make.a_node(make.a_cluster("east"), gpus=3)
    monkeypatch.setattr("health.gpus.files.MOST_ROWS", 2)

    long = bob.get(FILE)

    assert (long.status_code, "rows: add a filter by cluster or pool" in long.json()["detail"]) == (400, True)
    assert (eve.get(FILE).status_code, client.get(FILE).status_code) == (403, 401)


def test_views_are_the_callers_own_and_the_pages(ada, bob):
    made = ada.post("/api/v1/gpu-views", {"name": " Hot  ones ", "query": "?ordering=-temperature&x=1"}, format="json")
    assert made.status_code == 201
    assert made.json()["name"] == "Hot ones"
    assert "x=1" not in made.json()["query"]
    again = ada.post("/api/v1/gpu-views", {"name": "Hot ones"}, format="json").json()
    assert (again["id"], again["query"], again["page"]) == (made.json()["id"], "", "/gpus")

    assert [row["name"] for row in ada.get("/api/v1/gpu-views").json()["results"]] == ["Hot ones"]
    assert bob.get("/api/v1/gpu-views").json()["results"] == []
    assert bob.delete(f"/api/v1/gpu-views/{again['id']}").status_code == 404
    assert ada.delete(f"/api/v1/gpu-views/{again['id']}").status_code == 204
    assert ada.get("/api/v1/gpu-views").json()["results"] == []


def test_a_view_that_cannot_be_saved_says_why(ada):
    refused = ada.post("/api/v1/gpu-views", {"name": "\u200b"}, format="json")

    assert refused.status_code == 400
    assert "needs a name" in refused.content.decode()
