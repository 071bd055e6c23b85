"""A test Job has passed on each changed node: synthetic load before tenants may return (Z8, Z27).

The engine creates the Jobs (`rollouts/engine/decide/test_jobs.py`) and keeps pods off until they complete
(`rollouts/engine/decide/cordons.py`). The gate reads their results, and waits for Jobs that are missing, running or
blocked.

A result is compared with earlier ones once for each Job: one look, which needs no correction for looking again. The
evidence says the smallest change that the scatter of the earlier results lets this comparison detect.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from statistics import median, stdev
from typing import ClassVar

from gpu.labels import GPU
from operations.test_jobs.job_metrics import is_path
from operations.test_jobs.node_tests import NODE_TESTS, TEMPLATES, NodeTest, TestMetric
from operations.test_jobs.test_job import resource_of
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import FEWEST_PEERS, Evidence, Gate, GateResult, Items, MetricResult, TargetEvidence, When
from rollouts.gates.results import OVERRIDE, fail, no_target, passed, subject, to_come, wait
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items

PRINT_JSON = ("Let the Job print one JSON value at the start of a line, as the end of its output.", *OVERRIDE)
NO_PAST = ("Set at_least or at_most, and at_most_worse_percent to 0.", *OVERRIDE)
FEWEST_FOR_SCATTER = 3
# Student's t, one-sided at 5 %, by degrees of freedom; the last one also for more.
T_OF_FREEDOM = {2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812}
VECTOR_ADD = NODE_TESTS["vectoradd"].image  # the image of a gate without a template
READ_JOB = ("Read the output of the Job.", "Then roll back, exclude the node, or resume the plan to run the Job again.")


@dataclass(frozen=True)
class MetricRule:
    """A metric of the Job and its limits: of the gate itself, or of its template."""

    metric: TestMetric
    at_least: int = 0
    at_most: int = 0  # 0: no limit
    needs_baseline: bool = False  # False: without earlier results it is recorded, and not compared

    def is_within(self, value: float) -> bool:
        return value >= self.at_least and not (self.at_most and value > self.at_most)

    def worse_by(self, result: MetricResult) -> float | None:
        """Returns by how many percent the result is worse than its baseline, below 0 if better; None: not compared."""
        base = baseline_of(result) if self.metric.worse_percent else None
        if not base:
            return None
        worse = result.value - base if self.metric.is_lower_better else base - result.value
        return worse / abs(base) * 100

    @property
    def limits(self) -> list[tuple[str, float]]:
        return [(name, limit) for name, limit in (("At least", self.at_least), ("At most", self.at_most)) if limit]


@dataclass(frozen=True)
class TestJobGate(Gate):
    template: str = ""  # key of a test in operations/test_jobs/data; blank: the image and command below
    gpus: int = 0  # that each Job asks for; 0: all of the node where the template tests all, else 1
    image: str = ""  # blank: the pool's, else that of the settings
    cordon: bool = True  # the node accepts no other pods from its release until its Job has completed
    command: str = ""  # of the container, as a shell splits it; blank: the image's own
    metric: str = ""  # path of a number in the JSON that the Job prints last, such as testcases.0.sum
    at_least: int = 0  # of the metric
    at_most: int = 0  # of the metric; 0: no limit
    # Limits against the node with another driver, or its peers. 0: the template's limit, or no comparison.
    at_most_worse_percent: int = 0
    higher_is_better: bool = True  # of the metric

    key: ClassVar[str] = "test_job"
    title: ClassVar[str] = "Test Job"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.template and self.template not in TEMPLATES:
            raise ValueError(f"template is one of {', '.join(TEMPLATES)}; or name an image.")
        if any(each.isspace() for each in self.image):
            raise ValueError("image must be the name of one image, without blanks.")
        try:
            shlex.split(self.command)
        except ValueError as error:
            raise ValueError("command cannot be split into words: a quotation mark is open.") from error
        if self.metric and not is_path(self.metric):
            raise ValueError("metric is a path in JSON, such as testcases.0.sum or testcases.name=all.sum.")
        has_limit, may_compare = bool(self.at_least or self.at_most), bool(self.metric or self._template_metrics)
        if (self.metric and not (has_limit or self.at_most_worse_percent)) or (has_limit and not self.metric):
            raise ValueError("metric needs at_least, at_most or at_most_worse_percent; each of these needs metric.")
        if self.at_most_worse_percent and not may_compare:
            raise ValueError("at_most_worse_percent needs metric, or a template with metrics.")
        if self.at_most and self.at_most < self.at_least:
            raise ValueError("at_most is less than at_least, so no number can pass.")

    @property
    def test(self) -> NodeTest | None:
        return NODE_TESTS.get(self.template)

    @property
    def image_key(self) -> str:
        """Returns the key of the image in the settings and of the pool, which the gate's own image replaces."""
        return self.test.image if self.test else VECTOR_ADD

    @property
    def _template_metrics(self) -> tuple[TestMetric, ...]:
        return self.test.metrics if self.test else ()

    @cached_property
    def rules(self) -> tuple[MetricRule, ...]:
        """Returns the metrics that are judged, the gate's own first."""
        worse, found = self.at_most_worse_percent, []
        if self.metric:
            own = TestMetric(self.metric, self.metric, worse_percent=worse, is_lower_better=not self.higher_is_better)
            found.append(MetricRule(own, self.at_least, self.at_most, needs_baseline=worse > 0))
        for metric in self._template_metrics:
            if metric.path != self.metric:
                its = replace(metric, worse_percent=worse or metric.worse_percent)
                found.append(MetricRule(its, needs_baseline=worse > 0))
        return tuple(found)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Returns the paths of the numbers that are read from the output of a Job."""
        paths = (path for rule in self.rules for path in (rule.metric.path, rule.metric.samples))
        return tuple(dict.fromkeys(path for path in paths if path))

    def request_on(self, allocatable: Mapping[str, int]) -> tuple[str, int]:
        """Returns the GPU resource and the amount that a Job requests; a blank resource if the node offers too few."""
        whole = allocatable.get(GPU, 0)
        is_of_all = self.test is not None and not self.test.is_of_one_gpu and whole > 0
        amount = self.gpus or (whole if is_of_all else 1)
        return resource_of(allocatable, amount), amount

    def evaluate(self, evidence: Evidence, *, now: object) -> GateResult:
        if not evidence.counted:
            return no_target()
        changed = evidence.changed
        by_outcome = {
            outcome: [one for one in changed if one.test_job and one.test_job.outcome == outcome]
            for outcome in TestJobOutcome
        }
        done = by_outcome[TestJobOutcome.PASSED]
        counts: Items = (
            EvidenceItem("Completed test Jobs", len(done)),
            EvidenceItem("Nodes of the stage", len(evidence.counted)),
        )
        if failed := by_outcome[TestJobOutcome.FAILED]:
            nodes = tuple(target.name for target in failed)
            is_late = failed[0].test_job is not None and failed[0].test_job.has_timed_out
            title = f"The test Job {'timed out' if is_late else 'failed'} on {subject(nodes)}"
            summary = _job_text(failed[0])
            items = (*counts, *_results(failed))
            return fail(
                title, summary, cause="timed-out" if is_late else "failed", nodes=nodes, evidence=items, steps=READ_JOB
            )
        counts = (*counts, *first_items(self._items(done)))
        for rule in self.rules:
            if broken := self._broken(rule, done, counts):
                return broken
        if open_ones := [one for one in changed if not one.test_job or one.test_job.outcome != TestJobOutcome.PASSED]:
            return self._waits(open_ones, counts)
        for rule in self.rules:
            if unknown := self._unknown(rule, done, counts):
                return unknown
        if evidence.not_changed or not changed:
            return to_come(evidence, counts)
        title = f"A test Job completed on {either(len(done), 'the changed node', f'all {len(done)} changed nodes')}"
        return passed(title, "Each Job used GPUs with the new driver.", evidence=counts)

    def _items(self, done: Iterable[TargetEvidence]) -> Iterator[EvidenceItem]:
        """Yields the numbers of each metric, its rule, and how far each number is from its baseline."""
        for rule in self.rules:
            metric, results = rule.metric, _numbers(done, rule.metric.path)
            yield EvidenceItem("Metric", metric.title)
            yield from (EvidenceItem(name, limit, metric.unit) for name, limit in rule.limits)
            if metric.worse_percent:
                yield EvidenceItem("Worse by at most", metric.worse_percent, "%")
            for name, result in results:
                yield EvidenceItem(name, result.value, metric.unit)
                worse = rule.worse_by(result)
                if worse is not None:
                    basis = f"{baseline_of(result):g} ({_basis_text(result)})"
                    yield EvidenceItem(f"{name}: worse by", f"{worse:.1f} % than {basis}")
                    yield EvidenceItem(f"{name}: smallest detectable change", _detectable_text(result))
                elif metric.worse_percent:
                    yield EvidenceItem(f"{name}: not compared", f"fewer than {FEWEST_PEERS} earlier results")

    def _broken(self, rule: MetricRule, done: Iterable[TargetEvidence], counts: Items) -> GateResult | None:
        """Returns FAIL if a result is out of its limits or worse than its baseline allows."""
        named = rule.metric
        thin = _thin(named, done)
        results = [(name, result) for name, result in _numbers(done, named.path) if name not in thin]
        if bad := [(name, result.value) for name, result in results if not rule.is_within(result.value)]:
            nodes = tuple(name for name, _ in bad)
            title = f"The result of the test Job on {subject(nodes)} is out of its limits"
            summary = f"{'' if len(bad) == 1 else f'{nodes[0]}: '}{named.title} is {bad[0][1]:g}."
            return fail(title, summary, cause="metric", nodes=nodes, evidence=counts, steps=READ_JOB)
        changes = [(name, rule.worse_by(result)) for name, result in results]
        if worse := [(name, by) for name, by in changes if by is not None and by > named.worse_percent]:
            nodes = tuple(name for name, _ in worse)
            title = f"The result of the test Job on {subject(nodes)} is worse than before"
            who = "" if len(worse) == 1 else f"{nodes[0]}: "
            summary = f"{who}{named.title} is {worse[0][1]:.0f} % worse than its baseline."
            return fail(title, summary, cause="worse", nodes=nodes, evidence=counts, steps=READ_JOB)
        return None

    def _unknown(self, rule: MetricRule, done: Iterable[TargetEvidence], counts: Items) -> GateResult | None:
        """Returns WAIT if a Job printed no number, or one that rests on too few samples or has no baseline."""
        metric, results = rule.metric, dict(_numbers(done, rule.metric.path))
        if silent := tuple(one.name for one in done if one.name not in results):
            title, summary = f"The test Job on {subject(silent)} printed no result", f"No number is at {metric.path}."
            return wait(title, summary, cause="no-number", nodes=silent, evidence=counts, steps=PRINT_JSON)
        if fewest := _thin(metric, done):
            thin = tuple(fewest)
            title = f"The test Job on {subject(thin)} has too few samples"
            summary = f"{metric.title} needs {metric.least_samples} samples, and has {fewest[thin[0]]:g}."
            return wait(title, summary, cause="few-samples", nodes=thin, evidence=counts, steps=READ_JOB)
        lonely = (name for name, result in results.items() if metric.worse_percent and not baseline_of(result))
        if rule.needs_baseline and (few := tuple(lonely)):
            title = f"The test Job on {subject(few)} has too few results to compare"
            summary = f"The gate needs a result of the node with another driver, or results of {FEWEST_PEERS} peers."
            return wait(title, summary, cause="few-results", nodes=few, evidence=counts, steps=NO_PAST)
        return None

    def _waits(self, targets: list[TargetEvidence], counts: Items) -> GateResult:
        nodes = tuple(target.name for target in targets)
        if without := [one for one in targets if one.test_job is None and _is_settled(one) and not self._resource(one)]:
            title = f"{subject([one.name for one in without])} cannot run the test Job"
            summary = f"The Job requests {count(self.gpus or 1, 'GPU')}. The node offers no such resource."
            return wait(title, summary, cause="no-resource", nodes=nodes, evidence=counts, steps=OVERRIDE)
        first, items = targets[0], (*counts, *_results(targets))
        if first.test_job is None:
            title = f"The test Job on {subject(nodes)} does not exist yet"
            summary = "It is created once the node is Ready with its GPU stack."
            return wait(title, summary, cause="not-made", nodes=nodes, evidence=items)
        if first.test_job.outcome == TestJobOutcome.UNKNOWN:
            title = f"The test Job on {subject(nodes)} is created again"
            return wait(title, _job_text(first), cause="unknown", nodes=nodes, evidence=items)
        title = f"The test Job on {subject(nodes)} has not completed"
        return wait(title, _job_text(first), cause="not-through", nodes=nodes, evidence=items)

    def _resource(self, target: TargetEvidence) -> str:
        return self.request_on(target.allocatable)[0]


def cordons_by(gates: Iterable[Gate]) -> bool:
    """Returns whether these gates keep released nodes cordoned until their test. An advisory gate does not."""
    return any(isinstance(gate, TestJobGate) and gate.cordon and not gate.advisory for gate in gates)


def baseline_of(result: MetricResult) -> float | None:
    """Returns the median of the node's results with other drivers, else of at least four peers; None: too few."""
    if not (result.past or len(result.peers) >= FEWEST_PEERS):
        return None
    return median(result.past or result.peers) or None


def detectable_percent(result: MetricResult) -> float | None:
    """Returns the smallest change in percent that is no scatter of the earlier results; None: too few to tell."""
    earlier, base = result.past or result.peers, baseline_of(result)
    if base is None or len(earlier) < FEWEST_FOR_SCATTER:
        return None
    factor = T_OF_FREEDOM[min(len(earlier) - 1, max(T_OF_FREEDOM))]
    return factor * stdev(earlier) * sqrt(1 + 1 / len(earlier)) / abs(base) * 100


def _detectable_text(result: MetricResult) -> str:
    least, known = detectable_percent(result), len(result.past or result.peers)
    if least is None:
        return f"unknown: n = {known}, and the scatter needs {FEWEST_FOR_SCATTER}"
    return f"{least:.1f} % (n = {known})"


def _numbers(targets: Iterable[TargetEvidence], path: str) -> list[tuple[str, MetricResult]]:
    """Returns the number of each test Job at a path, if it printed one."""
    jobs = ((target.name, target.test_job) for target in targets)
    return [(name, job.numbers[path]) for name, job in jobs if job is not None and path in job.numbers]


def _thin(metric: TestMetric, targets: Iterable[TargetEvidence]) -> dict[str, float]:
    """Returns the number of samples by node, where a result rests on fewer than its metric needs."""
    printed = (
        (target.name, {path: result.value for path, result in target.test_job.numbers.items()})
        for target in targets
        if target.test_job is not None
    )
    return {
        name: numbers.get(metric.samples, 0)
        for name, numbers in printed
        if metric.path in numbers and metric.is_thin(numbers)
    }


def _basis_text(result: MetricResult) -> str:
    past = len(result.past)
    return f"{count(past, 'earlier result')} of the node" if past else count(len(result.peers), "peer")


def _is_settled(target: TargetEvidence) -> bool:
    return target.is_seen and target.is_ready is True


def _job_text(target: TargetEvidence) -> str:
    """Returns the state of a test Job with its last output."""
    return f"{target.test_job.says} {target.test_job.said.strip()}".strip() if target.test_job else ""


def _results(targets: Iterable[TargetEvidence]) -> Items:
    """Returns the last output of each test Job, or the state of a Job without output."""
    jobs = ((target.name, target.test_job) for target in targets if target.test_job)
    return first_items(EvidenceItem(node, job.said.strip() or job.says) for node, job in jobs)
