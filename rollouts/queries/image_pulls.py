"""The results of image pulls of a plan (Z36), from the nodes of their operations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from gpu.driver_images import system_of
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from operations.test_jobs.pull_job import DriverPull
from operations.test_jobs.pull_progress import PullOutcome
from people.rights import Permission, why_not
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, PlanPull
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import count, either

# Plan states before its end; a rollback needs an image that exists already.
PULLED_IN = frozenset({PlanState.DRAFT, PlanState.HOLDING, PlanState.PROMOTING, PlanState.HALTED})
WORDS = {PullOutcome.PULLED: "pulled", PullOutcome.FAILED: "failed", PullOutcome.UNKNOWN: "not known"}


@dataclass(frozen=True)
class PulledNode:
    node_uid: str
    node_name: str
    image: str
    system: str  # ubuntu22.04, as in the image's tag
    outcome: str  # of PullOutcome; blank: none yet, or not tried
    says: str
    told_at: datetime | None  # of the outcome
    is_under_way: bool  # it has no result yet, and will have one


@dataclass(frozen=True)
class SystemPulled:
    system: str
    image: str
    nodes: Sequence[PulledNode]

    @property
    def named(self) -> str:
        return self.system or "an unnamed system"

    @property
    def pulled(self) -> int:
        return sum(node.outcome == PullOutcome.PULLED for node in self.nodes)

    @property
    def has_failed(self) -> bool:
        return any(node.outcome == PullOutcome.FAILED for node in self.nodes)

    @property
    def percent(self) -> int:
        return 100 * sum(bool(node.outcome) for node in self.nodes) // max(1, len(self.nodes))


@dataclass(frozen=True)
class PullOnPage:
    pull: PlanPull
    nodes: Sequence[PulledNode]

    @property
    def is_in_progress(self) -> bool:
        return self.pull.operation.is_in_progress

    def of(self, outcome: PullOutcome) -> list[PulledNode]:
        return [node for node in self.nodes if node.outcome == outcome]

    @property
    def is_proven(self) -> bool:
        return not self.of(PullOutcome.FAILED) and bool(self.systems) and all(one.pulled for one in self.systems)

    @cached_property
    def systems(self) -> list[SystemPulled]:
        found: dict[tuple[str, str], list[PulledNode]] = {}
        for node in self.nodes:
            found.setdefault((node.system, node.image), []).append(node)
        return [SystemPulled(system, image, nodes) for (system, image), nodes in sorted(found.items())]

    @property
    def sentence(self) -> str:
        by = Counter(node.outcome for node in self.nodes)
        said = [f"{by[one]} {WORDS[one]}" for one in PullOutcome if by[one]]
        to_come = sum(node.is_under_way for node in self.nodes)
        rest = ((to_come, "to come"), (by[""] - to_come, "not tried"))
        said += [f"{number} {words}" for number, words in rest if said and number]
        told = ", ".join(said) if said else "no result yet" if self.is_in_progress else "nothing was proven"
        operation = self.pull.operation
        head = f"{self.pull.to_version} on {count(len(self.nodes), 'node')}: {told}."
        return " ".join(filter(None, (head, operation.state_reason, operation.waiting_for if to_come else "")))


def newest_pull(plan: Plan) -> PullOnPage | None:
    """Returns the last requested pull. Two queries; none for an unsaved plan."""
    row = PlanPull.objects.filter(plan=plan).select_related("operation").first() if plan.pk else None
    return pulls_on_page([row])[0] if row else None


def pulls_on_page(rows: Sequence[PlanPull]) -> list[PullOnPage]:
    """Returns the pulls with one query. Their operations are selected."""
    by_operation: dict[int, list[PulledNode]] = {row.operation_id: [] for row in rows}
    named = {row.operation_id: row for row in rows}
    for node in OperationNode.objects.filter(operation__in=by_operation).order_by("position"):
        by_operation[node.operation_id].append(_pulled_node(named[node.operation_id], node))
    return [PullOnPage(row, by_operation[row.operation_id]) for row in rows]


def _pulled_node(pull: PlanPull, node: OperationNode) -> PulledNode:
    asked = DriverPull.of(pull.operation.options)
    image = node.progress.get("image") or (asked.images.get(node.node_uid, "") if asked else "")
    outcome = _outcome_of(node)
    return PulledNode(
        node.node_uid, node.node_name, image, system_of(image, pull.to_version), outcome, node.reason,
        told_at=node.state_since if outcome else None,
        is_under_way=not outcome and pull.operation.is_in_progress,
    )  # fmt: skip


def _outcome_of(node: OperationNode) -> str:
    """Returns the result. A pull that was begun and not read to its end proves nothing."""
    match NodeProgress(node.state):
        case NodeProgress.DONE:
            return PullOutcome(node.progress["outcome"])
        case NodeProgress.FAILED:
            return PullOutcome(node.progress.get("outcome", PullOutcome.UNKNOWN))
        case NodeProgress.CANCELLED if node.step_since is not None:
            return PullOutcome.UNKNOWN
    return ""


def why_no_pull(plan: Plan) -> str:
    if plan.state not in PULLED_IN:
        return f"The plan is {plan.state.replace('-', ' ')} and no longer needs its image."
    return ""


def why_obsolete(pull: PlanPull) -> str:
    """Returns why nobody needs the pull's result any more. Blank: its plan does. The plan is selected."""
    if reason := why_no_pull(pull.plan):
        return reason
    if pull.plan.to_version != pull.to_version:
        return f"The draft was edited. Its target is now {pull.plan.to_version}."
    return ""


def why_no_pull_by(user, plan: Plan) -> str:
    """Returns the same for one person. One query if one can."""
    where = f"cluster {plan.cluster.name}"
    return why_no_pull(plan) or why_not(user, Permission.RUN, cluster_id=plan.cluster_id, where=where)


def proven_sentence(
    shown: PullOnPage, pulled: Sequence[PulledNode], *, unknown: int, under_way: int, untried: int
) -> str:
    """Returns the sentence on pulled images.

    `pulled` are present nodes of the plan; the counts are of its other nodes.
    """
    at = max((node.told_at for node in pulled if node.told_at), default=None)
    where = names([f"{node.node_name} ({node.system})" if node.system else node.node_name for node in pulled])
    when = f" at {to_the_minute(at)}" if at else ""
    of_all = f"{len(pulled)} of {count(len(pulled) + unknown + under_way + untried, 'node')}"
    said = [f"The image of {shown.pull.to_version} was pulled beforehand on {of_all}{when}: {where}."]
    said += [f"The result on {count(unknown, 'node')} is unknown."] if unknown else []
    said += [f"The pull on {count(under_way, 'node')} is in progress."] if under_way else []
    if untried:
        said.append(either(untried, "The other node was not tried.", f"The other {untried} were not tried."))
    return " ".join(said)


def failed_sentence(shown: PullOnPage, failed: Sequence[PulledNode]) -> str:
    first = failed[0]
    others = (
        f" It also failed on {either(len(failed) - 1, 'one more node', f'{len(failed) - 1} more nodes')}."
        if failed[1:]
        else ""
    )
    when = f" at {to_the_minute(first.told_at)}" if first.told_at else ""
    return f"The image of {shown.pull.to_version} could not be pulled on {first.node_name}{when}: {first.says}{others}"
