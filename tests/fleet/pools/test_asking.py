"""`approval: none` through every edge: page, REST, file, command."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.models import Pool
from fleet.models.pool import is_production
from people.models import AuditEntry
from tests.callers import ada, calling, now, root  # noqa: F401 (fixtures)
from tests.make import a_cluster, a_pool, a_user
from tests.pages import visiting

SELECTOR = "zone=a"


def patch(client, path: str, **asked):
    return client.patch(f"/api/v1/{path}", asked, format="json")


def test_rest_sets_a_cluster_and_keeps_who_and_why(root):  # noqa: F811
    cluster = a_cluster()

    reply = patch(root, f"clusters/{cluster.pk}", approval="none", reason="A lab.")

    assert (reply.status_code, reply.json()["approval"]) == (200, "none")
    entry = AuditEntry.objects.get(verb="cluster.approval")
    assert (entry.actor, entry.reason) == ("root", "A lab.")


def test_rest_wants_a_reason(root):  # noqa: F811
    assert patch(root, f"clusters/{a_cluster().pk}", approval="none", reason="").status_code == 400


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_set_it(db, now, role):  # noqa: F811
    cluster = a_cluster()

    reply = patch(calling(a_user(role=role)), f"clusters/{cluster.pk}", approval="none", reason="Faster.")

    assert reply.status_code == 403
    cluster.refresh_from_db()
    assert cluster.approval == "required"


def test_rest_refuses_it_for_a_pool_of_production(root):  # noqa: F811
    pool = a_pool(a_cluster(), environment="production")

    reply = patch(root, f"pools/{pool.pk}", approval="none")

    assert (reply.status_code, reply.json()["type"]) == (409, "urn:quarterdeck:problem:production-asks")


def test_the_page_sets_a_cluster(db, now):  # noqa: F811
    cluster = a_cluster()
    admin = visiting(a_user(role="admin"))

    admin.post(f"/clusters/{cluster.pk}/approval", {"approval": "none", "reason": "A lab."})
    admin.post(f"/clusters/{cluster.pk}/approval", {"approval": "required", "reason": " "})

    cluster.refresh_from_db()
    assert cluster.approval == "none"


def test_what_was_written_of_a_cluster_and_is_refused_comes_back_once(db, now):  # noqa: F811
    cluster = a_cluster()
    a_pool(cluster, environment="production")
    admin, path = visiting(a_user(role="admin")), f"/clusters/{cluster.pk}"

    admin.post(f"{path}/approval", {"approval": "none", "reason": "A lab."})
    shown, again = (admin.get(path).content.decode() for _ in range(2))

    assert "is production" in shown
    assert "required autofocus>A lab.</textarea>" in shown
    assert '<option value="none" selected>' in shown
    assert "A lab." not in again
    assert '<option value="required" selected>' in again


def test_the_page_of_an_operator_does_not(db, now):  # noqa: F811
    cluster = a_cluster()

    visiting(a_user(role="operator")).post(f"/clusters/{cluster.pk}/approval", {"approval": "none", "reason": "x"})

    cluster.refresh_from_db()
    assert cluster.approval == "required"


def test_a_file_carries_it_there_and_back(root):  # noqa: F811
    cluster = a_cluster("north")
    text = f"pools:\n- name: lab\n  selector: {SELECTOR}\n  approval: none\n"

    reply = root.post("/api/v1/pool-files", {"cluster": cluster.pk, "text": text, "dry_run": False}, format="json")

    assert reply.status_code in {200, 201, 204}, reply.json()
    assert Pool.objects.get().approval == "none"


def test_a_file_does_not_take_production_over_unasked(root):  # noqa: F811
    cluster = a_cluster("north")
    text = f"pools:\n- name: p\n  selector: {SELECTOR}\n  environment: production\n  approval: none\n"

    reply = root.post("/api/v1/pool-files", {"cluster": cluster.pk, "text": text, "dry_run": False}, format="json")

    assert reply.status_code == 409
    assert not Pool.objects.exists()


@given(st.text(max_size=63))
@example("production")
def test_what_says_production_says_it_in_any_case(text):
    assert is_production(text) == is_production(text.upper().lower()) or not text.isascii()


@pytest.mark.parametrize("text", ["", "staging", "reproduction", "deliver", "development"])
def test_other_words_are_not_production(text):
    assert not is_production(text)
