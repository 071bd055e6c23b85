"""A mixed fleet as a stranger sees it: kubectl and bare HTTP against a simulator that plays."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from simulator.run import Simulation
from tests.patience import PATIENCE_S
from tests.simulator.wire.kubectl import Kubectl

WAIT_S = PATIENCE_S
TAGS = re.compile(r'(\w+)="([^"]*)"')
FLEET = ("--fleet", "mixed", "--nodes", "6", "--mix", "h100=1,mig-mixed=1,time-slicing=1,dra=1,amd=1,preinstalled=1")
GROUP = "resource.k8s.io"
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: claimer}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers: [{name: main, image: cuda, resources: {claims: [{name: gpu}]}}]
"""
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus}
spec: {hard: {requests.nvidia.com/gpu: "0"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: greedy}
spec:
  selector: {matchLabels: {app: greedy}}
  template:
    metadata: {labels: {app: greedy}}
    spec: {containers: [{name: main, image: cuda, resources: {limits: {nvidia.com/gpu: "1"}}}]}
"""


@pytest.fixture(scope="module")
def fleet(start: Callable[..., Simulation]) -> Simulation:
    return start(*FLEET, "--speed", "10")


@pytest.fixture(scope="module")
def kubectl(fleet: Simulation) -> Kubectl:
    return Kubectl(fleet.kubeconfig)


def read(kubectl: Kubectl, *words: str) -> Any:
    return json.loads(kubectl.says("get", *words, "-o", "json"))


def until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.2)
    raise AssertionError("it never came to be")


def test_nodes_offer_what_their_kind_offers(kubectl: Kubectl) -> None:
    nodes = {node["metadata"]["name"]: node["status"]["allocatable"] for node in read(kubectl, "nodes")["items"]}

    assert nodes["gpu-time-slicing-001"]["nvidia.com/gpu"] == "32"
    assert nodes["gpu-mig-mixed-001"]["nvidia.com/mig-1g.10gb"] == "16"
    assert nodes["gpu-amd-001"]["amd.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in nodes["gpu-dra-001"]


def test_slices_are_listed_by_node_and_shown_with_their_driver(kubectl: Kubectl) -> None:
    table = kubectl.says("get", "resourceslices", "--field-selector", "spec.nodeName=gpu-dra-001")

    assert table.split()[:5] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert "gpu.nvidia.com" in table


def test_a_pod_that_claims_is_given_a_device(kubectl: Kubectl) -> None:
    kubectl.says("apply", "-f", "-", given=CLAIM)

    claim = until(
        lambda: [each for each in read(kubectl, "resourceclaims")["items"] if "reservedFor" in each["status"]]
    )
    result = claim[0]["status"]["allocation"]["devices"]["results"][0]
    until(lambda: read(kubectl, "pod", "claimer")["status"]["phase"] == "Running")

    assert (result["driver"], result["pool"]) == ("gpu.nvidia.com", "gpu-dra-001")
    assert "allocated,reserved" in kubectl.says("get", "resourceclaims")


def test_a_claim_ends_with_its_pod(kubectl: Kubectl) -> None:
    kubectl.says("apply", "-f", "-", given=CLAIM)
    until(lambda: read(kubectl, "resourceclaims")["items"])

    kubectl.says("delete", "pod", "claimer", "--wait=false")

    until(lambda: not read(kubectl, "resourceclaims")["items"])


def test_a_used_up_quota_is_told_on_the_owner(kubectl: Kubectl) -> None:
    kubectl.says("apply", "-f", "-", given=QUOTA)

    told = until(lambda: read(kubectl, "events", "--field-selector", "reason=FailedCreate")["items"])

    assert told[0]["involvedObject"]["kind"] == "ReplicaSet"
    assert "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1" in told[0]["message"]
    assert until(lambda: "requests.nvidia.com/gpu: 0/0" in kubectl.says("get", "quota"))


def test_the_last_words_of_a_crash_are_in_the_previous_log(kubectl: Kubectl, fleet: Simulation) -> None:
    fault = {"key": "broken_operand", "how": "headers", "node": "gpu-h100-001"}
    httpx.post(f"{fleet.url}/simulator/faults", json=fault).raise_for_status()
    where = ("pods", "-n", "gpu-operator", "--field-selector", "spec.nodeName=gpu-h100-001")
    driver = ("-l", "app.kubernetes.io/component=nvidia-driver")

    def crashed() -> str:
        pods = read(kubectl, *where, *driver)["items"]
        held = [each for pod in pods for each in pod["status"].get("containerStatuses") or ()]
        is_over = any("terminated" in each["lastState"] for each in held)
        return pods[0]["metadata"]["name"] if is_over else ""

    log = kubectl.says("logs", until(crashed), "-n", "gpu-operator", "-c", "nvidia-driver-ctr", "--previous")
    httpx.delete(f"{fleet.url}/simulator/faults").raise_for_status()

    assert "Could not resolve Linux kernel version" in log.splitlines()


def test_an_exporter_behind_the_pod_proxy_names_the_pods_that_hold_its_gpus(kubectl: Kubectl) -> None:
    node = "gpu-h100-001"
    where = (
        "pods",
        "-n",
        "gpu-operator",
        "--field-selector",
        f"spec.nodeName={node}",
        "-l",
        "app=nvidia-dcgm-exporter",
    )
    (exporter,) = until(lambda: read(kubectl, *where)["items"])

    path = f"/api/v1/namespaces/gpu-operator/pods/http:{exporter['metadata']['name']}:9400/proxy/metrics"
    # An exporter serves once it runs, and names pods once they do.
    until(lambda: 'pod="' in kubectl.run("get", "--raw", path).stdout)
    text = kubectl.says("get", "--raw", path)
    tenants = read(kubectl, "pods", "-A", "--field-selector", f"spec.nodeName={node}")["items"]

    lines = [line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_UTIL{")]
    named = {(found["namespace"], found["pod"]) for line in lines if "pod" in (found := dict(TAGS.findall(line)))}
    assert len(lines) == 8
    assert named
    assert named <= {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in tenants}


def test_another_cut_is_asked_for_by_label(kubectl: Kubectl) -> None:
    node = "gpu-preinstalled-001"
    kubectl.says("scale", "replicaset", "preinstalled", "-n", "research", "--replicas=0")
    until(lambda: not read(kubectl, "pods", "-n", "research")["items"])

    kubectl.says("label", "node", node, "nvidia.com/mig.config=all-1g.10gb", "--overwrite")

    until(lambda: read(kubectl, "node", node)["status"]["allocatable"]["nvidia.com/gpu"] == "56")


@pytest.mark.parametrize(("api", "version"), [("v1", "v1"), ("v1beta2", "v1beta2"), ("v1beta1", "v1beta1")])
def test_the_group_is_served_in_the_version_asked_for(start: Callable[..., Simulation], api: str, version: str) -> None:
    simulation = start("--fleet", "mixed", "--nodes", "1", "--mix", "dra=1", "--resource-api", api)

    slices = httpx.get(f"{simulation.url}/apis/{GROUP}/{version}/resourceslices").json()
    device = slices["items"][0]["spec"]["devices"][0]
    about = device["basic"] if version == "v1beta1" else device

    assert httpx.get(f"{simulation.url}/apis/{GROUP}").json()["preferredVersion"]["version"] == version
    assert about["attributes"]["driverVersion"] == {"version": "580.95.5"}


def test_a_cluster_can_be_without_the_group(start: Callable[..., Simulation]) -> None:
    simulation = start("--fleet", "mixed", "--nodes", "1", "--mix", "h100=1", "--resource-api", "none")

    groups = {group["name"] for group in httpx.get(f"{simulation.url}/apis").json()["groups"]}

    assert GROUP not in groups
    assert httpx.get(f"{simulation.url}/apis/{GROUP}/v1/resourceslices").status_code == 404


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--mix", "dra=1", "--resource-api", "none"), "leave `dra` out of the mix"),
        (("--mix", "h200=1"), "one of h100, a100"),
        (("--mode", "gpu-cluster", "--operator", "v26.3.3"), "from v26.7"),
    ],
)
def test_a_mix_that_cannot_be_ends_with_a_sentence(words: tuple[str, ...], why: str) -> None:
    asked = [sys.executable, "-m", "simulator", "--fleet", "mixed", "--nodes", "1", *words]

    done = subprocess.run(asked, capture_output=True, text=True, timeout=WAIT_S, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("simulator: ")
    assert why in done.stderr


@pytest.mark.parametrize("mode", ["cluster-policy", "gpu-cluster"])
def test_a_mode_shows_in_the_operators_objects(start: Callable[..., Simulation], mode: str) -> None:
    simulation = start("--fleet", "mixed", "--nodes", "2", "--mix", "h100=1", "--mode", mode)

    def states(version: str, plural: str) -> list[str]:
        found = httpx.get(f"{simulation.url}/apis/nvidia.com/{version}/{plural}").json()["items"]
        return [each["status"]["state"] for each in found]

    shown = (states("v1", "clusterpolicies"), states("v1alpha1", "nvidiadrivers"), states("v1alpha1", "gpuclusters"))
    assert shown == ((["ready"], [], []) if mode == "cluster-policy" else ([], ["ready"], ["ready"]))
