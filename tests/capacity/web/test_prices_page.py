"""The page of prices, and the same in REST."""

import pytest

from capacity.models import GpuPrice
from tests import make
from tests.callers import calling
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
GIVEN = {"product": "NVIDIA-H100", "amount": "2.5", "currency": "EUR", "valid_from": "2026-11-01", "source": "<b>"}


@pytest.fixture(autouse=True)
def node():
    return make.a_node(make.a_cluster("east"), "gpu-1", gpu_product="NVIDIA-H100")


def test_an_admin_adds_and_removes_a_price_and_a_viewer_reads_it():
    admin, viewer = (visiting(make.a_user(name, role=name)) for name in ("admin", "viewer"))

    assert admin.post("/usage/prices", GIVEN).status_code == 302
    row = GpuPrice.objects.get()
    assert "NVIDIA-H100 any 2.5 EUR <b>" in " ".join(page(viewer, "/usage/prices").text.split())
    assert viewer.post("/usage/prices", GIVEN).status_code == 403
    assert viewer.post(f"/usage/prices/{row.pk}/remove").status_code == 403
    assert admin.post("/usage/prices", GIVEN | {"amount": "-1"}).status_code == 400
    assert admin.post(f"/usage/prices/{row.pk}/remove").status_code == 302
    assert not GpuPrice.objects.exists()


def test_rest_has_the_same(node):
    pool = make.a_pool(node.cluster, "h100")
    admin, viewer = (calling(make.a_user(name, role=name)) for name in ("admin", "viewer"))
    body = {"pool_id": pool.pk, "amount": "0", "valid_from": "2026-11-01"}

    created = admin.post("/api/v1/usage/prices", body, content_type="application/json")

    assert created.status_code == 201
    assert [row["pool"] for row in viewer.get("/api/v1/usage/prices").json()] == ["east/h100"]
    assert viewer.post("/api/v1/usage/prices", body, content_type="application/json").status_code == 403
    bad = admin.post("/api/v1/usage/prices", body | {"amount": "-1"}, content_type="application/json")
    assert (bad.status_code, "amount" in str(bad.json())) == (400, True)
    key = created.json()["id"]
    assert viewer.delete(f"/api/v1/usage/prices/{key}").status_code == 403
    assert admin.delete(f"/api/v1/usage/prices/{key}").status_code == 204


def shown_price(user, pool) -> str:
    text = page(visiting(user), f"/pools/{pool.pk}").text
    return text[text.index("Price of a GPU-hour") : text.index(" Prices", text.index("Price of a GPU-hour"))]


def test_the_page_of_a_pool_and_rest_have_the_price_that_reports_use_today(node):
    pool = make.a_pool(node.cluster, "mixed")
    node.pools.add(pool)
    admin, bob = make.a_user("admin", role="admin"), make.a_user("bob", role="viewer")
    rest = calling(bob)

    def put(**given):
        reply = calling(admin).post("/api/v1/usage/prices", given, content_type="application/json")
        assert reply.status_code == 201, reply.json()

    assert shown_price(bob, pool).startswith("Price of a GPU-hour – · no price")
    put(product="NVIDIA-H100", amount="2.5", currency="EUR", valid_from="2026-01-02")
    assert shown_price(bob, pool) == (
        "Price of a GPU-hour 2.5 EUR · 20.00 EUR an hour for the whole pool"
        " · price of its product since 2026-01-02 · NVIDIA-H100: 2.5 EUR"
    )

    node.pools.add(other := make.a_pool(node.cluster, "other"))
    make.a_node(node.cluster, "gpu-2", pool=pool, gpu_product="NVIDIA-L4")
    assert "differs by product" in shown_price(bob, pool)
    assert "NVIDIA-H100: 2.5 EUR · NVIDIA-L4: no price" in shown_price(bob, pool)
    found = rest.get(f"/api/v1/pools/{pool.pk}/price").json()
    assert (found["amount"], found["is_own"]) == (None, False)
    assert [(row["product"], row["amount"]) for row in found["in_force"]] == [
        ("NVIDIA-H100", "2.5000"), ("NVIDIA-L4", None),
    ]  # fmt: skip

    put(pool_id=pool.pk, amount="0", valid_from="2026-01-03")
    assert "0 · 0.00 an hour for the whole pool · its own price since 2026-01-03" in shown_price(bob, pool)
    found = rest.get(f"/api/v1/pools/{pool.pk}/price").json()
    assert (found["amount"], found["currency"], found["is_own"], found["gpus"]) == ("0.0000", "", True, 16)
    eve = make.a_user("eve", role="viewer", on=other)
    assert calling(eve).get(f"/api/v1/pools/{pool.pk}/price").status_code == 404
