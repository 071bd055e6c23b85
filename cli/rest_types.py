"""Types of the answers of REST. `bin/tables` writes them from the schema, and `bin/check` compares them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


ActorEnum = Literal["pod owner", "cluster admin", "nobody"]


CatchAnswerEnum = Literal["fail", "wait"]


DecidingObjectKindEnum = Literal["resource", "node label", "node affinity", "taint", "node", "pod", "rule about other pods", "scheduling gate", "namespace", "queue", "PersistentVolumeClaim", "CSI driver", "ResourceClaim", "DeviceClass", "scheduler"]


DecisionEnum = Literal["approve", "reject"]


GateAnswer = Literal["pass", "wait", "fail"]


OperationState = Literal["proposed", "running", "paused", "finished", "cancelled"]


OutcomeEnum = Literal["drafted", "edited", "unchanged"]


PatternEnum = Literal["not_measured", "idle", "low", "small_memory", "memory_bound", "restartable", "none", "free"]


PodState = Literal["failing", "rejected", "pending", "not-ready", "unknown", "starting", "terminating", "failed", "ready", "done"]


ReportedByEnum = Literal["kubelet", "claim", "scheduler", "metrics", "count"]


ScalingReportVerdictEnum = Literal["asked for a node", "added a node", "could not add a node", "is at its maximum", "has no group of nodes that fits", "adds no node", "has not reported on this pod", "has no recent status here", "writes no status any more"]


StageKind = Literal["canary", "pool", "rollback"]


class Allocation(TypedDict):
    pod: PodName
    resource: str
    profile: str
    device: str
    claim: str
    reported_by: ReportedByEnum
    seen_at: str | None
    is_current: bool
    only_looks: bool


class Amount(TypedDict):
    allocatable: int | None
    requested: int | None
    tenants: int | None
    operands: int | None
    others: int | None
    free: int | None


class Answer(TypedDict):
    gate: str
    gate_title: str
    answer: GateAnswer
    title: str
    summary: str
    evidence: list[EvidenceItem]
    steps: list[str]
    nodes: list[str]
    is_advisory: bool
    since: str
    at: str
    rested_on_at: str | None


class Applied(TypedDict):
    outcome: OutcomeEnum
    is_done: bool
    plan: int | None
    title: str
    revision: int
    differences: list[Difference]
    mark: str
    preview: Preview | None


class Approval(TypedDict):
    id: int
    decision: DecisionEnum
    by: str
    at: str
    reason: str
    bundle_hash: str
    is_standing: bool
    void_at: str | None
    void_reason: str


class Button(TypedDict):
    verb: str
    title: str
    is_allowed: bool
    why_not: str
    resource: str
    says: str
    seen: str


class Catch(TypedDict):
    gate: str
    gate_title: str
    stage: Ref
    at: str
    answer: CatchAnswerEnum
    report: Report
    nodes: list[str]
    good_nodes: list[str]
    released_after: int


class Coverage(TypedDict):
    recorded: int
    missing: int
    uncounted: int


class CpuMemory(TypedDict):
    cpu: Amount
    memory: Amount


class DecidingObject(TypedDict):
    kind: DecidingObjectKindEnum
    name: str
    page: str


class Difference(TypedDict):
    field: str
    drafted: Any
    document: Any


class EvidenceItem(TypedDict):
    label: str
    value: str | float
    unit: str


class Excluded(TypedDict):
    node: str
    reason: str


class Forecast(TypedDict):
    nodes: int
    gpus: int | None
    uncounted_nodes: int
    pods: int | None
    jobs: int | None
    restarts: int | None
    gpu_hours: float | None
    uncounted_pods: int | None
    namespaces: list[str] | None
    pods_with_local_files: int | None
    takes_s: float
    takes: str
    unmanaged_pods: int | None
    warm_ups: list[WarmUp] | None
    waits_for_operator_s: int


class FunnelStep(TypedDict):
    title: str
    left: int
    removed: int


class GateChosen(TypedDict):
    title: str
    options: dict[str, float | bool | str | dict[str, int]]


class Gpu(TypedDict):
    id: int
    cluster: Ref
    node: Ref
    index: int
    product: str
    memory_mib: int | None
    uuid: str | None
    allocations: list[Allocation] | None
    may_have_more: bool
    taints: list[str]


class HaltingGate(TypedDict):
    stage: str
    gate: str
    gate_title: str
    answer: GateAnswer
    title: str
    summary: str
    evidence: list[EvidenceItem]
    steps: list[str]
    nodes: list[str]
    is_advisory: bool
    since: str
    at: str
    rested_on_at: str | None


class Harm(TypedDict):
    node: str
    gpu_hours: float | None
    uncounted_pods: int
    jobs: list[str]
    restarts: int | None
    pods: int | None
    sentence: str


class HoldProgress(TypedDict):
    done: int
    total: int
    left_s: float | None


class Holds(TypedDict):
    held: int
    to_hold: int
    foreign: int


class IsolatedCanary(TypedDict):
    reason: str
    steps: list[Step]
    rollback: list[Step]


class LiveAnswer(TypedDict):
    result: str
    check: PreflightCheck


class LiveCheck(TypedDict):
    asked_by: str
    asked_at: str
    is_start: bool
    is_in_force: bool
    answered_at: str | None
    answered_revision: int | None
    answers: list[LiveAnswer]
    outcome: str
    sentence: str


class NearNode(TypedDict):
    node: int
    name: str
    lacks: list[str]
    holders: list[str]


class NewestLiveCheck(TypedDict):
    live_check: LiveCheck | None


class NodeRow(TypedDict):
    id: int
    cluster: Ref
    pools: list[Ref]
    name: str
    uid: str
    state: str
    is_ready: bool | None
    ready_since: str | None
    not_ready_reason: str
    is_unschedulable: bool
    cordoned_by: str
    kernel: str
    os_image: str
    container_runtime: str
    kubelet_version: str
    region: str
    zone: str
    instance_type: str
    capacity_type: str
    nvlink_domain: str
    is_gpu_node: bool
    gpu_vendor: str
    gpu_product: str
    gpu_memory_mib: int | None
    sharing: str
    sharing_replicas: int | None
    mig_strategy: str
    mig_config: str
    mig_config_state: str
    mig_changing_since: str | None
    mig_is_overdue: bool
    unresolved: int
    critical: int
    layout: str
    capacity: dict[str, int]
    allocatable: dict[str, int]
    expected: dict[str, int]
    requested: dict[str, int] | None
    unhealthy_gpus: list[str]
    physical_gpus: int | None
    physical_gpus_by_use: Uses
    gpu_capacity: int | None
    gpu_allocatable: int | None
    gpu_expected: int | None
    gpu_allocated: int | None
    slices_expected: int
    slices_allocatable: int
    slices_allocated: int | None
    shares_expected: int
    shares_allocatable: int
    shares_allocated: int | None
    cpu_memory: CpuMemory
    gpus_missing: int | None
    missing: str
    driver_version: str | None
    driver_unknown_since: str | None
    upgrade_state: str
    is_held: bool
    held_by: str
    driver_owner: str
    created_at: str
    changed_at: str
    seen_at: str | None
    freshness: str


class Operation(TypedDict):
    id: int
    cluster: Ref
    kind: str
    steps: list[str]
    state: OperationState
    state_since: str
    state_reason: str
    waiting_for: str
    reason: str
    asked_by: str
    asked_at: str
    options: dict[str, Any]
    preview: dict[str, Any]
    looked_at: str | None


class OperationNode(TypedDict):
    node_name: str
    node_uid: str
    state: str
    state_since: str
    step: str
    step_since: str | None
    reason: str
    progress: dict[str, Any]


class Pause(TypedDict):
    by: str
    at: str
    reason: str


class PendingChange(TypedDict):
    text: str
    actor: ActorEnum
    fits_now: int
    fits_later: int


class Plan(TypedDict):
    id: int
    cluster: Ref
    title: str
    component: str
    object_kind: str
    object_name: str
    from_version: str
    to_version: str
    state: str
    state_since: str
    reason: str
    waiting_for: str
    author: str
    last_editor: str
    created_at: str
    edited_at: str
    revision: int
    cordon_affected: bool
    sealed_at: str | None
    content_hash: str
    is_armed: bool
    armed_since: str | None
    put_back_at: str | None
    looked_at: str | None
    stages: list[StageOnPlan]
    current_stage: int | None
    pause: Pause | None
    why: str
    besides: list[str]
    halted_by: HaltingGate | None
    suspects: Suspects | None
    missed_gate: Catch | None
    overrides: list[str]
    holds: Holds
    holding: HoldProgress | None
    releasing: HoldProgress | None
    buttons: list[Button]
    takes_s: float | None
    takes: str
    rollback_checks: list[PreflightCheck]
    rollback_preview: RollbackPreview | None
    seq: int


class PodAnswer(TypedDict):
    why_pending: WhyPending | None


class PodName(TypedDict):
    id: int
    namespace: str
    name: str


class PodReason(TypedDict):
    key: str
    title: str
    summary: str
    steps: list[str]
    sentence: str
    action: str
    quote: str
    is_wrong: bool


class PodRow(TypedDict):
    id: int
    cluster: Ref
    namespace: str
    name: str
    uid: str
    node: Ref | None
    phase: str
    status: str
    state: PodState
    is_ready: bool
    ready_since: str | None
    restarts: int
    waiting_reason: str
    stuck_container: str
    last_words: str
    gpus: int
    resources: dict[str, int]
    claims: list[str]
    devices: dict[str, list[str]]
    labels: dict[str, str]
    owner_kind: str
    owner_name: str
    runtime_class: str
    priority_class: str
    has_empty_dir: bool
    operand: str
    operand_title: str
    image: str
    created_at: str
    started_at: str | None
    deleted_at: str | None
    changed_at: str
    reason: PodReason | None
    seen_at: str | None
    freshness: str


class Preemption(TypedDict):
    text: str
    nodes: int
    node: str


class PreflightCheck(TypedDict):
    title: str
    summary: str
    evidence: list[EvidenceItem]
    steps: list[str]
    code: str
    field: str
    is_grave: bool
    is_good: bool
    may_be_overridden: bool


class Preview(TypedDict):
    verdict: str
    verdict_sentence: str
    seen_at: str
    blockers: list[PreflightCheck]
    warnings: list[PreflightCheck]
    stages: list[StagePreview]
    uncovered: list[str]
    excluded: list[Excluded]
    forecast: Forecast
    canary_shows: str
    canary_failure_rate_at_most: float
    cohorts_uncovered: list[str]
    isolated_canary: IsolatedCanary
    live: LiveCheck | None


class QueuePlace(TypedDict):
    system: str
    workload: str
    queue: str
    cluster_queue: str
    is_active: bool
    is_waiting: bool
    is_reserved: bool
    position: int | None
    length: int
    head: str
    reason: str
    message: str
    trouble: str
    quotas: list[QueueQuota]


class QueueQuota(TypedDict):
    flavor: str
    resource: str
    nominal: int
    reserved: int
    borrowed: int


class Ref(TypedDict):
    id: int
    name: str


class Report(TypedDict):
    title: str
    summary: str
    evidence: list[EvidenceItem]
    steps: list[str]


class RollbackPreview(TypedDict):
    nodes: list[str]
    waves: int
    at_once: int
    gpu_pods: int | None
    takes_s: float
    sentence: str


class ScalingReport(TypedDict):
    autoscaler: str
    verdict: ScalingReportVerdictEnum
    is_adding: bool
    summary: str
    details: list[str]
    message: str
    at: str | None


class SharedWait(TypedDict):
    title: str
    summary: str
    nodes: list[str]
    steps: list[str]
    gates: list[str]


class StageOnPlan(TypedDict):
    id: int
    plan: int
    index: int
    name: str
    kind: StageKind
    pool: Ref | None
    selector: str
    count: int | None
    max_unavailable: int
    timeout_s: int
    sick_nodes_reason: str
    gate_options: dict[str, dict[str, float | bool | str | dict[str, int]]]
    state: str
    state_since: str
    reason: str
    targets_by_state: dict[str, int]
    answers: list[Answer]
    waits: list[SharedWait]
    approvals: list[Approval]


class StagePreview(TypedDict):
    name: str
    kind: str
    targets: list[str]
    waves: int
    by_wave: list[list[str]]
    at_once: int
    waves_reason: str
    max_unavailable: int
    gates: list[GateChosen]
    costs: str
    harms: list[Harm]


class Step(TypedDict):
    sentence: str
    command: str


class Suspect(TypedDict):
    properties: list[SuspectProperty]
    failed_with: int
    good_with: int
    p: float
    corrected_p: float
    is_cause: bool


class SuspectProperty(TypedDict):
    name: str
    value: str


class Suspects(TypedDict):
    title: str
    summary: str
    failed: int
    good: int
    compared: int
    unknown: list[str]
    suspects: list[Suspect]


class UsageAmount(TypedDict):
    gpu_hours: float
    by_use: dict[str, float]
    by_part: dict[str, float]
    used_with_estimate: float
    cost: float | None
    costs: dict[str, float]
    cost_idle: float | None
    cost_by_use: dict[str, float | None]
    cost_by_part: dict[str, float | None]
    gpu_hours_without_price: float


class UsageReport(TypedDict):
    first: str
    last: str
    coverage: Coverage
    total: UsageAmount
    previous: UsageAmount
    workloads: list[WorkloadReport]
    rest: UsageAmount


class Uses(TypedDict):
    whole: int
    mig: int
    partitioned: int
    time_slicing: int
    mps: int
    shared: int
    virtual: int
    not_offered: int


class Victim(TypedDict):
    pod: str
    priority: int
    budget: str


class WarmUp(TypedDict):
    workload: str
    pods: int
    took_s: float


class WhyPending(TypedDict):
    key: str
    title: str
    summary: str
    decided_by: str
    deciding_object: DecidingObject | None
    changes: list[PendingChange]
    queue: QueuePlace | None
    scaling: ScalingReport | None
    funnel: list[FunnelStep]
    near_summary: str
    near_nodes: list[NearNode]
    preemption: Preemption | None
    victims: list[Victim]
    scheduler_message: str
    scheduler_at: str | None
    agreement_ratio: float | None
    differences: list[str]
    not_checked: list[str]
    nodes_seen_at: str | None


class WorkloadReport(TypedDict):
    cluster: str
    namespace: str
    workload: str
    gpu_hours_reserved: float
    amount: UsageAmount
    busy_ratio: float | None
    energy_kwh: float | None
    pattern: PatternEnum
    advice: str
    setting: str
