from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from operations.pool_tests import has_image
from rollouts.gates.test_job import VECTOR_ADD, TestJobGate

IN_A_FULL_FLEET = (
    "Advisory, because a full fleet has no free GPUs and pods wait for their own node. Let it "
    "count where pods must not wait."
)
_USUAL: Mapping[str, dict[str, Any]] = {
    "approval": {"needed": 1},
    "compatibility": {"allow_unknown": True},  # NVIDIA lists one or two drivers a branch: else hardly a plan would go
    "headroom": {"advisory": True, "reason": IN_A_FULL_FLEET},
    "driver_version": {},
    "operands_ready": {},
    "validator_passed": {},
    "allocatable_restored": {},
    "mig_state": {},
    "test_job": {},
    "workloads_ready": {},
    # As little as a passed test Job counts. Tenants' hours with telemetry count once they are over.
    "exposure": {"gpu_minutes": 1, "wait_timeout_s": 7200},
    "findings": {},
    "failure_budget": {"tolerate": 0},
    "soak": {"duration_s": 1800},
}


def gates_by_default(cluster_id: int = 0, pool_id: int | None = None) -> dict[str, dict[str, Any]]:
    """Returns the default gates of a stage with their options. One query at most.

    They include a test Job wherever its pool or the settings name an image, since an idle node has no other proof
    (Z41). Cluster 0: not known yet.
    """
    is_tested = has_image(VECTOR_ADD, cluster_id=cluster_id, pool_id=pool_id)
    return {key: dict(options) for key, options in _USUAL.items() if key != TestJobGate.key or is_tested}


@dataclass(frozen=True)
class StageDraft:
    name: str
    kind: str  # StageKind.CANARY or POOL
    pool_id: int | None = None
    selector: str = ""
    count: int | None = None  # None: every node that is left
    max_unavailable: int = 1
    timeout_s: int = 3600  # how long a gate may wait before a person is asked
    sick_nodes_reason: str = ""  # why it takes nodes that open findings call sick; blank: it leaves them out
    gate_options: Mapping[str, Mapping[str, Any]] = field(default_factory=gates_by_default)
