"""Rollouts that others drive, over REST: read, and nothing else."""

import pytest

from tests import make
from tests.callers import ada, bob, eve, now  # noqa: F401 (fixtures)

pytestmark = pytest.mark.django_db
STATES = ("changed", "changed", "changing", "failed", "released", "held", "excluded")


@pytest.fixture
def rollout(now):  # noqa: F811
    return make.an_external_rollout(make.a_fleet("north", mode="follow"), *STATES)


def test_one_says_how_far_it_is_and_what_its_gates_say(rollout, bob):  # noqa: F811
    seen = bob.get(f"/api/v1/external-rollouts/{rollout.pk}").json()

    assert (seen["cluster"], seen["state"]) == ("north", "rolling")
    assert (seen["from_version"], seen["to_version"]) == ("570.172.08", "580.95.05")
    parts = {key: seen["progress"][key] for key in ("before", "held", "changing", "changed", "failed")}
    assert parts == {"before": 1, "held": 1, "changing": 1, "changed": 2, "failed": 1}
    assert sum(parts.values()) == seen["progress"]["total"]
    assert seen["progress"]["gone"] == 1
    assert [(gate["gate"], gate["answer"]) for gate in seen["gates"]] == [("driver_version", "wait")]
    assert (seen["why"], seen["advice"], seen["is_unproven"]) == ("580.95.05 runs on 1 of 2 nodes.", "", False)


def test_what_failed_and_is_over_is_said_of_one(rollout, bob):  # noqa: F811
    row = {"gate": "failure_budget", "since": make.NOON, "at": make.NOON, "is_current": False}
    for number in range(21):
        rollout.answers.create(answer="fail", title=f"gpu-{number} failed", **row)
    rollout.answers.create(answer="wait", title="Of an older version", **row)

    failed = bob.get(f"/api/v1/external-rollouts/{rollout.pk}").json()["failed_before"]

    assert [one["title"] for one in failed] == [f"gpu-{number} failed" for number in range(20, 0, -1)]


def test_its_nodes_are_listed_with_where_they_are(rollout, bob):  # noqa: F811
    nodes = bob.get(f"/api/v1/external-rollouts/{rollout.pk}/nodes").json()["results"]

    assert [node["state"] for node in nodes] == ["changed", "changed", "changing", "failed", "before", "held", "gone"]
    assert {node["is_known_before"] for node in nodes} == {False}


def test_they_are_listed_by_cluster_and_state_without_what_only_stands(rollout, bob):  # noqa: F811
    make.an_external_rollout(rollout.cluster, object_uid="other", state="standing")

    for query in ("", "?cluster=north", "?state=rolling"):
        assert [row["id"] for row in bob.get(f"/api/v1/external-rollouts{query}").json()["results"]] == [rollout.pk]
    assert bob.get("/api/v1/external-rollouts?state=replaced").json()["results"] == []
    assert bob.get("/api/v1/external-rollouts?state=standing").status_code == 400


def test_nobody_else_sees_it_and_nobody_writes_it(rollout, eve, ada):  # noqa: F811
    assert eve.get("/api/v1/external-rollouts").json()["results"] == []
    for place in ("", "/nodes"):
        assert eve.get(f"/api/v1/external-rollouts/{rollout.pk}{place}").status_code == 404
    for method in ("post", "patch", "put", "delete"):
        assert getattr(ada, method)(f"/api/v1/external-rollouts/{rollout.pk}", {}, format="json").status_code == 405
