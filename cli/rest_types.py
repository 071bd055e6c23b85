"""Types of the answers of REST. `bin/tables` writes them from the schema, and `bin/check` compares them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


ActorEnum = Literal["pod owner", "cluster admin", "nobody"]


GateAnswer = Literal["pass", "wait", "fail"]


OperationState = Literal["proposed", "running", "paused", "finished", "cancelled"]


OutcomeEnum = Literal["drafted", "edited", "unchanged"]


PodState = Literal["failing", "rejected", "pending", "not-ready", "unknown", "starting", "terminating", "failed", "ready", "done"]


class Allocation(TypedDict):
    pod: PodName
    seen_at: str | None
    is_current: bool


class Answer(TypedDict):
    gate: str
    gate_title: str
    answer: GateAnswer
    title: str
    summary: str
    steps: list[str]
    nodes: list[str]
    at: str


class Applied(TypedDict):
    outcome: OutcomeEnum
    plan: int | None
    title: str
    revision: int
    differences: list[Difference]
    mark: str


class Coverage(TypedDict):
    missing: int


class Difference(TypedDict):
    field: str
    drafted: Any
    document: Any


class FunnelStep(TypedDict):
    title: str
    left: int


class Gpu(TypedDict):
    id: int
    cluster: Ref
    allocations: list[Allocation] | None


class HaltingGate(TypedDict):
    stage: str
    gate: str
    gate_title: str
    answer: GateAnswer
    title: str
    summary: str
    steps: list[str]
    nodes: list[str]
    at: str


class LiveAnswer(TypedDict):
    pass


class LiveCheck(TypedDict):
    is_start: bool
    answers: list[LiveAnswer]
    outcome: str
    sentence: str


class NewestLiveCheck(TypedDict):
    live_check: LiveCheck | None


class NodeRow(TypedDict):
    id: int
    cluster: Ref
    name: str
    uid: str
    state: str
    is_gpu_node: bool
    gpu_capacity: int | None
    gpu_allocatable: int | None
    gpu_allocated: int | None
    missing: str
    driver_version: str | None
    seen_at: str | None
    freshness: str


class Operation(TypedDict):
    id: int
    cluster: Ref
    steps: list[str]
    state: OperationState
    state_since: str
    waiting_for: str
    reason: str
    looked_at: str | None


class OperationNode(TypedDict):
    state: str
    state_since: str
    reason: str


class Pause(TypedDict):
    at: str
    reason: str


class PendingChange(TypedDict):
    text: str
    actor: ActorEnum


class Plan(TypedDict):
    id: int
    cluster: Ref
    title: str
    state: str
    state_since: str
    reason: str
    waiting_for: str
    revision: int
    looked_at: str | None
    stages: list[StageOnPlan]
    current_stage: int | None
    pause: Pause | None
    why: str
    besides: list[str]
    halted_by: HaltingGate | None


class PodAnswer(TypedDict):
    why_pending: WhyPending | None


class PodName(TypedDict):
    id: int
    namespace: str
    name: str


class PodReason(TypedDict):
    title: str
    summary: str
    steps: list[str]
    sentence: str


class PodRow(TypedDict):
    id: int
    cluster: Ref
    namespace: str
    name: str
    uid: str
    state: PodState
    reason: PodReason | None
    seen_at: str | None
    freshness: str


class Ref(TypedDict):
    id: int
    name: str


class SharedWait(TypedDict):
    title: str
    summary: str
    nodes: list[str]
    steps: list[str]
    gates: list[str]


class StageOnPlan(TypedDict):
    id: int
    plan: int
    name: str
    state: str
    state_since: str
    reason: str
    targets_by_state: dict[str, int]
    answers: list[Answer]
    waits: list[SharedWait]


class UsageAmount(TypedDict):
    gpu_hours: float
    by_use: dict[str, float]
    cost: float | None


class UsageReport(TypedDict):
    first: str
    last: str
    coverage: Coverage
    total: UsageAmount
    previous: UsageAmount
    workloads: list[WorkloadReport]


class WhyPending(TypedDict):
    title: str
    summary: str
    changes: list[PendingChange]
    funnel: list[FunnelStep]
    scheduler_message: str
    scheduler_at: str | None
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
    energy_gpu_hours: float
    advice: str
