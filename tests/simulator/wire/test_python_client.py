"""The official Python client's typed models, over HTTP."""

import threading
from collections.abc import Iterator

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from simulator.kinds import DEFINITION, DISRUPTION_BUDGET, NODE, POD
from simulator.pod_ends import Served
from simulator.run import Simulation
from simulator.store import Store
from tests.simulator.wire.objects import a_budget, a_definition, a_node, a_pod, a_widget
from tests.simulator.wire.waiting import until


@pytest.fixture(scope="module")
def api(simulation: Simulation) -> client.ApiClient:
    simulation.store.create(DEFINITION, a_definition())
    return config.new_client_from_config(str(simulation.kubeconfig))


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def store(simulation: Simulation) -> Iterator[Store]:
    yield simulation.store
    for kind in (NODE, POD, DISRUPTION_BUDGET):
        for obj in simulation.store.list(kind)[0]:
            metadata = obj["metadata"]
            simulation.store.delete(kind, metadata["name"], metadata.get("namespace", ""), grace_s=0)


def test_nodes_are_listed_as_typed_models(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", labels={"pool": "a"}))

    listed = core.list_node(label_selector="pool=a")

    assert [node.metadata.name for node in listed.items] == ["gpu-1"]
    assert listed.items[0].status.allocatable["nvidia.com/gpu"] == "8"
    assert listed.items[0].metadata.creation_timestamp.tzinfo is not None
    assert int(listed.metadata.resource_version) >= int(listed.items[0].metadata.resource_version)


def test_items_of_built_in_lists_do_not_say_what_they_are(core: client.CoreV1Api, store: Store) -> None:
    """So a client that needs `kind` on an item fails here too, as it would on a real server."""
    store.seed(NODE, a_node("gpu-1"))

    listed = core.list_node()

    assert listed.kind == "NodeList"
    assert listed.items[0].kind is None
    assert core.read_node("gpu-1").kind == "Node"


def test_chunks_are_one_picture_though_nodes_come_and_go(core: client.CoreV1Api, store: Store) -> None:
    for index in range(5):
        store.seed(NODE, a_node(f"gpu-{index}"))

    first = core.list_node(limit=2)
    store.delete(NODE, "gpu-3")
    store.seed(NODE, a_node("gpu-35"))
    store.patch(NODE, "gpu-4", {"metadata": {"labels": {"new": "yes"}}}, how="merge")
    second = core.list_node(limit=2, _continue=first.metadata._continue)
    third = core.list_node(limit=2, _continue=second.metadata._continue)

    names = [node.metadata.name for page in (first, second, third) for node in page.items]
    assert names == [f"gpu-{index}" for index in range(5)]
    assert (first.metadata.remaining_item_count, second.metadata.remaining_item_count) == (3, 1)
    assert {page.metadata.resource_version for page in (first, second, third)} == {first.metadata.resource_version}
    assert third.metadata._continue is None
    assert third.items[0].metadata.labels is None


def test_a_list_can_be_had_as_it_was(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    then = core.list_node().metadata.resource_version
    store.seed(NODE, a_node("gpu-2"))

    exact = core.list_node(resource_version=then, resource_version_match="Exact")
    newer = core.list_node(resource_version=then, resource_version_match="NotOlderThan")

    assert [node.metadata.name for node in exact.items] == ["gpu-1"]
    assert exact.metadata.resource_version == then
    assert [node.metadata.name for node in newer.items] == ["gpu-1", "gpu-2"]


def test_a_version_that_is_not_yet_is_a_timeout(core: client.CoreV1Api, store: Store) -> None:
    with pytest.raises(ApiException) as caught:
        core.list_node(resource_version="999999999", resource_version_match="NotOlderThan")

    assert caught.value.status == 504
    assert "Too large resource version" in caught.value.body


def test_watch_tells_what_happens_after_a_list(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    since = core.list_node().metadata.resource_version
    stream = watch.Watch().stream(core.list_node, resource_version=since, timeout_seconds=30)

    store.patch(NODE, "gpu-1", {"spec": {"unschedulable": True}}, how="merge")
    store.delete(NODE, "gpu-1")
    seen = [next(stream), next(stream)]

    assert [event["type"] for event in seen] == ["MODIFIED", "DELETED"]
    assert seen[0]["object"].spec.unschedulable is True
    assert int(seen[1]["object"].metadata.resource_version) > int(seen[0]["object"].metadata.resource_version)


def test_a_watch_with_a_selector_sees_objects_enter_and_leave(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    stream = watch.Watch().stream(core.list_node, label_selector="held=true", timeout_seconds=30)
    threading.Timer(0.2, _hold_and_release, (store,)).start()

    seen = [next(stream), next(stream)]

    assert [event["type"] for event in seen] == ["ADDED", "DELETED"]
    assert seen[1]["object"].metadata.labels == {"held": "true"}


def _hold_and_release(store: Store) -> None:
    for value in ("true", "false"):
        store.patch(NODE, "gpu-1", {"metadata": {"labels": {"held": value}}}, how="merge")


def test_patch_node_cordons_by_strategic_merge(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    node = core.patch_node("gpu-1", {"spec": {"unschedulable": True}})

    assert node.spec.unschedulable is True


def test_a_patch_that_changes_nothing_makes_no_version(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    before = core.patch_node("gpu-1", {"spec": {"unschedulable": True}})
    since = core.list_node().metadata.resource_version

    after = core.patch_node("gpu-1", {"spec": {"unschedulable": True}})

    assert after.metadata.resource_version == before.metadata.resource_version
    assert core.list_node().metadata.resource_version == since


def test_a_json_patch_whose_test_fails_is_422_and_changes_nothing(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", labels={"pool": "a"}))
    operations = [
        {"op": "replace", "path": "/metadata/labels/pool", "value": "c"},
        {"op": "test", "path": "/metadata/labels/pool", "value": "b"},
    ]

    with pytest.raises(ApiException) as caught:
        core.patch_node("gpu-1", operations)

    assert caught.value.status == 422
    assert "the server rejected our request due to an error in our request" in caught.value.body
    assert core.read_node("gpu-1").metadata.labels == {"pool": "a"}


def test_replacing_an_old_version_is_a_conflict(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    read = core.read_node("gpu-1")
    core.patch_node("gpu-1", {"metadata": {"labels": {"a": "b"}}})

    with pytest.raises(ApiException) as caught:
        core.replace_node("gpu-1", read)

    assert caught.value.status == 409
    assert "the object has been modified; please apply your changes to the latest version" in caught.value.body


def test_creating_twice_already_exists_and_reading_nothing_is_not_found(core: client.CoreV1Api, store: Store) -> None:
    core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="gpu-1")))

    with pytest.raises(ApiException) as twice:
        core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="gpu-1")))
    with pytest.raises(ApiException) as missing:
        core.read_node("gpu-9")

    assert (twice.value.status, '"AlreadyExists"' in twice.value.body) == (409, True)
    assert (missing.value.status, 'nodes \\"gpu-9\\" not found' in missing.value.body) == (404, True)


def test_status_and_spec_are_written_apart(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    core.patch_node_status("gpu-1", {"spec": {"unschedulable": True}, "status": {"phase": "Running"}})
    core.patch_node("gpu-1", {"status": {"phase": "Terminated"}})

    node = core.read_node("gpu-1")
    assert node.spec.unschedulable is None
    assert node.status.phase == "Running"


def test_a_condition_merges_by_type(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    core.patch_node_status("gpu-1", {"status": {"conditions": [{"type": "GpuBroken", "status": "True"}]}})
    core.patch_node_status("gpu-1", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})

    held = {condition.type: condition for condition in core.read_node("gpu-1").status.conditions}
    assert {kind: condition.status for kind, condition in held.items()} == {"GpuBroken": "True", "Ready": "Unknown"}
    assert held["Ready"].reason == "KubeletReady"


def test_eviction_is_refused_with_429_and_the_budget_as_its_cause(core: client.CoreV1Api, store: Store) -> None:
    _pods_under_budget(store, minAvailable=1)

    with pytest.raises(ApiException) as caught:
        _evict(core, "web-0")

    assert caught.value.status == 429
    assert '"reason":"DisruptionBudget"' in caught.value.body
    assert "The disruption budget web needs 1 healthy pods and has 1 currently" in caught.value.body


def test_eviction_deletes_within_the_budget_once(core: client.CoreV1Api, store: Store) -> None:
    _pods_under_budget(store, count=2, minAvailable=1)

    _evict(core, "web-0")
    with pytest.raises(ApiException) as caught:
        _evict(core, "web-1")

    assert caught.value.status == 429
    assert core.read_namespaced_pod("web-0", "default").metadata.deletion_timestamp is not None


def test_a_dry_run_of_an_eviction_spends_nothing(core: client.CoreV1Api, store: Store) -> None:
    _pods_under_budget(store, count=2, minAvailable=1)

    for _ in range(2):
        _evict(core, "web-0", dry_run="All")

    assert core.read_namespaced_pod("web-0", "default").metadata.deletion_timestamp is None


def test_two_budgets_on_one_pod_are_a_server_error(core: client.CoreV1Api, store: Store) -> None:
    _pods_under_budget(store, maxUnavailable=1)
    store.create(DISRUPTION_BUDGET, a_budget("other", {"app": "web"}, maxUnavailable=1), "default")

    with pytest.raises(ApiException) as caught:
        _evict(core, "web-0")

    assert caught.value.status == 500
    assert "This pod has more than one PodDisruptionBudget" in caught.value.body


def test_a_budget_that_names_no_labels_covers_every_pod(core: client.CoreV1Api, store: Store) -> None:
    _pods_under_budget(store, maxUnavailable=1)
    store.create(DISRUPTION_BUDGET, a_budget("all", {}, maxUnavailable=1), "default")

    with pytest.raises(ApiException) as caught:
        _evict(core, "web-0")

    assert caught.value.status == 500


def test_eviction_of_another_pod_of_that_name_is_a_conflict(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    store.seed(POD, a_pod("web-0", node="gpu-1"), "default")

    with pytest.raises(ApiException) as caught:
        _evict(core, "web-0", uid="00000000-0000-0000-0000-000000000000")

    assert caught.value.status == 409
    assert "the UID in the precondition" in caught.value.body


@pytest.mark.parametrize(("policy", "goes"), [("IfHealthyBudget", False), ("AlwaysAllow", True)])
def test_an_unhealthy_pod_goes_only_where_the_policy_lets_it(
    core: client.CoreV1Api, store: Store, policy: str, goes: bool
) -> None:
    _pods_under_budget(store, is_ready=False, minAvailable=1, unhealthyPodEvictionPolicy=policy)

    try:
        _evict(core, "web-0")
        went = True
    except ApiException as error:
        went = error.status != 429

    assert went is goes


def _pods_under_budget(store: Store, *, count: int = 1, is_ready: bool = True, **spec: object) -> None:
    store.seed(NODE, a_node("gpu-1"))
    for index in range(count):
        store.seed(POD, a_pod(f"web-{index}", node="gpu-1", labels={"app": "web"}, is_ready=is_ready), "default")
    store.create(DISRUPTION_BUDGET, a_budget("web", {"app": "web"}, **spec), "default")
    healthy = count if is_ready else 0
    until(lambda: (store.get(DISRUPTION_BUDGET, "web", "default").get("status") or {}).get("currentHealthy") == healthy)


def _evict(core: client.CoreV1Api, name: str, *, uid: str | None = None, dry_run: str | None = None) -> None:
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=uid)) if uid else None
    metadata = client.V1ObjectMeta(name=name, namespace="default")
    eviction = client.V1Eviction(metadata=metadata, delete_options=options)
    wishes = {"dry_run": dry_run} if dry_run else {}
    core.create_namespaced_pod_eviction(name, "default", eviction, **wishes)


def test_a_running_pod_is_deleted_gracefully(core: client.CoreV1Api, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    store.seed(POD, a_pod("web-0", node="gpu-1"), "default")

    pod = core.delete_namespaced_pod("web-0", "default")
    held = core.read_namespaced_pod("web-0", "default")
    core.delete_namespaced_pod("web-0", "default", grace_period_seconds=0)

    assert pod.metadata.deletion_grace_period_seconds == 30
    assert held.metadata.deletion_timestamp is not None
    assert core.list_namespaced_pod("default").items == []


def test_custom_objects_have_a_generation_and_a_status_of_their_own(api: client.ApiClient, store: Store) -> None:
    custom = client.CustomObjectsApi(api)
    where = ("example.com", "v1alpha1", "widgets")

    made = custom.create_cluster_custom_object(*where, a_widget("one", unknown="gone"))
    changed = custom.patch_cluster_custom_object(*where, "one", {"spec": {"version": "2"}, "status": {"state": "no"}})
    told = custom.patch_cluster_custom_object_status(
        *where, "one", {"spec": {"version": "3"}, "status": {"state": "ready"}}
    )

    assert made["spec"] == {"version": "1", "replicas": 1}
    assert (made["metadata"]["generation"], changed["metadata"]["generation"], told["metadata"]["generation"]) == (
        1,
        2,
        2,
    )
    assert "status" not in changed
    assert (told["spec"]["version"], told["status"]) == ("2", {"state": "ready"})


def test_a_custom_object_against_its_schema_is_invalid(api: client.ApiClient, store: Store) -> None:
    custom = client.CustomObjectsApi(api)

    with pytest.raises(ApiException) as caught:
        custom.create_cluster_custom_object("example.com", "v1alpha1", "widgets", a_widget("two", mode="odd"))

    assert caught.value.status == 422
    assert "spec.mode: Unsupported value" in caught.value.body


def test_an_api_that_is_not_there_is_404(api: client.ApiClient, store: Store) -> None:
    with pytest.raises(ApiException) as caught:
        client.CustomObjectsApi(api).list_cluster_custom_object("nvidia.com", "v1", "clusterpolicies")

    assert caught.value.status == 404


def test_a_namespace_takes_what_is_in_it_along(core: client.CoreV1Api, store: Store) -> None:
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="brief")))
    core.create_namespaced_config_map("brief", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a")))

    core.delete_namespace("brief")

    with pytest.raises(ApiException) as caught:
        core.read_namespaced_config_map("a", "brief")
    assert caught.value.status == 404
    assert "brief" not in [namespace.metadata.name for namespace in core.list_namespace().items]


def test_dry_run_answers_and_keeps_nothing(core: client.CoreV1Api, store: Store) -> None:
    made = core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="gpu-1")), dry_run="All")

    assert made.metadata.uid
    assert core.list_node().items == []


def test_the_pod_proxy_reaches_what_the_actors_serve(
    core: client.CoreV1Api, simulation: Simulation, store: Store
) -> None:
    store.seed(NODE, a_node("gpu-1"))
    store.seed(POD, a_pod("exporter", node="gpu-1"), "default")
    simulation.ends.ports[9400] = lambda pod, path: Served(f"{pod['metadata']['name']} {path}\n".encode())

    said = core.connect_get_namespaced_pod_proxy_with_path("exporter:9400", "default", "metrics")
    with pytest.raises(ApiException) as caught:
        core.connect_get_namespaced_pod_proxy_with_path("exporter:9401", "default", "metrics")

    assert said == "exporter /metrics\n"
    assert caught.value.status == 503
