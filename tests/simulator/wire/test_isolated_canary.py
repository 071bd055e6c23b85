"""What a plan offers for a canary with a driver object of its own, in a shell with a real kubectl."""

import subprocess
from collections.abc import Callable, Iterable

import pytest

from demo.visitor import wait_until
from rollouts.components.isolated_canary import Step, isolated_canary
from simulator.run import Simulation
from tests.patience import PATIENCE_S
from tests.simulator.wire.kubectl import Kubectl

NEW = "580.126.20"
TIMEOUT_S = PATIENCE_S


@pytest.fixture(scope="module")
def kubectl(start: Callable[..., Simulation]) -> Kubectl:
    """A fleet with one NVIDIADriver, which is everybody's default."""
    running = start("--fleet", "mixed", "--nodes", "4", "--mix", "h100=1", "--speed", "30")
    kubectl = Kubectl(running.kubeconfig)
    (name,) = kubectl.says("get", "nvidiadrivers", "-o", "name").split()
    changes = '[{"op": "remove", "path": "/spec/nodeSelector"}, {"op": "add", "path": "/spec/default", "value": true}]'
    kubectl.says("patch", name, "--type=json", "-p", changes)
    return kubectl


def carry_out(kubectl: Kubectl, steps: Iterable[Step]) -> None:
    environment = {**kubectl.environment(), "KUBECONFIG": str(kubectl.kubeconfig)}
    for step in steps:
        done = subprocess.run(
            ["/bin/sh", "-c", step.command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{step.command}\n{done.stdout}{done.stderr}"


def versions(kubectl: Kubectl) -> dict[str, str]:
    path = r"{range .items[*]}{.metadata.name}={.metadata.labels.nvidia\.com/cuda\.driver-version\.full}{'\n'}{end}"
    said = kubectl.says("get", "nodes", "-l", "nvidia.com/gpu.present=true", "-o", f"jsonpath={path}")
    return dict(line.split("=") for line in said.split())


def named(kubectl: Kubectl) -> dict[str, str] | None:
    """None: a node does not say yet."""
    found = versions(kubectl)
    return found if all(found.values()) else None


def test_only_the_canary_changes_and_the_rollback_brings_it_back(kubectl: Kubectl):
    """Z4."""
    before = versions(kubectl)
    name = kubectl.says("get", "nvidiadrivers", "-o", "jsonpath={.items[0].metadata.name}")
    canary = sorted(before)[:2]
    offered = isolated_canary(
        name,
        kind="NVIDIADriver",
        is_fallback=True,
        has_own_policies=True,
        since="26.7.0",
        to_version=NEW,
        nodes=canary,
    )

    carry_out(kubectl, offered.steps)
    # Feature discovery begins anew behind the driver: for a moment nothing says which it is.
    during = wait_until(lambda: named(kubectl), what="nodes that name their drivers", timeout_s=PATIENCE_S)
    carry_out(kubectl, offered.rollback)

    assert during == before | dict.fromkeys(canary, NEW)
    assert kubectl.says("get", "nvidiadrivers", "-o", "jsonpath={.items[*].metadata.name}") == name
    assert "unschedulable" not in kubectl.says("get", "nodes", "-o", "yaml")
