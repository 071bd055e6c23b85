"""The objects of autoscalers, from the mirror."""

from datetime import timedelta

import pytest

from capacity.scaling_rows import scaling_facts
from capacity.wait_reasons.scaling_verdict import CLAIMS, STATUS
from fleet.models import ScalingObject
from kube.resources import NODE_CLAIMS, SCALING_STATUS
from tests.make import NOON, a_bookmark, a_cluster

pytestmark = pytest.mark.django_db


def test_kinds_that_are_not_fresh_are_stale():
    cluster = a_cluster("east")
    late = NOON - timedelta(minutes=16)
    a_bookmark(cluster, NODE_CLAIMS.name, last_seen_at=late)
    a_bookmark(cluster, SCALING_STATUS.name)

    facts = scaling_facts(cluster.pk, [], now=NOON)

    assert (facts.claims_seen_at, facts.status_seen_at, facts.stale) == (late, NOON, {CLAIMS})
    assert scaling_facts(cluster.pk, [], now=NOON + timedelta(hours=1)).stale == {CLAIMS, STATUS}


def test_a_status_that_was_not_understood_is_not_checked():
    cluster = a_cluster("east")
    a_bookmark(cluster, SCALING_STATUS.name)
    ScalingObject.objects.create(
        cluster=cluster, uid="u", kind="ClusterAutoscaler", name="s", facts={"unread": "empty"}, changed_at=NOON
    )

    facts = scaling_facts(cluster.pk, [], now=NOON)

    assert (facts.groups, facts.unread) == (None, "Status of the cluster autoscaler (empty)")


def test_a_status_without_a_rule_is_named_only_where_an_autoscaler_runs():
    cluster = a_cluster("east")
    a_bookmark(cluster, SCALING_STATUS.name, state="forbidden")

    assert scaling_facts(cluster.pk, [], now=NOON).unread == ""
    assert scaling_facts(cluster.pk, ["pod didn't trigger scale-up: "], now=NOON).unread == (
        "Status of the cluster autoscaler"
    )
