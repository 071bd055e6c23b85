"""Whether the image of the version was pulled beforehand (hazard Z36): proven, refused, not known, or not tried."""

from collections.abc import Iterator

from rollouts.checks import Check, each
from rollouts.images.driver_image import image_for
from rollouts.images.progress import PullOutcome
from rollouts.models import PullJob
from rollouts.preflight.subject import PreflightSubject
from rollouts.pulls import PullOnPage, failed_sentence, newest_pull, proven_sentence
from rollouts.queries import driver_daemonsets
from wording.numbers import count

PULL_IT = "Pull it beforehand, from the plan's page: a Job for each operating system."


def are_pulled(subject: PreflightSubject) -> Iterator[Check]:
    """Three queries."""
    version, shown = subject.plan.to_version, newest_pull(subject.plan)
    if shown is None or shown.pull.to_version != version:
        yield Check("image-untried", f"Nobody has tried whether the image of {version} can be pulled.", PULL_IT)
        return
    if failed := shown.of(PullOutcome.FAILED):
        yield Check("image-failed", failed_sentence(shown), is_grave=True, about=_about(failed))
    if untried := _untried(subject, shown):
        image, nodes = min(untried.items())
        sentence = f"Nobody has tried whether {image} can be pulled, which {count(len(nodes), 'node')} will need."
        yield Check(
            "image-unknown", sentence, PULL_IT, about=each(node for those in untried.values() for node in those)
        )
    if shown.is_proven:
        sentence = proven_sentence(shown, nodes=len(subject.picks.nodes))
        yield Check("image-pulled", sentence, shown.pull.left_out, is_good=not shown.pull.left_out and not untried)
    elif unproven := [job for one in shown.systems if not one.pulled for job in one.jobs if job.outcome != "failed"]:
        yield Check("image-unknown", _unknown(shown, unproven), PULL_IT, about=_about(unproven))


def _untried(subject: PreflightSubject, shown: PullOnPage) -> dict[str, list[str]]:
    """Image → the nodes that will need it, of those that are no part of the pull: other systems came since."""
    plan, tried = subject.plan, {job.image for job in shown.jobs}
    versions = {"from_version": plan.from_version, "to_version": plan.to_version}
    images = {row.uid: image_for(row.image, **versions) for row in driver_daemonsets(plan)}
    found: dict[str, list[str]] = {}
    for node in subject.picks.nodes:
        image = images.get(node.driver_daemon_set, "")
        if image and image not in tried:
            found.setdefault(image, []).append(node.name)
    return found


def _unknown(shown: PullOnPage, unproven: list[PullJob]) -> str:
    first = unproven[0]
    is_under_way = shown.may_be_cancelled and not first.outcome
    because = (
        "it is being pulled now." if is_under_way else first.says or shown.pull.ends_because or "it was not tried."
    )
    return f"It is not known whether {first.image} can be pulled: on {first.node_name}, {because}"


def _about(jobs: list[PullJob]) -> tuple[str, ...]:
    return each(f"{job.node_name}: {job.image}. {job.says}".rstrip() for job in jobs)
