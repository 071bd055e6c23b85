"""Freezes and the stop over REST: who may, where, and what is said."""

from datetime import timedelta

import pytest

from operations.models import Freeze
from tests.callers import calling
from tests.make import NOON, a_fleet, a_plan, a_pool, a_user, give

LATER = (NOON + timedelta(hours=68)).isoformat()


def post(client, path: str, *, key: str = "", **asked):
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(f"/api/v1/{path}", {"reason": "quarter end", **asked}, format="json", headers=headers)


def test_the_fleet_is_frozen_and_every_plan_says_so(ada):
    plan = a_plan(a_fleet())

    reply = post(ada, "freezes", until=LATER)

    assert reply.status_code == 201
    said = reply.json()
    assert said["sentence"].startswith("The fleet is frozen by ada until ")
    assert (said["cluster"], said["pool"], said["is_in_force"], said["is_stop"]) == (None, None, True, False)
    assert ada.get(f"/api/v1/plans/{plan.pk}").json()["why"] == said["sentence"]


def test_a_pool_is_frozen_by_its_id_alone(ada):
    pool = a_plan(a_fleet("north")).cluster.pools.get()

    said = post(ada, "freezes", pool=pool.pk).json()

    assert said["sentence"] == "Pool north/h200 is frozen by ada: quarter end."
    assert said["cluster"]["name"] == "north"


def test_what_it_would_hold_back_is_shown_before(ada):
    plan = a_plan()

    (bound,) = ada.post("/api/v1/freeze-previews", {"cluster": plan.cluster_id}, format="json").json()

    assert (bound["plan"], bound["is_bound"], bound["to_go"]) == (plan.pk, True, 3)
    assert bound["sentence"] == "3 nodes stay held."
    assert not Freeze.objects.exists()


def test_a_freeze_is_lifted_with_a_reason(ada):
    freeze = post(ada, "freezes").json()["id"]

    assert post(ada, f"freezes/{freeze}/lifts", reason="").status_code == 400
    assert post(ada, f"freezes/{freeze}/lifts", reason="It is over.").status_code == 204
    late = post(ada, f"freezes/{freeze}/lifts")

    assert late.status_code == 409
    assert late.json()["detail"] == "ada has already lifted the freeze. It cannot be lifted again."
    assert ada.get(f"/api/v1/freezes/{freeze}").json()["ended_reason"] == "It is over."


def test_the_same_key_freezes_once(ada):
    first, again = (post(ada, "freezes", key="k1").json()["id"] for _ in range(2))

    assert first == again


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"until": NOON.isoformat()}, "until"),
        ({"until": "tomorrow"}, "until"),
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 1001}, "reason"),
        ({"scope": "fleet"}, "scope"),
    ],
)
def test_what_cannot_be_is_refused_with_the_name_of_its_field(ada, asked, field):
    reply = post(ada, "freezes", **asked)

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == field
    assert not Freeze.objects.exists()


def test_a_pool_of_another_cluster_is_no_place(ada):
    pool = a_pool(a_fleet(), "x")

    assert post(ada, "freezes", cluster=a_fleet().pk, pool=pool.pk).status_code == 400


def test_the_stop_needs_a_reason_and_a_confirmation(ada):
    assert post(ada, "stop", confirm=False).json()["errors"][0]["field"] == "confirm"
    assert post(ada, "stop", confirm=True, reason="").status_code == 400
    assert ada.get("/api/v1/stop").json() == {"in_force": None}

    reply = post(ada, "stop", confirm=True, reason="Smoke.")

    assert reply.status_code == 201
    assert ada.get("/api/v1/stop").json()["in_force"]["sentence"] == "The fleet is stopped by ada: Smoke."


def test_who_stops_what_is_stopped_is_told_by_whom(ada, amy):
    post(amy, "stop", confirm=True, reason="Smoke.")

    reply = post(ada, "stop", confirm=True)

    assert reply.status_code == 409
    assert reply.json()["detail"] == "The fleet is already stopped. The fleet is stopped by amy: Smoke."


def test_an_approver_may_stop_the_fleet_and_not_let_it_go_on(amy, ada):
    assert post(amy, "stop", confirm=True).status_code == 201
    assert post(amy, "stop/lifts").status_code == 403
    assert post(ada, "stop/lifts").status_code == 204
    assert post(ada, "stop/lifts").status_code == 409


def test_who_may(nobody, eve, bob, ada):
    freeze = post(ada, "freezes").json()["id"]
    paths = ["freezes", "stop", "stop/lifts", "freeze-previews", f"freezes/{freeze}/lifts"]

    assert [post(nobody, path).status_code for path in paths] == [401] * 5
    assert [post(eve, path).status_code for path in paths] == [403, 403, 403, 403, 404]
    assert [post(bob, path).status_code for path in paths] == [403] * 5
    assert eve.get("/api/v1/freezes").json()["count"] == 0
    assert eve.get("/api/v1/stop").status_code == 404
    assert bob.get("/api/v1/freezes").json()["count"] == 1
    assert Freeze.objects.count() == 1


def test_an_operator_of_one_cluster_freezes_that_and_nothing_else(now, db):
    mine, other = a_fleet(), a_fleet()
    client = calling(give(a_user("cid", role="operator", on=mine), "viewer", on=other))

    assert post(client, "freezes", cluster=mine.pk).status_code == 201
    refused = post(client, "freezes", cluster=other.pk)
    assert refused.status_code == 403
    assert f"on cluster {other.name}" in refused.json()["detail"]
    assert post(client, "freezes").status_code == 403
    assert post(client, "stop", confirm=True).status_code == 403


def test_an_operator_of_one_pool_freezes_that_pool(now, db):
    cluster = a_fleet("north")
    mine, other = cluster.pools.get(), a_pool(cluster, "other")
    client = calling(a_user("pia", role="operator", on=mine))

    assert post(client, "freezes", pool=mine.pk).status_code == 201
    assert post(client, "freezes", pool=other.pk).status_code == 404
    assert post(client, "freezes", cluster=cluster.pk).status_code == 403


def test_everybody_sees_what_binds_them_and_not_what_binds_others(ada, now, db):
    north, south = a_fleet("north"), a_fleet("south")
    for where in ({}, {"cluster": north.pk}, {"cluster": south.pk}, {"pool": south.pools.get().pk}):
        post(ada, "freezes", **where)
    viewer = calling(a_user("vic", role="viewer", on=north.pools.get()))

    shown = [row["sentence"].partition(" is frozen")[0] for row in viewer.get("/api/v1/freezes").json()["results"]]

    assert shown == ["Cluster north", "The fleet"]


def test_those_that_bind_now_can_be_asked_for(ada):
    over = post(ada, "freezes").json()["id"]
    post(ada, f"freezes/{over}/lifts")
    standing = post(ada, "freezes").json()["id"]

    found = ada.get("/api/v1/freezes?is_in_force=true").json()["results"]

    assert [row["id"] for row in found] == [standing]
