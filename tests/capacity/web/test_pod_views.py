"""Saved views of the list of GPU pods."""

import pytest

from health.models import SavedView
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def test_a_view_is_saved_shown_and_deleted():
    bob = make.a_user("bob", role="viewer")
    viewer = visiting(bob)

    viewer.post("/pods/views", {"name": "waiting", "query": "state=pending&ordering=-gpus&page=3&next=//evil"})

    view = SavedView.objects.get()
    assert (view.table, view.name, view.query) == ("pods", "waiting", "state=pending&ordering=-gpus")
    assert "/pods?state=pending&ordering=-gpus" in page(viewer, "/pods").links
    viewer.post(f"/pods/views/{view.pk}/forget")
    assert not SavedView.objects.exists()


def test_views_of_tables_and_people_are_apart():
    bob, eve = make.a_user("bob", role="viewer"), make.a_user("eve", role="viewer")
    for table in ("gpus", "pods"):
        bob.saved_views.create(table=table, name="mine", query="cluster=east", saved_at=NOON)

    of_pods, of_gpus = (calling(bob).get(f"/api/v1/{kind}-views").json()["results"] for kind in ("pod", "gpu"))

    assert [view["page"] for view in of_pods] == ["/pods?cluster=east"]
    assert [view["page"] for view in of_gpus] == ["/gpus?cluster=east"]
    assert calling(eve).get("/api/v1/pod-views").json()["results"] == []
    assert calling(bob).delete(f"/api/v1/gpu-views/{of_pods[0]['id']}").status_code == 404
    assert calling(bob).delete(f"/api/v1/pod-views/{of_pods[0]['id']}").status_code == 204


def test_a_name_that_is_none_is_refused():
    bob = make.a_user("bob", role="viewer")

    assert "A view needs a name" in visiting(bob).post("/pods/views", {"name": " "}, follow=True).content.decode()
    assert calling(bob).post("/api/v1/pod-views", {"name": "x" * 61}, format="json").status_code == 400
