"""The two manifests in deploy/rbac: the one is enough to promote a driver and no more, the other cannot write.

Every flow runs with the rights of quarterdeck.yaml: the recorder asks in the name of its service account.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from demo.visitor import wait_until
from tests.flows.asked import Asked
from tests.flows.cluster import PATIENCE_S, Cluster
from tests.flows.plans import Plan, canary
from tests.flows.proxy import Proxy
from tests.flows.recorded import QUARTERDECK

pytestmark = pytest.mark.promote
MANIFESTS = Path(__file__).parents[2] / "deploy" / "rbac"
OBSERVER = "system:serviceaccount:quarterdeck:quarterdeck-observer"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
EVERY_KIND = {"nodes", "pods", "daemonsets", "controllerrevisions", "nvidiadrivers", "clusterpolicies"}
POD_PROXY = "/proxy/"
BY_POLICY = ("patch", "nvidia.com", "clusterpolicies")  # test_promote_by_policy uses it
BY_PULLS = {(verb, "batch", "jobs") for verb in ("create", "delete")}  # test_promote_image_pull uses them
BY_LEAVING = ("delete", "coordination.k8s.io", "leases")  # test_takeover uses it
BY_DRAINS = ("create", "", "pods/eviction")  # tests/operations uses it
# tests/maintenance/actors uses them.
BY_REPAIRS = {
    ("patch", "metal3.io", "baremetalhosts"),
    *(
        (verb, "janitor.dgxc.nvidia.com", kind)
        for verb in ("create", "delete")
        for kind in ("rebootnodes", "gpuresets")
    ),
}
Right = tuple[str, str, str]  # verb, API group, resource


@pytest.fixture(autouse=True)
def _decided_by_roles(gpu_cluster: Cluster, proxy: Proxy) -> None:
    """Where everybody may do everything, no manifest can be too narrow."""
    if gpu_cluster.may(QUARTERDECK, "delete", "nodes"):
        pytest.skip("this API server authorises everybody")


def test_the_manifest_is_enough_and_no_more(plan_for: Callable[..., Plan]):
    plan = plan_for().draft(canary()).start().until_opening()
    plan.approve()
    plan.until_state("promoted")

    used = {right_of(asked) for asked in plan.proxy.requests() if asked.is_write and asked.is_forwarded}
    refused = [asked for asked in plan.proxy.requests() if asked.code == 403 and asked.is_forwarded]
    assert [asked for asked in refused if not asks_a_pod(asked)] == []
    # An image pull may have been tried on this stack before, and leaving it.
    by_others = {*BY_PULLS, *BY_REPAIRS, BY_LEAVING, BY_DRAINS}
    assert used - by_others == writes_in("quarterdeck.yaml") - {BY_POLICY} - by_others


def test_no_rule_of_observe_only_can_write():
    assert writes_in("observe-only.yaml") == set()


@pytest.fixture
def as_observer(gpu_cluster: Cluster, proxy: Proxy) -> Iterator[int]:
    """The number of the first request that is asked with those rights alone."""
    gpu_cluster.apply(MANIFESTS / "observe-only.yaml")
    proxy.refuse()
    proxy.as_user = OBSERVER
    since = proxy.count
    proxy.accept()
    yield since
    proxy.as_user = QUARTERDECK


def test_an_observer_sees_everything_and_holds_nothing(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster, as_observer: int
):
    plan = plan_for().draft(canary())
    wait_until(
        lambda: watched(plan.proxy, as_observer) >= EVERY_KIND, what="a watch of every kind", timeout_s=PATIENCE_S
    )
    said = plan.start_in_vain()
    writes = [asked for asked in plan.requests() if asked.is_write and asked.is_forwarded]
    rights = plan.live_answers()["live-rights"]

    assert said["state"] == "draft"
    assert {"patch nodes", "patch nvidiadrivers.nvidia.com"} <= {
        f"{one['value']} {one['label']}" for one in rights["check"]["evidence"]
    }
    assert writes == []
    assert gpu_cluster.marked() == set()
    assert gpu_cluster.version(plan.driver) == plan.from_version


def asks_a_pod(asked: Asked) -> bool:
    """What comes through a pod's proxy may be what refuses on the way; test_observe_allocations asks there."""
    return POD_PROXY in asked.path


def watched(proxy: Proxy, since: int) -> set[str]:
    return {asked.path.rpartition("/")[2] for asked in proxy.requests(since) if asked.is_watch and asked.code == 200}


def right_of(asked: Asked) -> Right:
    parts = asked.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    resource = rest[2] if rest[0] == "namespaces" else rest[0]
    return VERBS[asked.method], group, resource


def writes_in(manifest: str) -> set[Right]:
    documents = yaml.safe_load_all((MANIFESTS / manifest).read_text())
    rules = [rule for document in documents for rule in document.get("rules", [])]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if verb not in {"get", "list", "watch"}
    }
