"""The conditions of a test on a node, and the result of the step. Pure."""

from dataclasses import dataclass

from operations.test_jobs.device_requests import WITHOUT_MIG, TestedDevices, why_not_all
from operations.test_jobs.node_tests import NODE_TESTS, OF_DEVICES
from operations.test_jobs.test_progress import TestJobOutcome

NO_TEMPLATE = "DRA offers the GPUs of the node, and its pool names no ResourceClaimTemplate for tests. Set one there."
NEEDS_WHOLE = (
    "MIG partitions the GPUs, and this test needs whole ones. "
    f"A new node takes {NODE_TESTS[OF_DEVICES].title}. For a sick node: {WITHOUT_MIG}"
)


@dataclass(frozen=True)
class NodeToTest:
    is_same: bool  # it has the UID of the operation
    is_cordoned: bool
    is_ready: bool
    gpus: int  # whole GPUs that it offers
    gpus_expected: int  # the highest number seen
    request: TestedDevices | str | None = None  # of partitioned or shared GPUs, or why there is none; None: whole GPUs
    is_of_devices: bool = False  # the test runs on each device by itself
    needs_template: bool = False  # DRA offers its GPUs, and its pool names no claim template

    def why_not(self, name: str) -> str:
        """Returns why no test proves anything about the whole node. Blank: a test does."""
        if not self.is_same:
            return f"{name} is now a different node with the same name."
        if not self.is_cordoned:
            return "The node is not cordoned, so a test would compete with pods for GPUs. Drain the node first."
        if not self.is_ready:
            return "The node is not Ready, so no pod starts there."
        if isinstance(self.request, str):
            return self.request
        if self.request is not None:
            return NEEDS_WHOLE if self.request.has_mig and not self.is_of_devices else ""
        if self.needs_template:
            return NO_TEMPLATE
        return why_not_all(self.gpus, self.gpus_expected)


def sentence_of(title: str, outcome: str, says: str, said: str) -> str:
    """Returns the result with the last words of the container."""
    result = {TestJobOutcome.PASSED: "passed", TestJobOutcome.FAILED: "failed"}.get(TestJobOutcome(outcome), "unknown")
    return f"{title}: {result}. {says} {said}".strip()
