"""Defaults of pods and pod templates: k8s.io/kubernetes, apis/core/v1/defaults.go and its admission plugins."""

from typing import Any

Obj = dict[str, Any]

POD_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
NOT_READY_TOLERATIONS = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


def filled_pod(obj: Obj) -> Obj:
    spec = filled_pod_spec(obj.get("spec") or {})
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("priority", 0)
    spec["tolerations"] = _tolerations(spec.get("tolerations") or [])
    status = {"phase": "Pending", "qosClass": qos_class(spec), **(obj.get("status") or {})}
    return {**obj, "spec": spec, "status": status}


def filled_pod_spec(spec: Obj) -> Obj:
    filled = {**POD_SPEC, "securityContext": {}, **spec}
    for member in ("containers", "initContainers"):
        if member in spec:
            filled[member] = [_filled_container(container) for container in spec[member]]
    return filled


def filled_template(template: Obj) -> Obj:
    metadata = {"creationTimestamp": None, **(template.get("metadata") or {})}
    return {**template, "metadata": metadata, "spec": filled_pod_spec(template.get("spec") or {})}


def _filled_container(container: Obj) -> Obj:
    tag = container.get("image", "").rpartition("/")[2].partition(":")[2]
    pull = "Always" if tag in {"", "latest"} and "@" not in container.get("image", "") else "IfNotPresent"
    filled = {**container, "resources": _filled_resources(container.get("resources") or {})}
    if "ports" in container:
        filled["ports"] = [{"protocol": "TCP", **port} for port in container["ports"]]
    return {**CONTAINER, "imagePullPolicy": pull, **filled}


def _filled_resources(resources: Obj) -> Obj:
    """A limit is its own request where none is given."""
    filled = {**resources, **{side: amounts(resources[side]) for side in ("limits", "requests") if resources.get(side)}}
    if "limits" in filled:
        filled["requests"] = {**filled["limits"], **filled.get("requests", {})}
    return filled


def amounts(quantities: Obj) -> Obj:
    """Quantities may be written as numbers; they are always read as strings."""
    return {name: str(quantity) for name, quantity in quantities.items()}


def _tolerations(held: list[Obj]) -> list[Obj]:
    def is_covered(wanted: Obj) -> bool:
        return any(
            toleration.get("key", wanted["key"]) == wanted["key"]
            and toleration.get("effect") in (None, "", "NoExecute")
            for toleration in held
        )

    return [*held, *(wanted for wanted in NOT_READY_TOLERATIONS if not is_covered(wanted))]


def qos_class(spec: Obj) -> str:
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    wants = [container.get("resources") or {} for container in containers]
    if not any(_plain(want.get(side)) for want in wants for side in ("requests", "limits")):
        return "BestEffort"
    is_guaranteed = all(
        _plain(want.get("limits")).keys() == {"cpu", "memory"}
        and _plain(want.get("requests")) == _plain(want["limits"])
        for want in wants
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _plain(amounts: Obj | None) -> Obj:
    return {key: value for key, value in (amounts or {}).items() if key in {"cpu", "memory"}}
