"""The baseline of a node: its state when its release was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from fleet.models import Node, Pod
from rollouts.engine.gpu_health import findings_of
from rollouts.engine.workloads import crashing_owners, operands_of, pods_on, ready_by_owner, validator_of, workloads_of
from rollouts.gates.base import Baseline, FindingEvidence
from rollouts.models import Rollout


def baseline_of(
    node: Node,
    pods: Sequence[Pod],
    ready: Mapping[str, int],
    sick: Sequence[str],
    findings: Sequence[FindingEvidence],
    *,
    now: datetime,
) -> dict[str, Any]:
    """Returns the node's present state as the JSON of `Baseline`, with each owner's pod count in the cluster."""
    validator = validator_of(pods)
    on_node = Counter(pod.owner for pod in workloads_of(pods) if pod.is_ready)
    return {
        "at": now.isoformat(),
        "driver_version": node.driver_version,
        "allocatable": node.allocatable or None,
        "workloads": dict(on_node),
        "sick_owners": list(sick),
        "owners_ready": {owner: ready.get(owner, 0) for owner in on_node},
        "validator_uid": validator.uid if validator else "",
        "mig_config_state": node.mig_config_state,
        "mig_gpus": node.physical_mig,
        "is_unschedulable": node.is_unschedulable,
        "traits": traits_of(node),
        "operands": sorted(operand.operand for operand in operands_of(pods) if operand.is_ready),
        "findings": {finding.key: finding.severity for finding in findings},
    }


def read_baseline(written: dict[str, Any] | None) -> Baseline | None:
    if written is None:
        return None
    return Baseline(
        at=datetime.fromisoformat(written["at"]),
        driver_version=written["driver_version"],
        allocatable=written["allocatable"],
        workloads=written["workloads"],
        operands=tuple(written["operands"]),
        sick_owners=tuple(written.get("sick_owners", ())),
        validator_uid=written.get("validator_uid", ""),
        mig_config_state=written.get("mig_config_state", ""),
        mig_gpus=written.get("mig_gpus"),
        is_unschedulable=written.get("is_unschedulable", False),
        traits=written.get("traits", {}),
        findings=written.get("findings"),
    )


def traits_of(node: Node) -> dict[str, str]:
    """Returns the properties that a driver change keeps, by their display names."""
    return {
        "kernel": node.kernel,
        "OS image": node.os_image,
        "MIG configuration": node.mig_config,
        "device plugin configuration": node.plugin_config,
    }


def baselines(plan: Rollout, node_uids: Sequence[str], *, now: datetime) -> dict[str, dict]:
    """Returns the baselines of the nodes of one wave, by node UID."""
    rows = list(Node.objects.filter(cluster=plan.cluster_id, uid__in=node_uids).order_by())
    pods, ready, sick = pods_on(plan, [row.name for row in rows]), ready_by_owner(plan), crashing_owners(plan)
    found = findings_of(plan.cluster_id, Q(node__uid__in=node_uids))
    return {
        row.uid: baseline_of(row, pods.get(row.name, []), ready, sick, found.get(row.uid, ()), now=now) for row in rows
    }
