"""Rows of Karpenter's objects and of the status of the cluster autoscaler."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fleet.observer.mirror.rows.autoscalers import autoscaler_row, node_claim_row, node_pool_row
from kube.structs import ConfigMapSeen
from kube.structs.autoscalers import NodeClaimSeen, NodePoolSeen

META: dict[str, Any] = {"name": "gpu", "uid": "u", "labels": {"karpenter.sh/nodepool": "gpu"}}
STATUS = """\
time: 2026-11-30 10:03:59.123 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: https://content.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/a100
  health:
    status: Healthy
    nodeCounts: {registered: {total: 8, ready: 7, unready: {total: 1, resourceUnready: 1}}}
    cloudProviderTarget: 8
    minSize: 0
    maxSize: 8
  scaleUp:
    status: Backoff
    backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: Instance creation failed}
- name: h100
"""


def a_status(text: str) -> ConfigMapSeen:
    return msgspec.convert({"metadata": META, "data": {"status": text}}, ConfigMapSeen)


def test_a_claim_says_which_step_it_waits_for():
    late = {"type": "Initialized", "status": "False", "reason": "ResourceNotRegistered", "message": "nvidia.com/gpu"}
    done = [{"type": kind, "status": "True"} for kind in ("Launched", "Registered")]
    seen = {"metadata": META, "status": {"nodeName": "ip-1", "conditions": [*done, late]}}

    row = node_claim_row(msgspec.convert(seen, NodeClaimSeen))

    assert (row["pool"], row["node_name"], row["is_ready"]) == ("gpu", "ip-1", False)
    assert (row["reason"], row["message"]) == ("ResourceNotRegistered", "nvidia.com/gpu")
    new = node_claim_row(msgspec.convert({"metadata": META}, NodeClaimSeen))
    assert (new["is_ready"], new["reason"]) == (False, "")


def test_a_pool_has_its_limits_and_their_use():
    seen = {"metadata": META, "spec": {"limits": {"nvidia.com/gpu": 64}}}
    seen["status"] = {"resources": {"nvidia.com/gpu": "64"}, "conditions": [{"type": "Ready", "status": "True"}]}

    row = node_pool_row(msgspec.convert(seen, NodePoolSeen))

    assert row["facts"] == {"limits": {"nvidia.com/gpu": "64"}, "used": {"nvidia.com/gpu": "64"}}
    assert row["is_ready"]


def test_the_status_has_its_groups_and_a_rounded_time():
    row = autoscaler_row(a_status(STATUS))

    first, second = row["facts"]["groups"]
    assert (first["name"], first["target"], first["largest"], first["unready"]) == ("a100", 8, 8, 1)
    assert (first["scale_up"], first["error_code"]) == ("Backoff", "QUOTA_EXCEEDED")
    assert (second["name"], second["target"], second["scale_up"]) == ("h100", None, "")
    assert row["reason_at"] == datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
    assert autoscaler_row(a_status(STATUS.replace("10:03:59.123", "10:04:09.9"))) == row


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("Cluster-autoscaler status at 2026: Health: Healthy", "since 1.30"),
        ("a: &x [*x]", "aliases"),
        ("- [", "since 1.30"),
        ("autoscalerStatus: Running\nnodeGroups: 3", "no list"),
        ("x" * 600_000, "larger than 512 KiB"),
    ],
)
def test_a_status_that_is_not_understood_says_why(text, why):
    facts = autoscaler_row(a_status(text))["facts"]

    assert why in facts["unread"]
    assert "groups" not in facts


def test_a_status_may_have_an_ampersand_or_no_group():
    text = STATUS.replace("Instance creation failed", "a & b")

    assert autoscaler_row(a_status(text))["facts"]["groups"][0]["error_message"] == "a & b"
    assert autoscaler_row(a_status("autoscalerStatus: Initializing"))["facts"] == {"groups": []}


def test_odd_values_do_not_break_a_group():
    groups = "[3, {name: [1], health: 4, scaleUp: {backoffInfo: {errorCode: {a: b}}}}]"
    text = f"autoscalerStatus: 1\nnodeGroups: {groups}\ntime: {{a: b}}"

    assert autoscaler_row(a_status(text))["facts"]["groups"][0]["error_code"] == ""
