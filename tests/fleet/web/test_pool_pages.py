import re

import pytest

from edges.transition_errors import LostRace
from fleet.models import Cluster, Pool
from fleet.pools.changes import change_pool
from fleet.web import pool_file_page, pool_form, pool_page
from people.models import AuditEntry
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]

H200 = "nvidia.com/gpu.product=NVIDIA-H200"


@pytest.fixture
def admin():
    return visiting(make.a_user("root", role="admin"))


@pytest.fixture
def viewer():
    return visiting(make.a_user("bob", role="viewer"))


def filled(cluster, **given) -> dict[str, str]:
    return {
        "in": cluster.pk,
        "name": "h200",
        "selector": H200,
        "workload_class": "mixed",
        "max_unavailable": "1",
        **given,
    }


def seen_in(response) -> str:
    return response.context["preview"].fingerprint


def was_in(response) -> str:
    return re.search(r'name="was" value="(\w+)"', response.content.decode())[1]


def test_a_new_pool_is_shown_before_it_is_made(admin):
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1")

    shown = admin.post("/pools/new", filled(cluster))

    assert shown.status_code == 200
    assert "1 node enters" in " ".join(shown.content.decode().split())
    assert not Pool.objects.exists()

    made = admin.post("/pools/new", filled(cluster, seen=seen_in(shown)))

    pool = Pool.objects.get()
    assert made["Location"] == f"/pools/{pool.pk}"
    assert [node.name for node in pool.nodes.all()] == ["gpu-1"]
    assert AuditEntry.objects.get().actor == "root"


def test_a_selector_may_be_pasted_over_several_lines(admin):
    cluster = make.a_cluster()
    make.a_node(cluster)

    shown = admin.post("/pools/new", filled(cluster, selector=f"{H200},\r\n  !spot\r\n"))
    admin.post("/pools/new", filled(cluster, selector=f"{H200},\r\n  !spot\r\n", seen=seen_in(shown)))

    assert Pool.objects.get().selector == f"{H200}, !spot"


def test_what_would_happen_is_shown_again_when_it_is_no_longer_that(admin):
    cluster = make.a_cluster()
    make.a_node(cluster)
    shown = admin.post("/pools/new", filled(cluster))
    make.a_node(cluster)

    late = admin.post("/pools/new", filled(cluster, seen=seen_in(shown)))

    assert late.status_code == 409
    assert b"The nodes changed since the preview" in late.content
    assert not Pool.objects.exists()


def test_an_edit_says_who_leaves_and_with_whom_it_shares(admin):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, "h200")
    other = make.a_pool(cluster, "other")
    make.a_node(cluster, "stays", pool=pool, labels={"zone": "a"}).pools.add(other)
    make.a_node(cluster, "leaves", pool=pool, labels={"zone": "b"})

    shown = admin.post(f"/pools/{pool.pk}/edit", filled(cluster, selector="zone=a"))

    words = " ".join(shown.content.decode().split())
    assert "1 node leaves" in words
    assert "1 of them would be in no pool" in words
    assert "other: 1 node" in words


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("selector", "zone in a,b", "is not a label selector"),
        ("selector", " , ", "every node of its cluster"),
        ("name", "two words", "Letters, digits"),
        ("max_unavailable", "0", "greater than or equal to 1"),
        ("price_per_gpu_hour", "-1", "greater than or equal to 0"),
        ("workload_class", "mining", "not one of the available choices"),
        ("in", "", "Choose the cluster"),
    ],
)
def test_what_cannot_be_is_said_and_what_was_typed_stays(admin, field, value, words):
    cluster = make.a_cluster()
    make.a_cluster()

    refused = admin.post("/pools/new", filled(cluster, environment="my environment", **{field: value}))

    assert refused.status_code == 400
    assert words in refused.content.decode()
    assert "my environment" in refused.content.decode()
    assert not Pool.objects.exists()


def test_a_name_that_is_taken_is_said_beside_the_name(admin):
    cluster = make.a_cluster("east")
    make.a_pool(cluster, "h200")
    shown = admin.post("/pools/new", filled(cluster))

    refused = admin.post("/pools/new", filled(cluster, seen=seen_in(shown)))

    assert refused.status_code == 409
    assert "Cluster east already has a pool h200." in refused.content.decode()


def test_what_somebody_else_changed_meanwhile_is_not_undone_unseen(admin):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, "h200")
    path = f"/pools/{pool.pk}/edit"
    asked = filled(cluster, environment="my <environment>", was=was_in(admin.get(path)))
    seen = seen_in(shown := admin.post(path, asked))
    change_pool(pool, actor="bob", now=NOON, max_unavailable=5)

    late = admin.post(path, {**asked, "seen": seen})

    pool.refresh_from_db()
    assert (late.status_code, pool.max_unavailable, pool.environment) == (409, 5, "")
    assert was_in(shown) == asked["was"]
    assert "Somebody changed it after you opened this form." in late.content.decode()
    assert "max unavailable 5" in late.content.decode()
    assert "my &lt;environment&gt;" in late.content.decode()
    admin.post(path, {**asked, "seen": seen, "was": was_in(late)})
    pool.refresh_from_db()
    assert (pool.max_unavailable, pool.environment) == (1, "my <environment>")


def test_a_list_of_changes_says_that_it_is_not_all(admin, monkeypatch):
    pool = make.a_pool(make.a_cluster(), "h200")
    for number in range(3):
        change_pool(pool, actor="bob", now=NOON, max_unavailable=number + 2)

    assert "Changes of the pool the last" not in page(admin, f"/pools/{pool.pk}").text
    monkeypatch.setattr(pool_page, "CHANGES", 2)
    assert "Changes of the pool the last 2" in page(admin, f"/pools/{pool.pk}").text


def test_a_pool_is_deleted_after_a_look(admin):
    pool = make.a_pool(make.a_cluster())
    make.a_node(pool.cluster, "gpu-1", pool=pool)

    shown = admin.get(f"/pools/{pool.pk}/delete")
    unseen = admin.post(f"/pools/{pool.pk}/delete")
    deleted = admin.post(f"/pools/{pool.pk}/delete", {"seen": seen_in(shown)})

    assert b"gpu-1" in shown.content
    assert unseen.status_code == 409
    assert deleted["Location"] == "/pools"
    assert not Pool.objects.exists()


@pytest.mark.parametrize(("act", "page_of"), [("change_pool", "edit"), ("delete_pool", "delete")])
def test_a_pool_that_goes_meanwhile_is_said(admin, monkeypatch, act, page_of):
    cluster = make.a_cluster()
    pool, truly = make.a_pool(cluster, "h200"), getattr(pool_form, act)
    path = f"/pools/{pool.pk}/{page_of}"
    asked = filled(cluster) if page_of == "edit" else {}
    seen = seen_in(admin.post(path, asked) if page_of == "edit" else admin.get(path))

    def late(found, **given):
        Pool.objects.filter(pk=pool.pk).delete()
        return truly(found, **given)

    monkeypatch.setattr(pool_form, act, late)
    reply = admin.post(path, {**asked, "seen": seen})

    assert reply.status_code == 409
    assert b"Somebody has deleted pool h200 since you read it." in reply.content


def test_a_pool_that_somebody_changed_and_then_deleted_is_gone(admin, monkeypatch):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, "h200")
    path, asked = f"/pools/{pool.pk}/edit", filled(cluster)
    seen = seen_in(admin.post(path, asked))

    def late(*_, **__):
        Pool.objects.filter(pk=pool.pk).delete()
        raise LostRace("Somebody changed its selector.")

    monkeypatch.setattr(pool_form, "change_pool", late)
    reply = admin.post(path, {**asked, "seen": seen})

    assert reply.status_code == 409
    assert "The pool no longer exists, or you may not see it" in reply.content.decode()


def test_what_was_written_for_a_pool_that_is_gone_can_be_saved_as_another(admin, viewer):
    cluster, other = make.a_cluster("east"), make.a_cluster("west")
    pool = make.a_pool(cluster, "h200")
    path, asked = f"/pools/{pool.pk}/edit", filled(cluster, name="h200-b", selector="zone in (a, b)")
    Pool.objects.all().delete()

    reply = admin.post(path, asked)

    html = reply.content.decode()
    seen = Page(html)
    assert reply.status_code == 409
    assert "The pool no longer exists, or you may not see it" in seen.text
    assert 'value="h200-b"' in html
    assert "zone in (a, b)</textarea>" in html
    assert 'action="/pools/new"' in html
    assert f'<option value="{cluster.pk}">east</option><option value="{other.pk}">west</option>' in html
    assert viewer.post(path, asked).status_code == admin.get(path).status_code == 404


def test_a_file_that_its_cluster_forbids_meanwhile_is_refused_in_a_sentence(admin, monkeypatch):
    make.a_cluster("east")
    text = "pools:\n- name: h200\n  selector: zone=b\n  environment: production"
    asked, truly = {"text": text}, pool_file_page.take_over
    seen = admin.post("/pools/file", asked).context["comparison"].fingerprint

    def late(*given, **more):
        Cluster.objects.update(approval="none")
        return truly(*given, **more)

    monkeypatch.setattr(pool_file_page, "take_over", late)
    reply = admin.post("/pools/file", {**asked, "seen": seen})

    assert reply.status_code == 409
    assert "Pool h200 is production, and east has “approval: none”." in reply.content.decode()
    assert not Pool.objects.exists()


def test_a_pool_with_a_history_cannot_be_deleted(admin):
    pool = make.a_draft(make.a_fleet()).cluster.pools.get()

    shown = page(admin, f"/pools/{pool.pk}/delete")

    assert "A pool with a history stays." in shown.text
    assert admin.post(f"/pools/{pool.pk}/delete", {"seen": "x"}).status_code == 409


def test_a_viewer_sees_and_changes_nothing(viewer):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, "h200")

    for path in (f"/pools/{pool.pk}/edit", "/pools/new"):
        assert viewer.post(path, filled(cluster, name="changed", seen="x")).status_code == 403
    assert viewer.post(f"/pools/{pool.pk}/delete", {"seen": "x"}).status_code == 403
    assert viewer.post("/pools/file", {"text": "pools: []", "seen": "x"}).status_code == 403
    assert Pool.objects.get().name == "h200"
    assert "you need the role admin" in viewer.get(f"/pools/{pool.pk}").content.decode()


def test_who_may_not_delete_a_pool_is_not_shown_who_has_which_role_on_it(admin):
    pool = make.a_pool(make.a_cluster(), "h200")
    make.a_user("zelda", role="operator", on=pool)
    path = f"/pools/{pool.pk}/delete"

    assert "zelda (operator)" in page(admin, path).text
    assert "zelda" not in page(visiting(make.a_user("vic", role="viewer", on=pool)), path).text


def test_a_stranger_finds_nothing():
    pool = make.a_pool(make.a_cluster(), "secret")
    stranger = visiting(make.a_user("eve"))

    for path in ("", "/edit", "/delete"):
        assert stranger.get(f"/pools/{pool.pk}{path}").status_code == 404
    assert "secret" not in stranger.get("/pools").content.decode()


def test_a_form_of_another_site_is_refused(admin):
    cluster = make.a_cluster()
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies

    assert strict.post("/pools/new", filled(cluster)).status_code == 403


def test_the_page_of_a_pool(viewer):
    cluster = make.a_cluster("east")
    pool = make.a_pool(cluster, "h200", environment="production", price_per_gpu_hour="2.5", max_unavailable=3)
    make.a_node(cluster, pool=pool, kernel="6.8.0-60-generic", shares_expected=16, shares_allocatable=16)
    make.a_node(cluster, pool=pool, kernel="6.8.0-71-generic", is_ready=False)
    make.a_node(cluster, pool=pool, is_gpu_node=False, gpus=0)

    seen = page(viewer, f"/pools/{pool.pk}")

    for words in ("2 GPU nodes", "1 not ready", "1 without GPUs", "16 GPUs", "0 of 16 whole GPUs allocated",
                  "0 of 16 shares allocated", "production",
                  "3 nodes at once", "40.00 an hour", "6.8.0-60-generic ×1", "6.8.0-71-generic ×1"):  # fmt: skip
        assert words in seen.text, words
    assert "/?pool=east/h200&kernel=6.8.0-71-generic#nodes" in seen.links


def test_gpus_that_nobody_has_counted_are_neither_none_nor_priced(admin):
    cluster = make.a_cluster("east")
    pool = make.a_pool(cluster, "h200", price_per_gpu_hour="2.5")
    make.a_node(cluster, "gpu-1", pool=pool, gpus=0)
    unknown = Page(admin.post(f"/pools/{pool.pk}/edit", filled(cluster)).content.decode()).text
    make.a_node(cluster, "gpu-2", pool=pool)
    some = Page(admin.post(f"/pools/{pool.pk}/edit", filled(cluster)).content.decode()).text

    assert "What it would have: 1 node, with GPUs not counted" in unknown
    assert "0 GPUs" not in unknown
    assert "What it would have: 2 nodes, 8 GPUs, 1 node with GPUs not counted" in some
    assert "at least 20.00 an hour for the whole pool" in page(admin, f"/pools/{pool.pk}").text


def test_gpus_that_nobody_has_counted_are_not_suggested_as_none(admin):
    cluster = make.a_cluster("east")
    make.a_node(cluster, gpus=0)
    unknown = page(admin, "/parts/pools/suggestions").text
    make.a_node(cluster)
    some = page(admin, "/parts/pools/suggestions").text

    assert "1 node with NVIDIA-H200. 1 1 – 1 node not counted" in unknown
    assert "2 nodes with NVIDIA-H200. 2 2 8 1 node not counted" in some


def test_pages_of_nothing_say_what_to_do(admin, viewer):
    cluster = make.a_cluster("east")

    assert "No pools yet." in page(admin, "/pools").text
    assert "no GPU node is seen yet" in page(admin, "/parts/pools/suggestions").text
    assert "No GPU node." in page(viewer, "/segments").text
    pool = make.a_pool(cluster)
    assert "Its selector picks none of east" in page(viewer, f"/pools/{pool.pk}").text
    assert "You have no role yet." in page(visiting(make.a_user("new")), "/pools").text
    assert "You have no role yet." in page(visiting(make.a_user("newer")), "/segments").text


@pytest.mark.parametrize("path", ["/pools", "/pools/{pool}", "/segments", "/parts/segments", "/parts/pools"])
def test_a_page_costs_the_same_queries_whatever_the_size(viewer, queries_of, path):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster)
    make.a_node(cluster, pool=pool)
    path = path.format(pool=pool.pk)
    small = queries_of(viewer, path)
    for number in range(5):
        there = make.a_cluster()
        make.a_node(there, pool=make.a_pool(there), kernel=str(number))
        make.a_node(cluster, pool=pool, kernel=str(number), zone=str(number))

    assert queries_of(viewer, path) == small <= 32


def test_what_clusters_write_is_shown_as_text(admin):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, environment=HOSTILE[:63])
    make.a_node(cluster, pool=pool, kernel=HOSTILE, zone=HOSTILE[:64], gpu_product=HOSTILE, driver_version=HOSTILE[:64])

    for path in ("/segments", "/pools", f"/pools/{pool.pk}", "/parts/pools/suggestions", f"/segments?kernel={HOSTILE}"):
        assert "<script>alert" not in admin.get(path).content.decode(), path
        page(admin, path)
