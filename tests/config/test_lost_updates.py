"""Every object of REST that is changed in place: it has an ETag, and `If-Match` protects the changes of others."""

import pytest

from capacity.models import PoolServiceLevel
from fleet.models import Cluster
from notifications.models import Channel
from tests.config.rest_schema import rest_paths
from tests.make import NOON, a_draft, a_pool
from tests.notifications.make import a_channel, a_route

# One switch; a repeated write changes nothing, and the last state is what both callers asked for.
WITHOUT = {"/api/v1/people/{person_id}"}


@pytest.fixture
def editable(there, root, settings) -> dict[str, int]:
    """Objects that an admin may change and remove."""
    settings.TELEMETRY_LOOPBACK = True
    cluster = Cluster.objects.get(pk=there["cluster_id"])
    cluster.pools.update(environment="staging")
    Cluster.objects.update(approval="none")
    spare = a_pool(cluster, "spare")
    PoolServiceLevel.objects.create(pool=spare, indicator="vllm-ttft-p99", by="root", at=NOON)
    return there | {
        "plan_id": a_draft().pk,
        "pool_id": spare.pk,
        "channel_id": a_channel("unused", kind="mail", recipients=["a@example.org"]).pk,
        "route_id": a_route("spare", a_channel("used"), position=20).pk,
    }


PATHS = rest_paths()
CHANGED = sorted(path for path, methods in PATHS.items() if {"put", "patch"} & methods.keys())
BODIES = {
    "/api/v1/clusters/{cluster_id}": {"approval": "required", "reason": "Audit."},
    "/api/v1/clusters/{cluster_id}/telemetry-source": {"url": "http://127.0.0.1:9"},
    "/api/v1/me/notifications": {"severities": [], "slack_id": "U0123456789"},
    "/api/v1/notification-channels/{channel_id}": {"recipients": ["b@example.org"]},
    "/api/v1/notification-routes/{route_id}": {"name": "spare-2", "channels": ["used"]},
    "/api/v1/plans/{plan_id}": {"title": "Another title"},
    "/api/v1/pools/{pool_id}": {"max_unavailable": 3},
    "/api/v1/pools/{pool_id}/service-level": {"indicator": "vllm-itl-p99"},
    "/api/v1/pools/{pool_id}/gates": {"gates": {"ecc": {}}, "reason": "Audit."},
}


def test_each_such_object_is_in_the_table():
    assert set(CHANGED) - WITHOUT == set(BODIES)


@pytest.mark.parametrize("path", sorted(BODIES))
def test_a_change_of_what_was_not_seen_is_refused(editable, root, path):
    methods, url = PATHS[path], path.format(**editable)
    verb = "put" if "put" in methods else "patch"
    change = getattr(root, verb)
    tag = root.get(url)["ETag"]
    assert "If-Match" in {each["name"] for each in methods[verb]["parameters"]}
    assert "ETag" in methods["get"]["responses"]["200"]["headers"]

    stale = change(url, BODIES[path], format="json", headers={"If-Match": '"99"'})
    changed = change(url, BODIES[path], format="json", headers={"If-Match": f"W/{tag}"})

    assert (stale.status_code, stale.json()["type"]) == (412, "urn:quarterdeck:problem:precondition-failed")
    assert changed.status_code == 200, changed.json()
    assert root.get(url)["ETag"] not in {tag, ""}
    again = change(url, BODIES[path], format="json", headers={"If-Match": tag})
    assert again.status_code == 412


@pytest.mark.parametrize("path", sorted(path for path in BODIES if "delete" in PATHS[path]))
def test_a_removal_of_what_was_not_seen_is_refused(editable, root, path):
    url = path.format(**editable)
    tag = root.get(url)["ETag"]

    assert root.delete(url, headers={"If-Match": '"99"'}).status_code == 412
    assert root.get(url)["ETag"] == tag
    assert root.delete(url, headers={"If-Match": tag}).status_code == 204
    assert root.get(url).status_code == 404


def test_a_header_that_would_protect_nothing_is_refused(there, root):
    url = f"/api/v1/clusters/{there['cluster_id']}"
    body = {"approval": "required", "reason": "Audit."}

    assert root.patch(url, body, format="json", headers={"If-Match": "no quotes"}).status_code == 400
    assert root.patch(url, body, format="json", headers={"If-Match": '""'}).status_code == 400
    assert root.post("/api/v1/groups", {"name": "x"}, format="json", headers={"If-Match": '"x"'}).status_code == 400
    assert root.patch(url, body, format="json", headers={"If-Match": "*"}).status_code == 200


def test_who_may_not_see_settings_gets_no_tag(there, bob):
    assert "ETag" not in bob.get(f"/api/v1/notification-channels/{Channel.objects.first().pk}")
