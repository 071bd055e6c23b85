"""What the API server decides about a write: generations, owners of members, deletion, names."""

import pytest

from simulator.kinds import (
    CONFIG_MAP,
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEFINITION,
    DISRUPTION_BUDGET,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    Kind,
)
from simulator.refusals import Refused
from simulator.store import Store
from tests.simulator.wire.objects import a_budget, a_definition, a_node, a_pod, a_widget

WIDGET = Kind(
    "example.com",
    "v1alpha1",
    "widgets",
    "Widget",
    namespaced=False,
    has_status=True,
    has_generation=True,
    is_custom=True,
)
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}


@pytest.fixture
def store() -> Store:
    return Store()


def a_daemon_set() -> dict[str, object]:
    return {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}


def _generation(obj: dict[str, object]) -> int:
    return obj["metadata"]["generation"]  # type: ignore[index]


def test_only_a_changed_spec_begins_a_generation(store: Store) -> None:
    made = store.create(DAEMON_SET, a_daemon_set(), "default")

    labelled = store.patch(DAEMON_SET, "a", {"metadata": {"labels": {"x": "y"}}}, "default", how="merge")
    told = store.patch(DAEMON_SET, "a", {"status": {"numberReady": 3}}, "default", how="merge", subresource="status")
    changed = store.patch(DAEMON_SET, "a", {"spec": {"minReadySeconds": 5}}, "default", how="merge")

    assert [_generation(obj) for obj in (made, labelled, told, changed)] == [1, 1, 1, 2]
    assert changed["status"]["numberReady"] == 3


def test_a_write_that_changes_nothing_is_no_version(store: Store) -> None:
    made = store.create(DAEMON_SET, a_daemon_set(), "default")
    version = store.version

    again = store.update(DAEMON_SET, "a", {**made}, "default")

    assert (again, store.version) == (made, version)


def test_what_the_server_owns_cannot_be_written(store: Store) -> None:
    made = store.create(CONFIG_MAP, {"metadata": {"name": "a"}}, "default")
    forged = {**made["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}

    held = store.update(CONFIG_MAP, "a", {"metadata": forged, "data": {"a": "1"}}, "default")

    assert held["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert "generation" not in held["metadata"]


def test_a_finalizer_holds_what_is_deleted(store: Store) -> None:
    store.create(CONFIG_MAP, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}, "default")

    held = store.delete(CONFIG_MAP, "a", "default")
    store.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": None}}, "default", how="merge")

    assert "deletionTimestamp" in held["metadata"]
    assert store.list(CONFIG_MAP, "default")[0] == []


def test_a_pod_on_no_node_goes_at_once_and_one_that_runs_has_its_grace(store: Store) -> None:
    store.seed(POD, a_pod("waiting"), "default")
    store.seed(POD, a_pod("running", node="gpu-1", terminationGracePeriodSeconds=60), "default")

    store.delete(POD, "waiting", "default")
    held = store.delete(POD, "running", "default")
    hurried = store.delete(POD, "running", "default", grace_s=5)

    assert held["metadata"]["deletionGracePeriodSeconds"] == 60
    assert hurried["metadata"]["deletionGracePeriodSeconds"] == 5
    assert [pod["metadata"]["name"] for pod in store.list(POD, "default")[0]] == ["running"]


def test_a_running_pod_changes_only_its_image(store: Store) -> None:
    store.seed(POD, a_pod("a", node="gpu-1"), "default")
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"}]

    changed = store.patch(POD, "a", image, "default", how="json")
    with pytest.raises(Refused) as caught:
        store.patch(POD, "a", {"spec": {"nodeName": "gpu-2"}}, "default", how="merge")

    assert changed["spec"]["containers"][0]["image"] == "app:2"
    assert caught.value.status == 422
    assert "pod updates may not change fields other than" in caught.value.message


def test_a_pod_is_bound_once(store: Store) -> None:
    store.seed(POD, a_pod("a"), "default")

    store.bind("a", "default", "gpu-1")
    with pytest.raises(Refused) as caught:
        store.bind("a", "default", "gpu-2")

    assert caught.value.status == 409
    assert store.get(POD, "a", "default")["spec"]["nodeName"] == "gpu-1"


def test_a_selector_must_fit_its_template_and_never_changes(store: Store) -> None:
    unfit = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": TEMPLATE}}
    store.create(DAEMON_SET, a_daemon_set(), "default")

    with pytest.raises(Refused) as mismatch:
        store.create(DAEMON_SET, unfit, "default")
    with pytest.raises(Refused) as change:
        store.patch(DAEMON_SET, "a", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}, "default", how="merge")

    assert "`selector` does not match template `labels`" in mismatch.value.message
    assert "field is immutable" in change.value.message


def test_what_a_revision_holds_never_changes_and_its_number_does(store: Store) -> None:
    made = {"metadata": {"name": "a-1"}, "data": {"spec": {"template": TEMPLATE}}, "revision": 1}
    store.create(CONTROLLER_REVISION, made, "default")

    with pytest.raises(Refused) as change:
        store.patch(CONTROLLER_REVISION, "a-1", {"data": {"spec": None}}, "default", how="merge")
    with pytest.raises(Refused) as nothing:
        store.create(CONTROLLER_REVISION, {"metadata": {"name": "a-2"}, "revision": 2}, "default")
    renumbered = store.patch(CONTROLLER_REVISION, "a-1", {"revision": 3}, "default", how="merge")

    assert "data: Invalid value" in change.value.message
    assert "field is immutable" in change.value.message
    assert "data is mandatory" in nothing.value.message
    assert renumbered["revision"] == 3


def test_a_job_selects_its_own_pods(store: Store) -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "a:1"}], "restartPolicy": "Never"}}

    job = store.create(JOB, {"metadata": {"name": "a"}, "spec": {"template": template}}, "default")

    own = {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}
    assert job["spec"]["selector"] == {"matchLabels": own}
    assert own.items() <= job["spec"]["template"]["metadata"]["labels"].items()
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)


def test_a_limit_is_its_own_request_and_quantities_are_text(store: Store) -> None:
    container = {"name": "a", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 8}}}

    pod = store.create(POD, a_pod("a", containers=[container]), "default")

    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "8"}
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_nothing_is_created_where_there_is_no_namespace(store: Store) -> None:
    with pytest.raises(Refused) as caught:
        store.create(CONFIG_MAP, {"metadata": {"name": "a"}}, "nowhere")

    assert (caught.value.status, caught.value.message) == (404, 'namespaces "nowhere" not found')


def test_the_first_namespaces_stay(store: Store) -> None:
    with pytest.raises(Refused) as caught:
        store.delete(NAMESPACE, "kube-system")

    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"a b": "c"}, "name part must consist of alphanumeric characters"),
        ({"/name": "c"}, "prefix part must be non-empty"),
        ({"UPPER.example/name": "c"}, "prefix part a lowercase RFC 1123 subdomain"),
        ({"n" * 64: "c"}, "name part must be no more than 63 bytes"),
        ({"a": "v" * 64}, "must be no more than 63 bytes"),
        ({"a": "-v"}, "a valid label must be an empty string or consist of"),
    ],
)
def test_labels_keep_to_their_syntax(store: Store, labels: dict[str, str], words: str) -> None:
    with pytest.raises(Refused) as caught:
        store.create(NODE, a_node("gpu-1", labels=labels))

    assert (caught.value.status, caught.value.reason) == (422, "Invalid")
    assert words in caught.value.message
    assert caught.value.details["causes"][0]["field"] == "metadata.labels"


def test_annotations_have_a_size(store: Store) -> None:
    node = a_node("gpu-1")
    node["metadata"]["annotations"] = {"a": "x" * 300_000}

    with pytest.raises(Refused) as caught:
        store.create(NODE, node)

    assert "Too long: may not be more than 262144 bytes" in caught.value.message


def test_a_definition_serves_its_kind_and_takes_it_along(store: Store) -> None:
    definition = store.create(DEFINITION, a_definition())
    store.create(WIDGET, a_widget("one"))

    store.delete(DEFINITION, "widgets.example.com")

    assert [condition["type"] for condition in definition["status"]["conditions"]] == ["NamesAccepted", "Established"]
    with pytest.raises(Refused) as caught:
        store.list(WIDGET)
    assert caught.value.status == 404


def test_a_strategic_merge_is_not_for_custom_resources(store: Store) -> None:
    store.create(DEFINITION, a_definition())
    store.create(WIDGET, a_widget("one"))

    with pytest.raises(Refused) as caught:
        store.patch(WIDGET, "one", {"spec": {"version": "2"}}, how="strategic")

    assert caught.value.status == 415


def test_a_budget_names_one_number(store: Store) -> None:
    with pytest.raises(Refused) as caught:
        store.create(DISRUPTION_BUDGET, a_budget("a", {"app": "a"}, minAvailable=1, maxUnavailable=1), "default")

    assert "cannot be both set" in caught.value.message
