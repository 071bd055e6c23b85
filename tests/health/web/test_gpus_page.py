"""The page of the table of GPUs."""

import pytest

from fleet.models import Bookmark, Gpu
from health.gpus import files
from health.telemetry.snapshot import GpuDevice
from health.web import gpus_page
from tests import make
from tests.health.gpus.telling import tell
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]


@pytest.fixture
def viewer():
    return visiting(make.a_user("bob", role="viewer"))


@pytest.fixture
def cluster():
    return make.a_cluster("east")


def test_it_is_in_the_navigation_and_says_what_there_is(viewer, cluster):
    node = make.a_node(cluster, "gpu-1", gpus=2, pool=make.a_pool(cluster, "h200"))
    finding = make.a_finding(cluster, "GPU 1 of gpu-1", node=node, rule="gpu-silent", severity="critical")

    seen = page(viewer, "/gpus")

    assert "/gpus" in page(viewer, "/").links
    assert f"/findings?finding={finding.pk}" in seen.links
    assert "gpu-1 east 1 h200 NVIDIA-H200 whole nobody GPU is silent" in seen.text
    assert "gpu-1 east 0 h200 NVIDIA-H200 whole nobody none open" in seen.text
    assert "1–2 of 2" in seen.text


def test_who_holds_a_gpu_is_said_or_that_nobody_knows(viewer, cluster):
    node = make.a_node(cluster, "gpu-1", gpus=2)
    given = {"resources": {"nvidia.com/gpu": 1}, "is_tenant": True}
    make.a_pod(node, "lost", **given)

    assert "whole not known none open" in page(viewer, "/gpus").text

    Gpu.objects.filter(index=0).update(uuid="GPU-a")
    make.a_pod(node, "found", devices={"nvidia.com/gpu": ["GPU-a"]}, **given)

    assert "team-a/found" in page(viewer, "/gpus").text


def test_where_pods_were_never_read_nobody_is_said_to_hold_nothing(viewer, cluster):
    make.a_node(cluster, "gpu-1", gpus=1)
    Bookmark.objects.filter(kind="pods").delete()

    said = page(viewer, "/parts/gpus").text

    assert "whole no data none open" in said
    assert "nobody" not in said


def test_columns_are_chosen_and_the_head_sorts(viewer, cluster):
    make.a_node(cluster, "gpu-1", gpus=1)

    seen = page(viewer, "/parts/gpus?column=uuid&column=power")

    assert "Node GPU UUID Power gpu-1 east 0" in seen.text
    assert "?ordering=-power&column=uuid&column=power" in seen.links


def test_a_filter_by_what_exporters_say_is_on_the_page_with_its_column(viewer, cluster):
    make.a_node(cluster, "gpu-1", gpus=3)
    make.a_source(cluster, exported=["throttled_thermal", "nvlink_mib_per_s"])
    devices = [GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(2)]
    tell(cluster, *devices, xids={}, throttled_thermal=[12345.0, 0.0], nvlink_mib_per_s=[2048.0, 0.0])

    slowed = page(viewer, "/gpus?metric=throttled_thermal&column=nvlink_mib_per_s")
    never = page(viewer, "/gpus?metric=throttled_thermal&reading=never&column=uuid")
    nothing = page(viewer, "/gpus?metric=throttled_thermal&at_least=99999")

    assert "gpu-1 east 0 2.0 GiB/s yes" in slowed.text
    assert "1–1 of 1 that match, of 3" in slowed.text
    assert "?metric=throttled_thermal&ordering=-throttled_thermal&column=nvlink_mib_per_s" in slowed.links
    assert "12345" not in slowed.text
    assert "never seen No telemetry yet." in never.text
    assert "Without the value of its exporter : 3 GPUs" in nothing.text
    told = "1 GPU without a value of “Throttled by heat”: it is unknown whether it belongs here."
    assert told in slowed.text
    assert told in nothing.text
    assert "Nothing says" not in never.text


def test_pages_follow_one_another_and_one_too_far_is_the_last(viewer, cluster, monkeypatch):
    monkeypatch.setattr(gpus_page, "PER_PAGE", 2)
    make.a_node(cluster, "gpu-1", gpus=5)

    assert "1–2 of 5" in page(viewer, "/gpus?ordering=node").text
    assert "3–4 of 5" in page(viewer, "/gpus?ordering=node&page=2").text
    for number in ("9", "3"):
        assert "5–5 of 5" in page(viewer, f"/gpus?ordering=node&page={number}").text
    assert "1–2 of 5" in page(viewer, "/gpus?page=x").text


def test_a_filter_that_finds_nothing_says_what_less_of_it_would_find(viewer, cluster):
    make.a_node(cluster, "gpu-1", gpus=3)

    seen = page(viewer, "/gpus?q=gpu-1&product=none")

    assert "0 of 3 GPUs match." in seen.text
    assert "Without the product : 3 GPUs" in seen.text


@pytest.mark.parametrize("path", ["/", "/gpus"])
@pytest.mark.parametrize("name", ["pool", "cluster", "product"])
def test_a_filter_by_what_is_gone_shows_what_it_asks_for(viewer, cluster, path, name):
    make.a_node(cluster, "gpu-1", gpus=1)

    seen = viewer.get(f"{path}?{name}=renamed").content.decode()

    assert seen.count("<option selected>renamed</option>") == 1


def test_without_a_gpu_it_says_when_there_will_be_one(viewer):
    assert "No GPUs." in page(viewer, "/gpus").text


def test_too_much_is_a_sentence(viewer, cluster, monkeypatch):
    monkeypatch.setattr("health.gpus.selection.MOST_NODES", 0)
    monkeypatch.setattr(files, "MOST_ROWS", 0)
    make.a_pod(make.a_node(cluster, "gpu-1", gpus=1), is_tenant=True)

    assert "add a filter by cluster or pool" in page(viewer, "/gpus?namespace=team-a").text
    for path in ("/gpus.csv?namespace=team-a", "/gpus.json?namespace=team-a", "/gpus.csv"):
        refused = viewer.get(path)
        assert (refused.status_code, b"add a filter by cluster or pool" in refused.content) == (400, True)


def test_what_an_exporter_and_a_person_write_is_text(viewer, cluster):
    make.a_node(cluster, "gpu-1", gpus=1)
    make.a_source(cluster, exported=["xid"])
    tell(cluster, GpuDevice("gpu-1", 0, HOSTILE), xid=[79.0], xids={})

    assert page(viewer, "/gpus?column=uuid&column=xid").text.count("alert(1)") == 1
    assert "alert(1)" not in page(viewer, "/gpus?ordering=node").text
    page(viewer, "/gpus", status=200)


def test_an_unseen_cluster_is_marked(viewer):
    make.a_node(make.a_cluster("east", seen_at=None), "gpu-1", gpus=1)

    assert b"is-stale" in viewer.get("/parts/gpus").content


def test_it_costs_no_query_more_for_more_gpus(viewer, cluster, queries_of):
    make.a_source(cluster)
    first = make.a_node(cluster, "gpu-0", gpus=1, pool=make.a_pool(cluster))
    make.a_pod(first, is_tenant=True)
    make.a_finding(cluster, "GPU 0 of gpu-0", node=first)
    few = {path: queries_of(viewer, path) for path in ("/gpus", "/parts/gpus?ordering=-temperature&faults=1&q=g")}

    for number in range(1, 9):
        node = make.a_node(cluster, f"gpu-{number}", pool=make.a_pool(cluster))
        make.a_pod(node, is_tenant=True)
        make.a_finding(cluster, "GPU 0 of " + node.name, node=node)

    assert {path: queries_of(viewer, path) for path in few} == few
