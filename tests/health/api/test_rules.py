"""Rules in REST: what the page of a rule shows and does."""

import math
from array import array

import pytest

from health.models import PoolLimits, RuleShadow
from health.sources import snapshots
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(now):
    return make.a_pool(make.a_cluster("eu-1"), "h100")


def post(caller, path, body):
    return caller.post(f"/api/v1/{path}", body, format="json")


def rule(caller, key: str) -> dict:
    return next(row for row in caller.get("/api/v1/rules").json() if row["rule"] == key)


def test_every_rule_is_told_with_its_limits(bob, now):
    hot, xid = rule(bob, "gpu-hot"), rule(bob, "gpu-xid")

    assert hot["limits"] == {
        "warn": 83.0, "critical": 85.0, "warn_after_s": 300.0, "critical_after_s": 300.0, "unit": "°C", "by_class": "",
    }  # fmt: skip
    assert rule(bob, "pods-pending-long")["limits"]["by_class"].startswith("Its own, in minutes")
    assert (hot["after_s"], hot["shadow"], xid["limits"]) == (300.0, None, None)


def test_a_rule_names_the_clusters_in_which_nothing_that_it_reads_is_exported(bob, now, redis):
    by_prometheus, by_exporters, silent = (make.a_cluster(name) for name in ("prod", "west", "z-silent"))
    for cluster in (by_prometheus, by_exporters, silent):
        make.a_node(cluster)
    make.a_source(by_prometheus, exported=["temperature_celsius"])
    make.a_source(silent, state="silent", exported=["temperature_celsius"])
    make.an_exporter_round(by_exporters, read_at=NOON, answered=1)
    snapshots.store(by_exporters.pk, TelemetryReading(TelemetrySnapshot(NOON.timestamp(), ()), frozenset({"xid"}), {}))
    make.a_source(make.a_cluster("without-gpus"), exported=["xid"])
    make.a_cluster("without-a-source")

    assert {key: rule(bob, key)["blind_in"] for key in ("gpu-hot", "gpu-xid", "gpu-dcgm-health", "gpu-silent")} == {
        "gpu-hot": ["west"],
        "gpu-xid": ["prod"],
        "gpu-dcgm-health": ["prod", "west"],
        "gpu-silent": [],
    }
    assert rule(bob, "node-not-ready")["blind_in"] == rule(bob, "node-not-ready")["seen_in"] == []


def test_a_rule_says_on_how_many_nodes_of_a_cluster_it_sees_something(bob, now, redis):
    cluster = make.a_cluster("prod")
    for number in range(4):
        make.a_node(cluster, f"gpu-{number}")
    devices = tuple(GpuDevice(f"gpu-{number}", 0, f"GPU-{number}") for number in range(3))
    times = array("d", [NOON.timestamp(), math.nan, math.nan])
    snapshots.forget(cluster.pk)
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices, {"xid": MetricColumn(times[:], times)})
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset({"xid"}), {}))
    make.a_source(cluster, exported=["xid"])

    told = rule(bob, "gpu-xid")

    nodes = {"exported": 1, "not_exported": 2, "never_reported": 1}
    assert (told["blind_in"], told["seen_in"]) == ([], [{"cluster": "prod", "nodes": nodes}])
    assert bob.get("/api/v1/telemetry-sources").json()["results"][0]["nodes"]["xid"] == nodes


def test_a_rule_on_gpus_names_the_clusters_of_whose_gpus_nothing_has_telemetry(bob, now):
    """A source that is silent, or none: what is not found there is not well there."""
    answering, silent, without = (make.a_cluster(name) for name in ("prod", "z-silent", "west"))
    for cluster in (answering, silent, without):
        make.a_node(cluster)
    make.a_source(answering, exported=["temperature_celsius"])
    make.a_source(silent, state="silent", exported=["temperature_celsius"])
    make.a_cluster("without-gpus")

    assert rule(bob, "gpu-hot")["silent_in"] == ["west", "z-silent"]
    assert rule(bob, "node-not-ready")["silent_in"] == []


def test_a_rule_on_trial_is_marked_and_its_findings_are_told_only_to_who_asks_for_them(root, bob, pool):
    make.a_finding(pool.cluster, rule="gpu-hot", opened_at=NOON)

    begun = post(root, "rule-shadows", {"rule": "gpu-hot", "reason": "New here."})

    assert begun.status_code == 201
    assert rule(bob, "gpu-hot")["shadow"]["by"] == "root"
    assert (rule(bob, "gpu-hot")["open"], rule(bob, "gpu-hot")["would_notify"]) == (0, 1)
    (before,) = bob.get("/api/v1/findings").json()["results"]
    assert (before["state"], before["resolved_reason"]) == ("resolved", "its rule entered shadow mode")
    assert bob.get("/api/v1/findings?is_shadow=true").json()["results"][0]["is_shadow"] is True
    again = post(root, "rule-shadows", {"rule": "gpu-hot", "reason": "Again."})
    assert (again.status_code, again.json()["detail"]) == (
        409,
        "root has already started shadow mode. Nothing was changed.",
    )

    ended = post(root, f"rule-shadows/{begun.json()['id']}/ends", {"reason": "It is right."})

    assert ended.status_code == 204
    assert bob.get("/api/v1/findings?open=true").json()["count"] == 1


def test_what_is_never_on_trial_is_refused_with_why(root, now):
    answer = post(root, "rule-shadows", {"rule": "cluster-not-seen", "reason": "x"})

    assert answer.status_code == 400
    assert "always notifies" in str(answer.json())


def test_limits_of_a_pool_are_set_read_and_removed(root, bob, pool):
    body = {"rule": "gpu-hot", "warn": 75, "critical": 80, "warn_after_s": 180, "critical_after_s": 60}
    made = post(root, f"pools/{pool.pk}/limits", body | {"reason": "Old fans."})
    assert made.status_code == 201
    assert post(root, f"pools/{pool.pk}/limits", body | {"reason": "Again."}).status_code == 409
    assert post(bob, f"pools/{pool.pk}/limits", body | {"reason": "x"}).status_code == 403

    (told,) = bob.get(f"/api/v1/pools/{pool.pk}/limits").json()

    assert (told["warn"], told["critical"], told["version"], told["reason"]) == (75, 80, 1, "Old fans.")
    changed = post(root, f"pools/{pool.pk}/limits", body | {"warn": 70, "version": 1, "reason": "x"})
    assert (changed.status_code, changed.json()["version"]) == (201, 2)
    removals = f"pool-limits/{told['id']}/removals"
    assert post(root, removals, {"reason": "x"}).status_code == 400
    assert post(root, removals, {"reason": "x", "version": 1}).status_code == 409
    assert post(root, removals, {"reason": "x", "version": 2}).status_code == 204
    assert not PoolLimits.objects.exists()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"critical": 70}, "critical"),
        ({"warn": 400}, "warn"),
        ({"rule": "gpu-xid"}, "rule"),
        ({"reason": ""}, "reason"),
    ],
)
def test_limits_that_make_no_sense_name_the_field(root, pool, given, field):
    body = {"rule": "gpu-hot", "warn": 75, "critical": 80, "warn_after_s": 180, "reason": "x"}

    answer = post(root, f"pools/{pool.pk}/limits", body | given)

    assert answer.status_code == 400
    assert field in str(answer.json())


def test_a_stranger_sees_neither_trial_nor_limits(eve, pool):
    row = PoolLimits.objects.create(pool=pool, rule="gpu-hot", warn=80, warn_after_s=0, by="x", at=NOON, reason="x")
    shadow = RuleShadow.objects.create(rule="gpu-hot", by="x", at=NOON, reason="x")

    for path in (f"pools/{pool.pk}/limits", f"pool-limits/{row.pk}/removals", f"rule-shadows/{shadow.pk}/ends"):
        assert post(eve, path, {"reason": "x"}).status_code == 404
