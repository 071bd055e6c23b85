from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from operations.test_jobs.pull_progress import PullOutcome
from people.rights import Permission, why_not
from rollouts.lifecycle import PlanState
from rollouts.models import ImagePull, Plan, PullJob
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import count, either

# Plan states before its end; a rollback needs an image that exists already.
PULLED_IN = frozenset({PlanState.DRAFT, PlanState.HOLDING, PlanState.PROMOTING, PlanState.HALTED})
WORDS = {PullOutcome.PULLED: "pulled", PullOutcome.FAILED: "failed", PullOutcome.UNKNOWN: "not known"}


@dataclass(frozen=True)
class SystemPulled:
    system: str
    image: str
    jobs: Sequence[PullJob]

    @property
    def named(self) -> str:
        return self.system or "an unnamed system"

    @property
    def pulled(self) -> int:
        return sum(job.outcome == PullOutcome.PULLED for job in self.jobs)

    @property
    def has_failed(self) -> bool:
        return any(job.outcome == PullOutcome.FAILED for job in self.jobs)

    @property
    def percent(self) -> int:
        return 100 * sum(bool(job.outcome) for job in self.jobs) // max(1, len(self.jobs))


@dataclass(frozen=True)
class PullOnPage:
    pull: ImagePull
    jobs: Sequence[PullJob]

    @property
    def is_in_force(self) -> bool:
        return self.pull.is_in_force

    @property
    def may_be_cancelled(self) -> bool:
        return self.is_in_force and not self.pull.ends_reason

    @property
    def by_outcome(self) -> Counter[str]:
        return Counter(job.outcome for job in self.jobs)

    def of(self, outcome: PullOutcome) -> list[PullJob]:
        return [job for job in self.jobs if job.outcome == outcome]

    @property
    def is_proven(self) -> bool:
        return not self.of(PullOutcome.FAILED) and bool(self.systems) and all(one.pulled for one in self.systems)

    @cached_property
    def systems(self) -> list[SystemPulled]:
        found: dict[tuple[str, str], list[PullJob]] = {}
        for job in self.jobs:
            found.setdefault((job.system, job.image), []).append(job)
        return [SystemPulled(system, image, jobs) for (system, image), jobs in sorted(found.items())]

    def is_under_way(self, job: PullJob) -> bool:
        return not job.outcome and self.is_in_force and (self.may_be_cancelled or job.intended_at is not None)

    @property
    def left(self) -> int:
        return sum(job.is_in_the_cluster for job in self.jobs)

    @property
    def sentence(self) -> str:
        by, total = self.by_outcome, len(self.jobs)
        said = [f"{by[one]} {WORDS[one]}" for one in PullOutcome if by[one]]
        to_come = sum(self.is_under_way(job) for job in self.jobs)
        rest = ((to_come, "to come"), (by[""] - to_come, "not tried"))
        said += [f"{number} {words}" for number, words in rest if said and number]
        told = ", ".join(said) if said else "no result yet" if self.may_be_cancelled else "nothing was proven"
        head = f"{self.pull.to_version} on {count(total, 'node')}: {told}."
        if not self.is_in_force:
            return " ".join([head, self.pull.ends_reason]).strip()
        jobs = f"{count(self.left, 'Job')} still in the cluster" if self.left else ""
        tail = [self.pull.ends_reason, f"{jobs}." if jobs and self.pull.ends_reason else "", self.pull.waiting_for]
        return " ".join([head, *(each for each in tail if each)])


def newest_pull(plan: Plan) -> PullOnPage | None:
    """Returns the last requested pull. Two queries; none for an unsaved plan."""
    row = ImagePull.objects.filter(plan=plan).order_by("-pk").first() if plan.pk else None
    return pull_on_page(row) if row else None


def pull_on_page(pull: ImagePull) -> PullOnPage:
    """Returns the pull with one query."""
    (shown,) = pulls_on_page([pull])
    return shown


def pulls_on_page(rows: Sequence[ImagePull]) -> list[PullOnPage]:
    """Returns the pulls with one query."""
    by_pull: dict[int, list[PullJob]] = {row.pk: [] for row in rows}
    named = {row.pk: row for row in rows}
    for job in PullJob.objects.filter(pull__in=by_pull).order_by("position"):
        job.pull = named[job.pull_id]
        by_pull[job.pull_id].append(job)
    return [PullOnPage(row, by_pull[row.pk]) for row in rows]


def why_no_pull(plan: Plan) -> str:
    if plan.state not in PULLED_IN:
        return f"The plan is {plan.state.replace('-', ' ')} and no longer needs its image."
    return ""


def why_no_pull_by(user, plan: Plan) -> str:
    """Returns the same for one person. One query if one can."""
    where = f"cluster {plan.cluster.name}"
    return why_no_pull(plan) or why_not(user, Permission.RUN, cluster_id=plan.cluster_id, where=where)


def proven_sentence(shown: PullOnPage, pulled: Sequence[PullJob], *, unknown: int, under_way: int, untried: int) -> str:
    """Returns the sentence on pulled images.

    `pulled` are present nodes of the plan; the counts are of its other nodes.
    """
    at = max((job.told_at for job in pulled if job.told_at), default=None)
    where = names([f"{job.node_name} ({job.system})" if job.system else job.node_name for job in pulled])
    when = f" at {to_the_minute(at)}" if at else ""
    of_all = f"{len(pulled)} of {count(len(pulled) + unknown + under_way + untried, 'node')}"
    said = [f"The image of {shown.pull.to_version} was pulled beforehand on {of_all}{when}: {where}."]
    said += [f"The result on {count(unknown, 'node')} is unknown."] if unknown else []
    said += [f"The pull on {count(under_way, 'node')} is in progress."] if under_way else []
    if untried:
        said.append(either(untried, "The other node was not tried.", f"The other {untried} were not tried."))
    return " ".join(said)


def failed_sentence(shown: PullOnPage, failed: Sequence[PullJob]) -> str:
    first = failed[0]
    others = (
        f" It also failed on {either(len(failed) - 1, 'one more node', f'{len(failed) - 1} more nodes')}."
        if failed[1:]
        else ""
    )
    when = f" at {to_the_minute(first.told_at)}" if first.told_at else ""
    return f"The image of {shown.pull.to_version} could not be pulled on {first.node_name}{when}: {first.says}{others}"
