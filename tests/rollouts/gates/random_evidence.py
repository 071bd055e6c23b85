"""Evidence of every shape that rows can give, for claims that must hold whatever was seen."""

from datetime import timedelta

from hypothesis import strategies as st

from gpu.compatibility.verdicts import Support
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import (
    ApprovalEvidence,
    Baseline,
    Combination,
    Evidence,
    FindingEvidence,
    GpuTelemetry,
    HealthEvidence,
    HoursEvidence,
    MeasuredHour,
    MetricResult,
    NextWave,
    OperandEvidence,
    PodEvidence,
    PodWants,
    SeenWork,
    ServiceEvidence,
    ServiceLevel,
    TargetEvidence,
    TestJobEvidence,
    ValidatorEvidence,
    WindowEvidence,
)
from rollouts.gates.drift import MEASURES
from rollouts.gates.slo import SLOS
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import NEW, OLD, OPERANDS

moments = st.integers(-100_000, 0).map(lambda seconds: NOON + timedelta(seconds=seconds))
counts = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), max_size=2)
offers = st.dictionaries(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]), st.integers(0, 8))
baselines = st.builds(
    Baseline,
    at=moments,
    driver_version=st.sampled_from(["", OLD, NEW]),
    allocatable=st.none() | offers,
    workloads=counts,
    operands=st.lists(st.sampled_from(OPERANDS), unique=True).map(tuple),
    validator_uid=st.sampled_from(["", "a", "b"]),
    mig_config_state=st.sampled_from(["", "success", "failed"]),
    is_unschedulable=st.booleans(),
    traits=st.dictionaries(st.sampled_from(["kernel", "OS image"]), st.sampled_from(["", "1", "2"])),
    findings=st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["critical", "warning"])),
)
validators = st.builds(
    ValidatorEvidence,
    uid=st.sampled_from(["a", "b"]),
    is_ready=st.booleans(),
    started_at=moments,
    restarts=st.integers(0, 5),
    step=st.sampled_from(["", "cuda-validation"]),
    reason=st.sampled_from(["", "CrashLoopBackOff"]),
)
pods = st.builds(
    PodEvidence,
    name=st.sampled_from(["team-a/x", "team-b/y"]),
    owner=st.sampled_from(["a", "b"]),
    is_ready=st.booleans(),
    started_at=moments,
    restarts=st.integers(0, 5),
    reason=st.sampled_from(["", "CrashLoopBackOff"]),
)
operands = st.builds(OperandEvidence, st.sampled_from(OPERANDS), st.booleans(), st.sampled_from(["", "why"]))

test_jobs = st.builds(
    TestJobEvidence,
    st.none() | st.sampled_from(TestJobOutcome),
    st.just("It is said."),
    st.sampled_from(["", "CUDA error"]),
    st.none() | moments,
    numbers=st.dictionaries(
        st.sampled_from(["sum", "average_bus_bandwidth.bandwidth", "request_count.avg"]),
        st.builds(
            MetricResult,
            st.floats(0, 500),
            st.lists(st.floats(0, 500), max_size=2).map(tuple),
            st.lists(st.floats(0, 500), max_size=5).map(tuple),
        ),
    ),
)
works = st.builds(SeenWork, st.integers(0, 200).map(lambda minutes: timedelta(minutes=minutes)), st.booleans())

findings = st.builds(
    FindingEvidence,
    key=st.sampled_from(["a", "b", "c"]),
    rule=st.sampled_from(["gpu-xid", "gpu-hot", "gpu-ecc-uncorrected", "operand-down"]),
    severity=st.sampled_from(["critical", "warning", "note"]),
    title=st.just("GPU 3 is ill"),
    since=moments,
    is_open=st.booleans(),
    is_shadow=st.booleans(),
)
some_findings = st.lists(findings, max_size=3).map(tuple)
telemetry = st.builds(
    GpuTelemetry,
    gpus=st.integers(1, 8),
    reporting=st.integers(0, 8),
    fresh=st.dictionaries(st.sampled_from(["xid", "temperature_celsius", "ecc_uncorrected"]), st.integers(0, 8)),
    exported=st.frozensets(st.sampled_from(["xid", "temperature_celsius", "nvlink_replays"])),
    vendor=st.sampled_from(["", "nvidia", "amd", "intel"]),
    restarted_at=st.none() | moments,
)
health = st.builds(
    HealthEvidence,
    evaluated_at=st.none() | moments,
    has_source=st.booleans(),
    trouble=st.sampled_from(["", "The telemetry source is silent."]),
    peers=st.dictionaries(st.sampled_from([f"peer-{number}" for number in range(5)]), some_findings),
)

numbers = st.sampled_from([None, 0.0, 0.4, 9.0, -1.0])
service_levels = st.builds(
    ServiceLevel,
    asked_at=moments,
    nodes=st.sampled_from([(), ("node-0",), ("node-0", "node-1", "node-2")]),
    value=numbers,
    samples=st.integers(0, 100),
    newest_at=st.none() | moments,
    baseline=numbers,
    baseline_samples=st.integers(0, 100),
    trouble=st.sampled_from(["", "It does not answer."]),
    cause=st.just("source-silent"),
)

node_hours = st.builds(
    MeasuredHour,
    st.integers(-9, 3).map(lambda hours: NOON + timedelta(hours=hours)),
    st.sampled_from([None, 0.0, 0.8]),
    st.dictionaries(st.sampled_from([measure.key for measure in MEASURES]), st.sampled_from([0.0, 60.0, 90.0])),
)
some_hours = st.dictionaries(
    st.sampled_from([f"node-{number}" for number in range(3)]), st.lists(node_hours, max_size=9).map(tuple)
)
hours = st.builds(HoursEvidence, some_hours, st.just({}))
amounts = st.dictionaries(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]), st.integers(0, 8))
products = st.sampled_from(["H100", "A100"])
waves = st.builds(
    NextWave,
    nodes=st.sampled_from([(), ("node-0",)]),
    pods=st.lists(st.builds(PodWants, st.just("team-a/x"), products, amounts), max_size=3).map(tuple),
    free=st.dictionaries(products, st.lists(amounts, max_size=2).map(tuple)),
    claiming=st.integers(0, 1),
)

opening_times = st.lists(st.integers(-100, 100), max_size=6, unique=True).map(
    lambda at: tuple(
        (NOON + timedelta(hours=since), NOON + timedelta(hours=until))
        for since, until in zip(sorted(at)[::2], sorted(at)[1::2], strict=False)
        if until > 0
    )
)
bound = st.builds(WindowEvidence, st.just(("node-0",)), st.just("It is said."), opening_times)
windows = st.lists(bound | st.just(WindowEvidence(("node-0",))), max_size=3).map(tuple)


def targets(name: str, *, is_seen: st.SearchStrategy[bool] | None = None) -> st.SearchStrategy[TargetEvidence]:
    return st.builds(
        TargetEvidence,
        uid=st.just(f"uid-of-{name}"),
        name=st.just(name),
        state=st.sampled_from(TargetState),
        state_since=moments,
        baseline=st.none() | baselines,
        is_seen=st.booleans() if is_seen is None else is_seen,
        driver_version=st.sampled_from(["", OLD, NEW, "garbage"]),
        upgrade_state=st.sampled_from(["", "upgrade-required", "upgrade-done", "upgrade-failed"]),
        is_ready=st.sampled_from([None, True, False]),
        allocatable=offers,
        operands=st.lists(operands, max_size=3).map(tuple),
        workloads=st.lists(pods, max_size=2).map(tuple),
        validator=st.none() | validators,
        driver_started_at=st.none() | moments,
        mig_config_state=st.sampled_from(["", "pending", "success", "failed"]),
        is_unschedulable=st.booleans(),
        is_held_by_others=st.booleans(),
        traits=st.dictionaries(st.sampled_from(["kernel", "OS image"]), st.sampled_from(["", "1", "2"])),
        test_job=st.none() | test_jobs,
        work=st.none() | works,
        findings=some_findings,
        telemetry=st.none() | telemetry,
    )


three = [targets(f"node-{number}") for number in range(3)]
any_targets = st.one_of([st.tuples(*three[:number]) for number in range(4)])


def some_evidence(*, of_targets: st.SearchStrategy[tuple[TargetEvidence, ...]] | None = None):
    return st.builds(
        Evidence,
        seen_at=moments,
        to_version=st.sampled_from([OLD, NEW]),
        targets=any_targets if of_targets is None else of_targets,
        approvals=st.lists(
            st.builds(
                ApprovalEvidence,
                by=st.sampled_from(["amy", "bob"]),
                at=moments,
                is_rejection=st.booleans(),
                reason=st.just("why"),
                is_by_author=st.booleans(),
            ),
            max_size=3,
        ).map(tuple),
        workloads_ready_now=counts,
        workloads_waiting_for_room=counts,
        workloads_ready_before=counts,
        workloads_refused=st.sampled_from([{}, {"a": "exceeded quota: gpus"}]),
        next_wave=st.none() | waves,
        bound_reason=st.sampled_from(["", "It is said."]),
        windows=st.none() | windows,
        combinations=st.lists(
            st.builds(Combination, st.sampled_from(Support), st.just("It is said."), st.integers(0, 3)), max_size=2
        ).map(tuple),
        compared=st.integers(0, 3),
        despite=st.sampled_from(["", "ada started it despite this: we must."]),
        others_passing_since=st.none() | moments,
        health=st.none() | health,
        services=st.dictionaries(
            st.sampled_from([gate.key for gate in SLOS]), st.builds(ServiceEvidence, st.none() | service_levels)
        ),
        hours=st.none() | hours,
    )
