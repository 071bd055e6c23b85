"""Checks whether the version's image was pulled beforehand (Z36): proven, refused, unknown, or not tried."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fleet.models import Node, Pod
from gpu.operands import DRIVER
from rollouts.checks import Check, each
from rollouts.driver_images.driver_image import image_for
from rollouts.driver_images.pull_progress import PullOutcome
from rollouts.image_pulls.latest_pulls import PullOnPage, failed_sentence, newest_pull, proven_sentence
from rollouts.models import PullJob
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.driver_nodes import driver_daemonsets
from wording.lists import names
from wording.numbers import count

MEND_IT = "Mend what the registry or the node says, then pull it again."
PULL_IT = "Pull it beforehand, from the plan's page: a Job for each operating system."


@dataclass(frozen=True)
class PulledOnPicks:
    """The pull results of the plan's nodes; each node is in one list at most."""

    shown: PullOnPage
    jobs: Sequence[PullJob]  # of these nodes, for the image that they will need
    failed: Sequence[PullJob]  # also of nodes that left, where the image is still needed
    untried: Mapping[str, Sequence[str]]  # image → nodes that will need it. Blank: nobody can tell which it is
    nodes: int

    @cached_property
    def pulled(self) -> list[PullJob]:
        return [job for job in self.jobs if job.outcome == PullOutcome.PULLED]

    @cached_property
    def unknown(self) -> list[PullJob]:
        return [job for job in self.jobs if job.outcome == PullOutcome.UNKNOWN]

    @cached_property
    def under_way(self) -> list[PullJob]:
        return [job for job in self.jobs if self.shown.is_under_way(job)]

    @cached_property
    def never_tried(self) -> dict[str, Sequence[str]]:
        """Returns the untried images that no node has tried, for example for another OS."""
        tried = {job.image for job in self.jobs}
        return {image: nodes for image, nodes in self.untried.items() if image and image not in tried}

    @property
    def unproven(self) -> list[PullJob]:
        """Returns the failed pulls of images that no node has pulled."""
        proven = {job.image for job in self.pulled}
        return [job for job in (*self.unknown, *self.under_way) if job.image not in proven]

    @property
    def is_good(self) -> bool:
        open_ = (self.failed, self.unknown, self.under_way, self.never_tried, self.untried.get(""))
        return bool(self.pulled) and not any(open_) and not self.shown.pull.left_out

    @property
    def sentence(self) -> str:
        unknown, under_way = len(self.unknown), len(self.under_way)
        untried = self.nodes - len(self.pulled) - unknown - under_way
        return proven_sentence(self.shown, self.pulled, unknown=unknown, under_way=under_way, untried=untried)


def are_pulled(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. Images that already run elsewhere count as proven. Five queries."""
    version, shown = subject.plan.to_version, newest_pull(subject.plan)
    needed = _needed(subject)
    running = _running(subject, set(needed.values()))
    refused = {job.node_uid for job in shown.of(PullOutcome.FAILED)} if shown else set()
    picked = subject.picks.nodes
    left = [node for node in picked if node.uid in refused or needed[node.uid] not in running]
    if running and not left:
        return
    if running and (shown is None or shown.pull.to_version != version):
        those = names(sorted(node.name for node in left))
        sentence = f"Nobody has tried whether the image of {version} for {those} can be pulled, and no node runs it."
        yield Check("image-untried", sentence, PULL_IT, about=each(node.name for node in left))
        return
    if shown is None or shown.pull.to_version != version:
        yield Check("image-untried", f"Nobody has tried whether the image of {version} can be pulled.", PULL_IT)
        return
    now = _on_picks(left, needed, shown)
    if now.failed:
        sentence = failed_sentence(shown, now.failed)
        yield Check("image-failed", sentence, MEND_IT, is_grave=True, about=_about(now.failed))
    elif not now.jobs:
        sentence = f"On no node that the plan takes now it was tried whether the image of {version} can be pulled."
        yield Check("image-untried", sentence, PULL_IT)
        return
    if now.never_tried:
        image, nodes = min(now.never_tried.items())
        sentence = f"Nobody has tried whether {image} can be pulled, which {count(len(nodes), 'node')} will need."
        about = each(node for those in now.never_tried.values() for node in those)
        yield Check("image-unknown", sentence, PULL_IT, about=about)
    if now.unproven:
        yield Check("image-unknown", _unknown(shown, now.unproven[0]), PULL_IT, about=_about(now.unproven))
    elif now.pulled and not now.failed:
        yield Check("image-pulled", now.sentence, shown.pull.left_out, is_good=now.is_good)


def _needed(subject: PreflightSubject) -> dict[str, str]:
    """Returns the image that each node will need, by UID; empty if unknown. One query."""
    plan = subject.plan
    versions = {"from_version": plan.from_version, "to_version": plan.to_version}
    images = {row.uid: image_for(row.image, **versions) for row in driver_daemonsets(plan)}
    return {node.uid: images.get(node.driver_daemon_set, "") for node in subject.picks.nodes}


def _running(subject: PreflightSubject, images: set[str]) -> set[str]:
    """Returns the images with a Ready driver pod. One query; none without known images."""
    known = images - {""}
    if not known:
        return set()
    pods = Pod.objects.filter(cluster=subject.plan.cluster_id, operand=DRIVER, is_ready=True, image__in=known)
    return set(pods.order_by().values_list("image", flat=True).distinct())


def _on_picks(nodes: Sequence[Node], needed: Mapping[str, str], shown: PullOnPage) -> PulledOnPicks:
    jobs = [job for job in shown.jobs if needed.get(job.node_uid) in ("", job.image)]
    tried = {job.node_uid for job in jobs if job.outcome or shown.is_under_way(job)}
    untried: dict[str, list[str]] = {}
    for node in nodes:
        if node.uid not in tried:
            untried.setdefault(needed[node.uid], []).append(node.name)
    still = {*needed.values()}
    failed = [job for job in shown.of(PullOutcome.FAILED) if job in jobs or job.image in still or "" in still]
    return PulledOnPicks(shown, [job for job in jobs if job.node_uid in tried], failed, untried, len(nodes))


def _unknown(shown: PullOnPage, first: PullJob) -> str:
    reason = "it is being pulled now." if shown.is_under_way(first) else first.says or "nothing was told."
    return f"It is not known whether {first.image} can be pulled: on {first.node_name}, {reason}"


def _about(jobs: Sequence[PullJob]) -> tuple[str, ...]:
    return each(f"{job.node_name}: {job.image}. {job.says}".rstrip() for job in jobs)
