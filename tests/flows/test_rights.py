"""The two manifests in deploy/rbac: test_promote_to_the_end shows that the one is enough; the other cannot write.

Every flow runs with the rights of quarterdeck.yaml: the recorder asks in the name of its service account.
"""

from collections.abc import Callable, Iterator

import pytest

from demo.visitor import wait_until
from tests.flows.cluster import PATIENCE_S, Cluster
from tests.flows.plans import Plan, canary
from tests.flows.proxy import Proxy
from tests.flows.recorded import QUARTERDECK
from tests.flows.rights import MANIFESTS, is_authorized_by_roles, writes_in

pytestmark = pytest.mark.promote
OBSERVER = "system:serviceaccount:quarterdeck:quarterdeck-observer"
EVERY_KIND = {"nodes", "pods", "daemonsets", "controllerrevisions", "nvidiadrivers", "clusterpolicies"}


@pytest.fixture(autouse=True)
def _decided_by_roles(gpu_cluster: Cluster, proxy: Proxy) -> None:
    """Where everybody may do everything, no manifest can be too narrow."""
    if not is_authorized_by_roles(gpu_cluster):
        pytest.skip("this API server authorises everybody")


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


def watched(proxy: Proxy, since: int) -> set[str]:
    return {asked.path.rpartition("/")[2] for asked in proxy.requests(since) if asked.is_watch and asked.code == 200}
