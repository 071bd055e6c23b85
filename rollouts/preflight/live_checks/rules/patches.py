"""The plan's first two patches, as dry run: policies and webhooks that refuse them show here."""

from collections.abc import Iterator

from rollouts.checks import Check, each
from rollouts.preflight.live_checks.answers import LiveAnswer, barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer, Tried
from wording.numbers import count
from wording.reports import EvidenceItem, fit

DRY_RUN = "A dry run succeeded. Nothing was stored."


def version_is_taken(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, tried = facts.plan, facts.version_patch
    if plan.is_written:
        return
    whether = f"whether {plan.to_version} would be taken by {plan.object_title}"
    if tried is None or isinstance(tried, NoAnswer):
        yield unanswered(whether, tried)
    elif tried.refused:
        title = fit("The API server rejects {} in {}", plan.to_version, plan.object_title)
        answer = (EvidenceItem("Answer", tried.refused),)
        steps = ("Name another version, or ask the owner of that policy or webhook to admit it.",)
        check = Check(
            "live-version", field="to_version", title=title, summary=tried.refused, evidence=answer, steps=steps
        )
        yield barring_answer(check)
    else:
        title = fit("{} accepts {}", plan.object_title, plan.to_version)
        yield passed(Check("live-version", title=title, summary=DRY_RUN, is_good=True))


def hold_is_taken(facts: LiveFacts) -> Iterator[LiveAnswer]:
    if not facts.node_patches:
        yield unanswered("whether a node would take the label that holds it", None)
        return
    for node, tried in facts.node_patches:
        if isinstance(tried, NoAnswer):
            yield unanswered(f"whether {node} would take the label that holds it", tried)
    tries = [(node, tried) for node, tried in facts.node_patches if isinstance(tried, Tried)]
    refused = [(node, tried.refused) for node, tried in tries if tried.refused]
    if refused:
        title = f"The API server rejects the hold label on {count(len(refused), 'node')}"
        answers, words = each(refused), refused[0][1]
        steps = ("Ask the owner of that policy or webhook to let Quarterdeck's service account label nodes.",)
        yield barring_answer(Check("live-hold", title=title, summary=words, evidence=answers, steps=steps))
    if len(tries) == len(facts.node_patches) and not refused:
        title = f"The API server accepts the hold label on {count(len(facts.node_patches), 'node')}"
        yield passed(Check("live-hold", title=title, summary=DRY_RUN, is_good=True))
