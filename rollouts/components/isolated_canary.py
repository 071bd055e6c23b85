"""A canary with a driver object of its own, so that the fleet's object stays unchanged and no other node is armed.
Pure.

Hazard Z4. From operator 26.7.0 on an NVIDIADriver with `spec.default` takes the nodes that no other object selects. A
node changes its object with its labels, and each object has its own upgrade policy. The operator refuses two objects
that select one node (gpu-operator, api/nvidia/v1alpha1/nvidiadriver_types.go, internal/validator). The node's driver
pod is then replaced without a drain, which explains the order of the steps.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gpu.labels import CANARY, DRIVER_VERSION

LONGEST_LABEL = 63


@dataclass(frozen=True)
class Step:
    sentence: str
    command: str  # for a shell, with kubectl speaking to the plan's cluster


@dataclass(frozen=True)
class IsolatedCanary:
    """The steps to try a version apart from the plan. A `reason` says why they are impossible here."""

    reason: str
    steps: tuple[Step, ...] = ()
    rollback: tuple[Step, ...] = ()


def isolated_canary(
    driver_object: str,
    *,
    kind: str,
    is_fallback: bool,
    has_own_policies: bool | None,
    since: str,
    to_version: str,
    nodes: Sequence[str],
) -> IsolatedCanary:
    """Returns the steps. `kind` is the driver object's kind.

    `has_own_policies` tells whether the operator is at least `since`; None means that its version is unknown.
    """
    if kind != "NVIDIADriver":
        return IsolatedCanary(f"A {kind} has one driver version for the whole cluster.")
    if has_own_policies is None:
        return IsolatedCanary(
            f"An isolated canary needs operator {since} or newer, and the operator's version is unknown."
        )
    if not has_own_policies:
        return IsolatedCanary(f"An isolated canary needs operator {since} or newer.")
    if not is_fallback:
        return IsolatedCanary(
            f"{driver_object} is not the default NVIDIADriver (spec.default). A second object for the same nodes "
            "would conflict with it, and the operator would stop at both objects."
        )
    if not nodes:
        return IsolatedCanary("The first stage has no nodes.")
    name = f"{driver_object[: LONGEST_LABEL - len('-canary')].rstrip('-.')}-canary"
    return IsolatedCanary("", _steps(driver_object, name, to_version, nodes), _rollback(name, nodes))


def _steps(driver_object: str, name: str, to_version: str, nodes: Sequence[str]) -> tuple[Step, ...]:
    return (
        Step(
            f"Create an object that selects only nodes with the label {CANARY}={name}. No node has it yet.",
            f"{_copy(driver_object, name, to_version)} | kubectl create -f -",
        ),
        Step(
            (
                "Drain the nodes. The drain stops at pods that would lose data or would not start "
                "again. Decide about these pods yourself."
            ),
            _drain(nodes),
        ),
        Step(
            "Add the label to the nodes. The operator removes the old driver and installs the new driver.",
            f"kubectl label nodes {shlex.join(nodes)} {CANARY}={name}",
        ),
        Step(
            "Wait until the object is ready, then read the labels of the nodes.",
            f"kubectl wait nvidiadriver/{name} --for=jsonpath='{{.status.state}}'=ready --timeout=45m "
            f"&& kubectl get nodes -l {CANARY}={name} -L {DRIVER_VERSION}",
        ),
        Step("Let pods return, and evaluate them.", f"kubectl uncordon {shlex.join(nodes)}"),
    )


def _rollback(name: str, nodes: Sequence[str]) -> tuple[Step, ...]:
    return (
        Step("Drain them again.", _drain(nodes)),
        Step(
            "Remove the label. The operator then restores the fleet's driver.",
            f"kubectl label nodes {shlex.join(nodes)} {CANARY}-",
        ),
        Step("Once no node has the label, delete the object.", f"kubectl delete nvidiadriver {name}"),
        Step("Let pods come back.", f"kubectl uncordon {shlex.join(nodes)}"),
    )


def _copy(driver_object: str, name: str, to_version: str) -> str:
    """Returns a copy of the fleet's object with another name, version and selector, for `kubectl create`."""
    changes = [
        {"op": "replace", "path": "/metadata", "value": {"name": name}},
        {"op": "replace", "path": "/spec/version", "value": to_version},
        {"op": "remove", "path": "/spec/default"},
        {"op": "add", "path": "/spec/nodeSelector", "value": {CANARY: name}},
    ]
    patch = shlex.quote(json.dumps(changes))
    return f"kubectl patch nvidiadriver {shlex.quote(driver_object)} --dry-run=client -o json --type=json -p {patch}"


def _drain(nodes: Sequence[str]) -> str:
    return f"kubectl drain {shlex.join(nodes)} --ignore-daemonsets"
