"""The GPU stack of a cluster in REST: what its page shows, with what was never read as null."""

import pytest

from fleet.models import DeviceClass, ResourceClaim, ResourceQuota
from kube.resources import DAEMON_SETS, RESOURCE_CLAIMS
from tests.callers import calling
from tests.make import NOON, a_bookmark, a_cluster, a_pool, a_user, an_operand

pytestmark = pytest.mark.django_db


def test_it_has_operands_claims_and_quotas(bob):
    cluster = a_cluster()
    an_operand(cluster, desired=4, ready=3, updated=4)
    for kind in (DAEMON_SETS, RESOURCE_CLAIMS):
        a_bookmark(cluster, kind.name)
    ResourceClaim.objects.create(
        cluster=cluster, uid="c", namespace="a", name="c", created_at=NOON, changed_at=NOON, allocated=[]
    )
    DeviceClass.objects.create(cluster=cluster, uid="d", name="gpu.nvidia.com", changed_at=NOON, selectors=["true"])
    hard, used = {"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "8"}
    ResourceQuota.objects.create(
        cluster=cluster, uid="q", namespace="a", name="q", changed_at=NOON, hard=hard, used=used
    )

    stack = bob.get(f"/api/v1/clusters/{cluster.pk}/stack").json()

    assert [(row["title"], row["ready"], row["sentence"]) for row in stack["operands"]] == [
        ("Driver", 3, "1 not ready"),
    ]
    assert (stack["dra"]["claims"], stack["dra"]["allocated_claims"]) == (1, 0)
    assert stack["dra"]["classes"] == [
        {"name": "gpu.nvidia.com", "selectors": ["true"], "extended_resource_name": ""},
    ]
    assert [(row["resource"], row["is_full"]) for row in stack["quotas"]] == [("requests.nvidia.com/gpu", True)]
    ages = {row["kind"]: row["state"] for row in stack["freshness"]}
    assert (ages[DAEMON_SETS.name], ages["resourcequotas"], len(ages)) == ("live", "never", 8)


def test_claims_that_were_never_read_are_unknown(bob):
    cluster = a_cluster()

    dra = bob.get(f"/api/v1/clusters/{cluster.pk}/stack").json()["dra"]

    assert (dra["claims"], dra["allocated_claims"]) == (None, None)


def test_it_is_for_who_sees_the_whole_cluster(now):
    cluster = a_cluster()
    of_pool = calling(a_user("pat", role="viewer", on=a_pool(cluster)))

    answer = of_pool.get(f"/api/v1/clusters/{cluster.pk}/stack")

    assert (answer.status_code, "on cluster" in answer.json()["detail"]) == (403, True)
