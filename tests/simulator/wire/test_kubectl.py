"""kubectl cannot tell: its answers here are those that Kubernetes' documentation shows."""

import json
import re
from collections.abc import Iterator

import pytest

from simulator.kinds import DISRUPTION_BUDGET, NAMESPACE, NODE, POD, REPLICA_SET
from simulator.run import Simulation
from simulator.store import Store
from tests.patience import PATIENCE_S
from tests.simulator.wire.kubectl import Kubectl
from tests.simulator.wire.objects import a_budget, a_definition, a_node, a_pod, a_replica_set, a_widget, owner_of
from tests.simulator.wire.waiting import until

pytestmark = pytest.mark.needs_kubectl

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: agent, image: "registry.example/agent:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}
"""


@pytest.fixture(scope="module")
def kubectl(simulation: Simulation) -> Kubectl:
    simulation.store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    return Kubectl(simulation.kubeconfig)


@pytest.fixture
def store(simulation: Simulation) -> Iterator[Store]:
    yield simulation.store
    for kind in (NODE, POD, DISRUPTION_BUDGET, REPLICA_SET):
        for obj in simulation.store.list(kind)[0]:
            metadata = obj["metadata"]
            simulation.store.delete(kind, metadata["name"], metadata.get("namespace", ""), grace_s=0)


def test_get_prints_the_columns_of_nodes(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", labels={"node-role.kubernetes.io/worker": ""}, unschedulable=True))
    store.seed(NODE, a_node("gpu-2", is_ready=False))

    lines = [line.split() for line in kubectl.says("get", "nodes").splitlines()]

    assert lines[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert lines[1][:3] == ["gpu-1", "Ready,SchedulingDisabled", "worker"]
    assert lines[2][:3] == ["gpu-2", "NotReady", "<none>"]


def test_get_filters_by_labels_and_fields(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", labels={"pool": "a"}))
    store.seed(NODE, a_node("gpu-2", labels={"pool": "b"}, unschedulable=True))

    by_label = kubectl.says("get", "nodes", "-l", "pool in (b,c)", "-o", "name")
    by_field = kubectl.says("get", "nodes", "--field-selector", "spec.unschedulable!=true", "-o", "name")
    refused = kubectl.refuses("get", "nodes", "--field-selector", "spec.colour=red")

    assert by_label.split() == ["node/gpu-2"]
    assert by_field.split() == ["node/gpu-1"]
    assert "field label not supported: spec.colour" in refused


def test_get_in_chunks_prints_every_object(kubectl: Kubectl, store: Store) -> None:
    for index in range(7):
        store.seed(NODE, a_node(f"gpu-{index}"))

    names = kubectl.says("get", "nodes", "--chunk-size=3", "--no-headers").splitlines()

    assert [line.split()[0] for line in names] == [f"gpu-{index}" for index in range(7)]


def test_get_watch_prints_a_line_for_each_change(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    watching = kubectl.start(
        "get", "node", "gpu-1", "-w", "-o", "custom-columns=N:.metadata.name,U:.spec.unschedulable"
    )
    lines = iter(watching.stdout or ())
    first = [next(lines).split(), next(lines).split()]

    kubectl.says("cordon", "gpu-1")
    changed = next(lines).split()
    watching.terminate()
    watching.wait()

    assert first == [["N", "U"], ["gpu-1", "<none>"]]
    assert changed == ["gpu-1", "true"]


def test_get_watch_prints_tables_row_by_row(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    watching = kubectl.start("get", "nodes", "-w")
    lines = iter(watching.stdout or ())
    header, first = next(lines).split(), next(lines).split()

    store.patch(NODE, "gpu-1", {"spec": {"unschedulable": True}}, how="merge")
    changed = next(lines).split()
    watching.terminate()
    watching.wait()

    assert header[:2] == ["NAME", "STATUS"]
    assert first[:2] == ["gpu-1", "Ready"]
    assert changed[:2] == ["gpu-1", "Ready,SchedulingDisabled"]


def test_label_sets_refuses_to_overwrite_and_removes(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", labels={"pool": "a"}))

    said = kubectl.says("label", "node", "gpu-1", "nvidia.com/gpu-driver-upgrade.skip=true")
    refused = kubectl.refuses("label", "node", "gpu-1", "pool=b")
    kubectl.says("label", "node", "gpu-1", "pool-")

    assert said == "node/gpu-1 labeled\n"
    assert "'pool' already has a value (a), and --overwrite is false" in refused
    assert store.get(NODE, "gpu-1")["metadata"]["labels"] == {"nvidia.com/gpu-driver-upgrade.skip": "true"}


def test_a_label_that_is_none_is_refused_by_the_server(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    patch = json.dumps({"metadata": {"labels": {"pool": "no blanks"}}})
    refused = kubectl.refuses("patch", "node", "gpu-1", "--type=merge", "-p", patch)

    assert 'The Node "gpu-1" is invalid: metadata.labels: Invalid value: "no blanks"' in refused


def test_annotate_writes_an_annotation(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    said = kubectl.says("annotate", "node", "gpu-1", "example.com/owner=plan 7")

    assert said == "node/gpu-1 annotated\n"
    assert store.get(NODE, "gpu-1")["metadata"]["annotations"] == {"example.com/owner": "plan 7"}


def test_cordon_and_uncordon_say_what_they_did(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    said = [kubectl.says(verb, "gpu-1") for verb in ("cordon", "cordon", "uncordon")]

    assert said == ["node/gpu-1 cordoned\n", "node/gpu-1 already cordoned\n", "node/gpu-1 uncordoned\n"]
    assert "unschedulable" not in store.get(NODE, "gpu-1")["spec"]


def test_taint_adds_and_removes(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", taints=[{"key": "other", "effect": "NoSchedule"}]))

    kubectl.says("taint", "node", "gpu-1", "held=yes:NoSchedule")
    both = store.get(NODE, "gpu-1")["spec"]["taints"]
    kubectl.says("taint", "node", "gpu-1", "held-")

    assert [taint["key"] for taint in both] == ["held", "other"] or [taint["key"] for taint in both] == [
        "other",
        "held",
    ]
    assert [taint["key"] for taint in store.get(NODE, "gpu-1")["spec"]["taints"]] == ["other"]


def test_drain_waits_for_a_budget_that_is_used_up(kubectl: Kubectl, store: Store) -> None:
    app = {"app": "web"}
    owner = owner_of(store.create(REPLICA_SET, a_replica_set("web", replicas=2, labels=app), "shop"))
    store.seed(NODE, a_node("gpu-1"))
    for name in ("web-1", "web-2"):
        store.seed(POD, a_pod(name, node="gpu-1", labels=app, owner=owner), "shop")
    store.create(DISRUPTION_BUDGET, a_budget("web", app, minAvailable=2), "shop")
    _settle(store, "web", allowed=0)

    refused = kubectl.refuses("drain", "gpu-1", "--timeout=2s")

    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    assert store.get(NODE, "gpu-1")["spec"]["unschedulable"] is True
    assert len(store.list(POD, "shop")[0]) == 2


def test_drain_evicts_within_the_budget(kubectl: Kubectl, store: Store) -> None:
    app = {"app": "web"}
    owner = owner_of(store.create(REPLICA_SET, a_replica_set("web", replicas=2, labels=app), "shop"))
    store.seed(NODE, a_node("gpu-1"))
    store.seed(NODE, a_node("gpu-2"))
    store.seed(POD, a_pod("web-1", node="gpu-1", labels=app, owner=owner), "shop")
    store.seed(POD, a_pod("web-2", node="gpu-2", labels=app, owner=owner), "shop")
    store.create(DISRUPTION_BUDGET, a_budget("web", app, maxUnavailable=1), "shop")
    _settle(store, "web", allowed=1)
    draining = kubectl.start("drain", "gpu-1")

    until(lambda: "deletionTimestamp" in store.get(POD, "web-1", "shop")["metadata"])
    store.delete(POD, "web-1", "shop", grace_s=0)
    said, _ = draining.communicate(timeout=PATIENCE_S)

    assert draining.returncode == 0, said
    assert "evicting pod shop/web-1" in said
    assert {"node/gpu-1 drained", "node/gpu-1 evicted"} & set(said.splitlines())  # before 1.22 a node was "evicted"
    _settle(store, "web", allowed=0)


def test_drain_names_the_pods_it_will_not_touch(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))
    store.seed(POD, a_pod("alone", node="gpu-1"), "shop")

    refused = kubectl.refuses("drain", "gpu-1")

    assert "(use --force to override): shop/alone" in refused


def test_apply_creates_configures_and_leaves_alone(kubectl: Kubectl, store: Store) -> None:
    said = [kubectl.says("apply", "-f", "-", given=DAEMON_SET)]
    said.append(kubectl.says("apply", "-f", "-", given=DAEMON_SET))
    said.append(kubectl.says("apply", "-f", "-", given=DAEMON_SET.replace('{name: A, value: "1"}, ', "")))
    found = json.loads(kubectl.says("get", "ds", "agent", "-n", "shop", "-o", "json"))
    kubectl.says("delete", "ds", "agent", "-n", "shop")

    assert [line.split()[1].strip() for line in said] == ["created", "unchanged", "configured"]
    assert found["metadata"]["generation"] == 2
    assert found["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "B", "value": "2"}]


def test_apply_refuses_a_field_that_no_schema_knows(kubectl: Kubectl, store: Store) -> None:
    wrong = DAEMON_SET.replace("  selector:", "  bogus: 1\n  selector:")

    refused = kubectl.refuses("apply", "-f", "-", given=wrong)

    # The server says so; kubectl older than 1.25 finds out by itself, from the server's schema.
    assert 'unknown field "spec.bogus"' in refused or 'unknown field "bogus" in' in refused


def test_apply_and_print_a_custom_resource(kubectl: Kubectl, store: Store) -> None:
    kubectl.says("apply", "-f", "-", given=json.dumps(a_definition()))
    kubectl.says("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=120s")
    said = [kubectl.says("apply", "-f", "-", given=json.dumps(a_widget("one", version=version))) for version in "12"]

    listed = [line.split() for line in kubectl.says("get", "wd").splitlines()]
    explained = kubectl.says("explain", "widget.spec.version")

    assert [line.split()[1] for line in said] == ["created", "configured"]
    assert listed[0] == ["NAME", "VERSION", "STATE", "AGE"]
    assert listed[1][:2] == ["one", "2"]
    assert re.search(r"FIELD: +version <string>", explained)


def test_delete_says_deleted_and_then_finds_nothing(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1"))

    said = kubectl.says("delete", "node", "gpu-1")
    refused = kubectl.refuses("get", "node", "gpu-1")

    assert said == 'node "gpu-1" deleted\n'
    assert refused == 'Error from server (NotFound): nodes "gpu-1" not found\n'


def test_logs_follow_the_container(kubectl: Kubectl, store: Store, simulation: Simulation) -> None:
    store.seed(NODE, a_node("gpu-1"))
    store.seed(POD, a_pod("talker", node="gpu-1"), "shop")
    written = [f"2026-01-01T00:00:0{second}Z line {second}" for second in range(3)]
    simulation.ends.read_log = lambda _pod, _container, is_previous: None if is_previous else written

    whole = kubectl.says("logs", "talker", "-n", "shop")
    tail = kubectl.says("logs", "talker", "-n", "shop", "--tail=1", "--timestamps")
    refused = kubectl.refuses("logs", "talker", "-n", "shop", "--previous")

    assert whole == "line 0\nline 1\nline 2\n"
    assert tail == "2026-01-01T00:00:02Z line 2\n"
    assert 'previous terminated container "main" in pod "talker" not found' in refused


def test_describe_node_shows_its_pods_and_room(kubectl: Kubectl, store: Store) -> None:
    store.seed(NODE, a_node("gpu-1", labels={"pool": "a"}))
    wants = {"limits": {"nvidia.com/gpu": 4}}
    container = {"name": "main", "image": "app:1", "resources": wants}
    store.seed(POD, a_pod("trainer", node="gpu-1", containers=[container]), "shop")

    said = kubectl.says("describe", "node", "gpu-1")

    assert "Kernel Version:             5.15.0-119-generic" in said
    assert "shop" in said
    assert "trainer" in said
    assert [line.split() for line in said.splitlines() if "nvidia.com/gpu" in line][-1] == ["nvidia.com/gpu", "4", "4"]


def test_explain_knows_the_fields_of_nodes(kubectl: Kubectl, store: Store) -> None:
    assert "unschedulable\t<boolean>" in kubectl.says("explain", "node.spec")


def test_version_names_the_server(kubectl: Kubectl, store: Store) -> None:
    assert json.loads(kubectl.says("version", "-o", "json"))["serverVersion"]["gitVersion"].startswith("v1.")


def _settle(store: Store, budget: str, *, allowed: int) -> None:
    def is_settled() -> bool:
        status = store.get(DISRUPTION_BUDGET, budget, "shop").get("status") or {}
        return status.get("disruptionsAllowed") == allowed and "expectedPods" in status

    until(is_settled)
