"""Checks whether the version's image was pulled beforehand (Z36): proven, refused, unknown, or not tried."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fleet.models import Node, Pod
from gpu.driver_images import image_for
from gpu.operands import DRIVER
from operations.test_jobs.pull_progress import PullOutcome
from rollouts.checks import Check, each, listed
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.driver_nodes import driver_daemonsets
from rollouts.queries.image_pulls import PulledNode, PullOnPage, failed_sentence, newest_pull, proven_sentence
from wording.numbers import count, was
from wording.reports import EvidenceItem

MEND_IT = "Correct what the registry or the node reports, then pull the image again."
PULL_IT = "Pull the image beforehand on the plan's page. It takes one Job for each operating system."


@dataclass(frozen=True)
class PulledOnPicks:
    """The pull results of the plan's nodes; each node is in one list at most."""

    shown: PullOnPage
    tried: Sequence[PulledNode]  # for the image that they will need
    failed: Sequence[PulledNode]  # also nodes that left, where the image is still needed
    untried: Mapping[str, Sequence[str]]  # image → nodes that will need it. Blank: nobody can tell which it is
    count: int

    @cached_property
    def pulled(self) -> list[PulledNode]:
        return [node for node in self.tried if node.outcome == PullOutcome.PULLED]

    @cached_property
    def unknown(self) -> list[PulledNode]:
        return [node for node in self.tried if node.outcome == PullOutcome.UNKNOWN]

    @cached_property
    def under_way(self) -> list[PulledNode]:
        return [node for node in self.tried if node.is_under_way]

    @cached_property
    def never_tried(self) -> dict[str, Sequence[str]]:
        """Returns the untried images that no node has tried, for example for another OS."""
        tried = {node.image for node in self.tried}
        return {image: nodes for image, nodes in self.untried.items() if image and image not in tried}

    @property
    def unproven(self) -> list[PulledNode]:
        """Returns the failed pulls of images that no node has pulled."""
        proven = {node.image for node in self.pulled}
        return [node for node in (*self.unknown, *self.under_way) if node.image not in proven]

    @property
    def is_good(self) -> bool:
        open_ = (self.failed, self.unknown, self.under_way, self.never_tried, self.untried.get(""))
        return bool(self.pulled) and not any(open_) and not self.shown.pull.left_out

    @property
    def sentence(self) -> str:
        unknown, under_way = len(self.unknown), len(self.under_way)
        untried = self.count - len(self.pulled) - unknown - under_way
        return proven_sentence(self.shown, self.pulled, unknown=unknown, under_way=under_way, untried=untried)


def are_pulled(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. Images that already run elsewhere count as proven. Five queries."""
    version, shown = subject.plan.to_version, newest_pull(subject.plan)
    needed = _needed(subject)
    running = _running(subject, set(needed.values()))
    refused = {node.node_uid for node in shown.of(PullOutcome.FAILED)} if shown else set()
    picked = subject.picks.nodes
    left = [node for node in picked if node.uid in refused or needed[node.uid] not in running]
    if running and not left:
        return
    if running and (shown is None or shown.pull.to_version != version):
        title, nodes_left = f"The image of driver {version} was not pulled yet", listed("Nodes", (n.name for n in left))
        summary = f"{count(len(left), 'node')} of the plan would be the first to pull it."
        yield Check("image-untried", title=title, summary=summary, evidence=nodes_left, steps=(PULL_IT,))
        return
    if shown is None or shown.pull.to_version != version:
        yield Check("image-untried", title=f"The image of driver {version} was not pulled yet", steps=(PULL_IT,))
        return
    now = _pulls_on_picks(left, needed, shown)
    if now.failed:
        title = f"The image of driver {version} cannot be pulled"
        results = (EvidenceItem("Result", failed_sentence(shown, now.failed)), *_evidence_of(now.failed))
        summary = f"The pull failed on {count(len(now.failed), 'node')}."
        yield Check("image-failed", title=title, summary=summary, evidence=results, steps=(MEND_IT,), is_grave=True)
    elif not now.tried:
        title = f"The image of driver {version} was not pulled on nodes of this plan"
        yield Check("image-untried", title=title, steps=(PULL_IT,))
        return
    if now.never_tried:
        image = min(now.never_tried)
        title = f"{count(len(now.never_tried), 'image')} of driver {version} {was(len(now.never_tried))} not pulled yet"
        items = each((node, image) for image, nodes in now.never_tried.items() for node in nodes)
        yield Check("image-unknown", title=title, summary=f"{image} is untested.", evidence=items, steps=(PULL_IT,))
    if now.unproven:
        title, summary = (
            f"It is unknown whether the image of driver {version} can be pulled",
            _unknown(now.unproven[0]),
        )
        yield Check(
            "image-unknown", title=title, summary=summary, evidence=_evidence_of(now.unproven), steps=(PULL_IT,)
        )
    elif now.pulled and not now.failed:
        steps = (shown.pull.left_out,) if shown.pull.left_out else ()
        title = f"The image of driver {version} can be pulled"
        summary = f"Pulled on {len(now.pulled)} of {count(now.count, 'node')}."
        result = (EvidenceItem("Result", now.sentence),)
        yield Check("image-pulled", title=title, summary=summary, evidence=result, steps=steps, is_good=now.is_good)


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


def _pulls_on_picks(nodes: Sequence[Node], needed: Mapping[str, str], shown: PullOnPage) -> PulledOnPicks:
    its = [node for node in shown.nodes if needed.get(node.node_uid) in ("", node.image)]
    tried = {node.node_uid for node in its if node.outcome or node.is_under_way}
    untried: dict[str, list[str]] = {}
    for node in nodes:
        if node.uid not in tried:
            untried.setdefault(needed[node.uid], []).append(node.name)
    still = {*needed.values()}
    failed = [node for node in shown.of(PullOutcome.FAILED) if node in its or node.image in still or "" in still]
    return PulledOnPicks(shown, [node for node in its if node.node_uid in tried], failed, untried, len(nodes))


def _unknown(first: PulledNode) -> str:
    reason = "the pull is in progress." if first.is_under_way else first.says or "nothing was told."
    return f"{first.node_name}: {reason}"


def _evidence_of(nodes: Sequence[PulledNode]) -> tuple[EvidenceItem, ...]:
    return each((node.node_name, node.says or node.image) for node in nodes)
