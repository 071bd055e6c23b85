"""The admission policy that narrows our account to its own fields. A real API server judges it, where one is given."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.visitor import wait_until
from gpu import external_controllers, labels
from gpu.external_controllers import MetadataPart
from maintenance.actors import ACTORS
from maintenance.actors.base import ClusterActor
from operations.writer_lease import LEASE_NAME
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.driver_policy import DriverPolicy
from simulator.actors.repairers import janitor_definitions, lifecycle_definitions, metal3_definitions
from simulator.fleets.definitions import definitions
from tests.patience import PATIENCE_S

RBAC = Path(__file__).resolve().parents[2] / "deploy" / "rbac"
GIVEN = os.environ.get("QUARTERDECK_TEST_KUBECONFIG", "")
ACCOUNT = "system:serviceaccount:quarterdeck:quarterdeck"
NODE, DRIVER = "policy-node", "policy-driver"
real = pytest.mark.skipif(not GIVEN, reason="no real API server is given in QUARTERDECK_TEST_KUBECONFIG")


def policies() -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((RBAC / "policy.yaml").read_text())
    return {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"].endswith("Policy")}


def variable(name: str) -> Any:
    (found,) = [one["expression"] for one in policies()["quarterdeck-nodes"]["variables"] if one["name"] == name]
    return json.loads(found)


def test_it_names_every_label_and_annotation_that_we_write():
    parts = {
        part: {one.name for one in external_controllers.EXTERNAL_CONTROLLERS.values() if one.part == part}
        for part in MetadataPart
    }

    assert set(variable("ownLabels")) == {
        labels.UPGRADE_SKIP,
        labels.UPGRADE_STATE,
        labels.IN_POOL,
        *parts[MetadataPart.LABELS],
    }
    assert set(variable("ownAnnotations")) == {labels.WAS_CORDONED, *parts[MetadataPart.ANNOTATIONS]}
    ours = (labels.HELD_BY, labels.HELD_SINCE, labels.CORDONED_BY, labels.EXCLUDED_BY, labels.PUT_BACK)
    assert all(key.startswith("quarterdeck.io/") for key in ours)


def rights_to_write() -> set[tuple[str, str, str]]:
    """Group, resource and operation of each rule of the manifest that lets our account write."""
    operations = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
    documents = yaml.safe_load_all((RBAC / "quarterdeck.yaml").read_text())
    return {
        (group, resource, operations[verb])
        for document in documents
        for rule in document.get("rules", [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in operations
    }


def test_every_right_to_write_is_narrowed_by_a_policy_and_no_other():
    def is_matched(right: tuple[str, str, str], rule: dict[str, Any]) -> bool:
        group, resource, operation = right
        names = {resource, "*"} | ({f"{resource.partition('/')[0]}/*"} if "/" in resource else set())
        return group in rule["apiGroups"] and bool(names & set(rule["resources"])) and operation in rule["operations"]

    rules = [rule for spec in policies().values() for rule in spec["matchConstraints"]["resourceRules"]]

    assert {right for right in rights_to_write() if not any(is_matched(right, rule) for rule in rules)} == set()
    assert [rule for rule in rules if not any(is_matched(right, rule) for right in rights_to_write())] == []


def test_the_objects_of_repairs_are_those_of_the_actors():
    groups = {"janitor.dgxc.nvidia.com", "metal3.io"}
    actors = [one for one in ACTORS.values() if isinstance(one, ClusterActor)]
    written = {resource for group, resource, _ in rights_to_write() if group in groups}

    assert {f"{one.object_kind.lower()}s" for one in actors} == written
    assert all(any(group.endswith(one.group_suffix) for group in groups) for one in actors)
    assert all(name in policies()["quarterdeck-repairs"]["validations"][0]["expression"] for name in written)
    assert LEASE_NAME in policies()["quarterdeck-leases"]["validations"][0]["expression"]


def test_its_fields_of_driver_objects_are_those_of_the_components():
    assert (DriverCrd.path, DriverPolicy.path) == (("spec", "version"), ("spec", "driver", "version"))


def test_it_binds_our_account_alone_and_denies():
    documents = list(yaml.safe_load_all((RBAC / "policy.yaml").read_text()))
    bound = {one["spec"]["policyName"]: one["spec"] for one in documents if one["kind"].endswith("Binding")}

    assert bound.keys() == policies().keys()
    assert all("Deny" in spec["validationActions"] for spec in bound.values())
    for spec in policies().values():
        assert spec["failurePolicy"] == "Fail"
        assert [one["expression"] for one in spec["matchConditions"]] == [f'request.userInfo.username == "{ACCOUNT}"']


def kubectl(*words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = ["kubectl", "--kubeconfig", GIVEN, *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def apply(*objects: dict[str, Any]) -> None:
    ended = kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(objects))
    assert ended.returncode == 0, ended.stderr


def refusal(*words: str, user: str = ACCOUNT, text: str = "") -> str:
    """Returns the API server's refusal of a dry run; empty when it accepts."""
    ended = kubectl(*words, f"--as={user}", "--dry-run=server", text=text)
    return ended.stderr if ended.returncode else ""


def patch(kind: str, name: str, wanted: dict[str, Any], *, user: str = ACCOUNT) -> str:
    return refusal("patch", kind, name, "--type=merge", f"--patch={json.dumps(wanted)}", user=user)


def node_patch(part: str, key: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {part: {key: value}}}


def with_rights(**given: Any) -> dict[str, Any]:
    return {"name": "main", "image": "x", "securityContext": {"allowPrivilegeEscalation": False} | given}


def a_job(*, owner: str = "quarterdeck", **pod: Any) -> str:
    spec = {
        "containers": [with_rights()],
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}}
    job["metadata"]["labels"] = {labels.MANAGED_BY: owner}
    return json.dumps(job | {"spec": {"template": {"spec": spec | pod}}})


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A node, driver objects, somebody's Job, and the policy. RBAC allows our account everything."""
    marks = {"labels": {"zone": "a"}, "annotations": {"note": "b"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, **marks}}
    node["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "providerID": "metal://1"}
    roles = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    admin = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": DRIVER},
    }
    admin |= {"roleRef": roles, "subjects": [{"kind": "User", "name": ACCOUNT}]}
    driver = {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": DRIVER}}
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": DRIVER}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    repairs = [*janitor_definitions(), *lifecycle_definitions(), *metal3_definitions()]
    apply(*definitions(is_26_7=True), *repairs, node, admin, pod)
    served = ("get", "nvidiadrivers,clusterpolicies,rebootnodes,gpuresets,maintenancerequests,baremetalhosts")
    wait_until(lambda: kubectl(*served).returncode == 0, what="the driver objects", timeout_s=PATIENCE_S)
    apply(
        driver | {"spec": {"version": "570.1", "image": "driver"}},
        policy | {"spec": {"driver": {"version": "570.1", "enabled": True}, "toolkit": {"enabled": True}}},
        json.loads(a_job(owner="somebody")),
        {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {"name": "host", "namespace": "default"},
        },
    )
    apply(*yaml.safe_load_all((RBAC / "policy.yaml").read_text()))
    foreign = node_patch("labels", "zone", "b")
    wait_until(
        lambda: "only these labels" in patch("node", NODE, foreign),
        what="the policy to be in force",
        timeout_s=PATIENCE_S,
    )
    yield
    kubectl("delete", "clusterrolebinding", DRIVER)
    kubectl("delete", "node", NODE)
    kubectl("delete", "crd", *(one["metadata"]["name"] for one in (*definitions(is_26_7=True), *repairs)))
    kubectl("delete", "job", "j")
    kubectl("delete", "pod", "p", "r", "--ignore-not-found", "--force", "--grace-period=0")  # no kubelet ends them


OWN = [
    node_patch("labels", labels.UPGRADE_SKIP, "true"),
    node_patch("labels", labels.UPGRADE_STATE, "upgrade-required"),
    node_patch("labels", labels.SENTINEL_MANAGED, "false"),
    node_patch("annotations", labels.HELD_BY, "plan-7"),
    node_patch("annotations", labels.PUT_BACK, "{}"),
    node_patch("annotations", labels.WAS_CORDONED, "true"),
    node_patch("annotations", labels.KARPENTER_LEAVE, "true"),
    node_patch("annotations", labels.AUTOSCALER_LEAVE, "true"),
    {"spec": {"unschedulable": True}},
    {
        "spec": {
            "taints": [
                {"key": "gpu", "effect": "NoSchedule"},
                {"key": labels.OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"},
            ]
        }
    },
]
FOREIGN = [
    (node_patch("labels", "zone", "b"), "may change only these labels"),
    (node_patch("labels", "zone", None), "may change only these labels"),
    (node_patch("labels", "new", "x"), "may change only these labels"),
    (node_patch("annotations", "note", "c"), "may change only its own annotations"),
    (node_patch("annotations", "note", None), "may change only its own annotations"),
    ({"spec": {"taints": []}}, "only the taint"),
    ({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}, "only the taint"),
    ({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}}, "only spec.unschedulable"),
    ({"metadata": {"finalizers": ["example.com/x"]}}, "finalizers"),
]


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("wanted", OWN)
def test_what_quarterdeck_writes_to_a_node_is_accepted(wanted):
    assert patch("node", NODE, wanted) == ""


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("wanted", "sentence"), FOREIGN)
def test_everything_else_of_a_node_is_refused_to_our_account_alone(wanted, sentence):
    assert sentence in patch("node", NODE, wanted)
    assert "Quarterdeck may" not in patch("node", NODE, wanted, user="admin")


@real
@pytest.mark.usefixtures("cluster")
def test_a_node_is_not_created_deleted_or_given_a_status():
    node = json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "another"}})

    assert "may not create or delete a node" in refusal("create", "-f", "-", text=node)
    assert "may not create or delete a node" in refusal("delete", "node", NODE)
    status = ("patch", "node", NODE, "--subresource=status", "--type=merge", '--patch={"status":{"phase":"Running"}}')
    assert "may not create or delete a node" in refusal(*status)


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("kind", "wanted", "sentence"),
    [
        ("nvidiadriver", {"spec": {"version": "580.2"}}, ""),
        ("nvidiadriver", {"spec": {"image": "other"}}, "only the driver's version"),
        ("nvidiadriver", {"metadata": {"labels": {"a": "b"}}}, "may not change labels"),
        ("clusterpolicy", {"spec": {"driver": {"version": "580.2"}}}, ""),
        ("clusterpolicy", {"spec": {"driver": {"enabled": False}}}, "only the version in the driver"),
        ("clusterpolicy", {"spec": {"toolkit": {"enabled": False}}}, "only the driver's version"),
    ],
)
def test_of_a_driver_object_only_the_version_changes(kind, wanted, sentence):
    refused = patch(kind, DRIVER, wanted)

    assert sentence in refused
    assert bool(refused) == bool(sentence)


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (a_job(), ""),
        (a_job(owner="somebody"), "only its own Jobs"),
        (a_job(automountServiceAccountToken=True), "has no token"),
        (a_job(hostNetwork=True), "no network, processes or IPC of the node"),
        (a_job(hostIPC=True), "no network, processes or IPC of the node"),
        (a_job(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "no volume but emptyDir"),
        (a_job(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]), ""),
        (a_job(containers=[{"name": "main", "image": "x"}]), "no escalation of privileges"),
        (
            a_job(containers=[{"name": "main", "image": "x", "securityContext": {"privileged": True}}]),
            "no added capability but SYSLOG",
        ),
        (a_job(containers=[with_rights(capabilities={"add": ["SYS_ADMIN"]})]), "no added capability but SYSLOG"),
        (a_job(containers=[with_rights(capabilities={"drop": ["ALL"], "add": ["SYSLOG"]})]), ""),
    ],
)
def test_a_job_is_ours_and_has_no_way_to_the_node(job, sentence):
    refused = refusal("create", "-f", "-", text=job.replace('"name": "j"', '"name": "mine"'))

    assert sentence in refused
    assert bool(refused) == bool(sentence)


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "names the UID"),
        ({"preconditions": {"uid": "u"}, "gracePeriodSeconds": 0}, "keeps the pod's grace period"),
        ({"preconditions": {"uid": "u"}}, ""),
    ],
)
def test_an_eviction_names_its_pod_and_keeps_the_grace_period(options, sentence):
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"}}
    eviction["deleteOptions"] = {"dryRun": ["All"], **options}
    path = "/api/v1/namespaces/default/pods/p/eviction"

    refused = kubectl("create", "--raw", path, "-f", "-", f"--as={ACCOUNT}", text=json.dumps(eviction)).stderr

    assert sentence in refused
    assert ("An eviction by Quarterdeck" in refused) == bool(sentence)  # the API server itself refuses another UID


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "is_refused"), [({}, False), ({"gracePeriodSeconds": 0}, True), ({"preconditions": {}}, True)]
)
def test_a_running_pod_is_deleted_by_its_uid_within_its_grace_period(options, is_refused):
    spec = {"nodeName": NODE, "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "r", "namespace": "default"}, "spec": spec})
    uid = kubectl("get", "pod", "r", "-o", "jsonpath={.metadata.uid}").stdout
    deletion = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], "preconditions": {"uid": uid}}
    path = "/api/v1/namespaces/default/pods/r"

    ended = kubectl("delete", "--raw", path, "-f", "-", f"--as={ACCOUNT}", text=json.dumps(deletion | options))

    assert ("may not create or change pods" in ended.stderr) == is_refused == bool(ended.returncode)


@real
@pytest.mark.usefixtures("cluster")
def test_pods_and_leases_of_others_are_left_alone():
    def lease(name: str) -> str:
        metadata = {"name": name, "namespace": "default"}
        return json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})

    assert "may not create or change pods" in refusal("delete", "pod", "p")
    assert refusal("create", "-f", "-", text=lease("quarterdeck")) == ""
    assert "only its own Lease" in refusal("create", "-f", "-", text=lease("other"))


REBOOT = {"nodeName": NODE, "force": False}
OURS = {labels.MANAGED_BY: "quarterdeck"}


def maintenance(action: str) -> dict:
    return {"healthEvent": {"nodeName": NODE, "recommendedAction": action}}


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("kind", "marks", "spec", "sentence"),
    [
        ("RebootNode", OURS, REBOOT, ""),
        ("GPUReset", OURS, {"nodeName": NODE}, ""),
        ("RebootNode", {}, REBOOT, "only its own RebootNodes"),
        ("RebootNode", OURS, REBOOT | {"force": True}, "may not force a reboot"),
        ("MaintenanceRequest", OURS, maintenance("NONE"), ""),
        ("MaintenanceRequest", {}, maintenance("NONE"), "only its own RebootNodes"),
        ("MaintenanceRequest", OURS, maintenance("RESTART_VM"), "for no action after them"),
    ],
)
def test_a_repair_is_ours_and_forces_nothing(kind, marks, spec, sentence):
    is_request = kind == "MaintenanceRequest"
    group = "nvsentinel.dgxc.nvidia.com/v1" if is_request else "janitor.dgxc.nvidia.com/v1alpha1"
    asked = {"apiVersion": group, "kind": kind, "metadata": {"name": "r", "labels": marks}, "spec": spec}

    refused = refusal("create", "-f", "-", text=json.dumps(asked))

    assert sentence in refused
    assert bool(refused) == bool(sentence)


@real
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"metadata": {"annotations": {"reboot.metal3.io": ""}}}, ""),
        ({"metadata": {"annotations": {"other": "x"}}}, "only the annotation reboot.metal3.io"),
        ({"metadata": {"labels": {"a": "b"}}}, "labels and finalizers of a BareMetalHost"),
        ({"metadata": {"finalizers": ["example.com/x"]}}, "labels and finalizers of a BareMetalHost"),
    ],
)
def test_of_a_host_only_the_reboot_annotation_changes(wanted, sentence):
    refused = patch("baremetalhost", "host", wanted)

    assert sentence in refused
    assert bool(refused) == bool(sentence)


@real
@pytest.mark.usefixtures("cluster")
def test_a_job_of_somebody_else_is_not_deleted():
    assert "only its own Jobs" in refusal("delete", "job", "j")
