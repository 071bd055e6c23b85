import pytest

from fleet.messages import announce, wake
from fleet.models import Cluster
from tests.make import a_cluster


@pytest.fixture(autouse=True)
def _quiet(monkeypatch) -> None:
    monkeypatch.setattr(wake, "wake_observer", lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)


def post(client, cluster, **asked):
    return client.post(f"/api/v1/clusters/{cluster.pk}/acceptances", asked, format="json")


def test_an_admin_accepts_the_cluster_that_they_saw(root):
    cluster = a_cluster(foreign_uid="new")

    reply = post(root, cluster, uid="new", reason="Rebuilt.")

    assert reply.status_code == 204
    assert Cluster.objects.get().uid == "new"


def test_another_one_than_they_saw_is_a_conflict(root):
    cluster = a_cluster(foreign_uid="newer")

    reply = post(root, cluster, uid="new")

    assert (reply.status_code, reply.json()["type"]) == (409, "urn:quarterdeck:problem:cannot-accept")
    assert "has the UID newer, not new" in reply.json()["detail"]


def test_an_operator_may_not(ada):
    cluster = a_cluster(foreign_uid="new")

    assert post(ada, cluster, uid="new").status_code == 403
    assert Cluster.objects.get().foreign_uid == "new"


def test_a_stranger_does_not_find_it(eve):
    assert post(eve, a_cluster(foreign_uid="new"), uid="new").status_code == 404
