"""Defaults of what makes pods (k8s.io/kubernetes, apis/apps/v1 and apis/batch/v1 defaults.go)."""

from typing import Any

from simulator.defaults.pod import filled_template

Obj = dict[str, Any]
JOB_SPEC = {
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}
UID_LABEL = "batch.kubernetes.io/controller-uid"
NAME_LABEL = "batch.kubernetes.io/job-name"


def filled_daemon_set(obj: Obj) -> Obj:
    spec = _with_template(obj)
    strategy = spec.get("updateStrategy") or {}
    strategy = {**strategy, "type": strategy.get("type") or "RollingUpdate"}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **(strategy.get("rollingUpdate") or {})}
    counts = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}
    filled = {"revisionHistoryLimit": 10, **spec, "updateStrategy": strategy}
    return {**obj, "spec": filled, "status": {**counts, **(obj.get("status") or {})}}


def filled_deployment(obj: Obj) -> Obj:
    spec = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, **_with_template(obj)}
    strategy = spec.get("strategy") or {"type": "RollingUpdate"}
    if strategy.get("type") == "RollingUpdate":
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%", **(strategy.get("rollingUpdate") or {})}
        strategy = {**strategy, "rollingUpdate": rolling}
    return {**obj, "spec": {**spec, "strategy": strategy}, "status": obj.get("status") or {}}


def filled_replicas(obj: Obj) -> Obj:
    spec = {"replicas": 1, **_with_template(obj)}
    return {**obj, "spec": spec, "status": {"replicas": 0, **(obj.get("status") or {})}}


def filled_job(obj: Obj) -> Obj:
    spec = {**JOB_SPEC, **_with_template(obj)}
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if not spec.get("manualSelector"):
        spec = _selecting_its_own(obj["metadata"], spec)
    return {**obj, "spec": spec, "status": obj.get("status") or {}}


def _selecting_its_own(metadata: Obj, spec: Obj) -> Obj:
    """The server, not the author, labels a Job's pods and selects them."""
    own = {UID_LABEL: metadata["uid"], NAME_LABEL: metadata["name"]}
    old_style = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
    template = spec["template"]
    labels = {**(template["metadata"].get("labels") or {}), **own, **old_style}
    template = {**template, "metadata": {**template["metadata"], "labels": labels}}
    return {**spec, "template": template, "selector": {"matchLabels": {UID_LABEL: metadata["uid"]}}}


def _with_template(obj: Obj) -> Obj:
    spec = dict(obj.get("spec") or {})
    spec["template"] = filled_template(spec.get("template") or {})
    return spec
