"""Rehearsals over REST: who may request one, and what is listed."""

import pytest

from rollouts.models import Rehearsal
from rollouts.rehearsal.rehearsal_round import run_rehearsal
from tests.callers import calling
from tests.make import NOON, a_draft, a_plan, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def ask(client, plan, **body):
    return client.post(f"/api/v1/plans/{plan.pk}/rehearsals", body, format="json")


@pytest.fixture
def ada():
    return calling(a_user("ada", role="operator"))


def test_whoever_may_edit_the_draft_requests_one_and_reads_its_outcome(ada):
    plan = a_draft()

    reply = ask(ada, plan, fault="bad-driver", seed=3)
    run_rehearsal(reply.json()["id"], owner="worker-1", clock=lambda: NOON)
    (row,) = ada.get(f"/api/v1/plans/{plan.pk}/rehearsals").json()["results"]

    assert (reply.status_code, reply.json()["outcome"]) == (202, None)
    assert (row["fault"], row["seed"], row["revision"], row["asked_by"]) == ("bad-driver", 3, 1, "ada")
    assert row["outcome"]["rows"][0] == {"label": "Fault", "value": "The driver never becomes ready: 3 nodes of 3"}


def test_a_viewer_may_not_and_a_stranger_finds_none():
    plan = a_draft()

    assert ask(calling(a_user("bob", role="viewer")), plan).status_code == 403
    assert ask(calling(a_user("eve")), plan).status_code == 404
    assert not Rehearsal.objects.exists()


def test_an_unknown_fault_and_a_second_request_are_refused(ada):
    plan = a_draft()

    assert ask(ada, plan, fault="gremlins").status_code == 400
    assert ask(ada, plan).status_code == 202
    assert "in progress" in ask(ada, plan).json()["detail"]


def test_a_started_plan_is_not_rehearsed(ada):
    assert ask(ada, a_plan()).status_code == 409
