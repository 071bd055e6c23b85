"""The plan's first two patches, as dry run: policies and webhooks that refuse them show here."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barred, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer, Tried
from wording.lists import names
from wording.numbers import either


def version_is_taken(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, tried = facts.plan, facts.version_patch
    if plan.is_written:
        return
    whether = f"whether {plan.to_version} would be taken by {plan.object_title}"
    if tried is None or isinstance(tried, NoAnswer):
        yield unanswered(whether, tried)
    elif tried.refused:
        sentence = f"The API server refuses {plan.to_version} in {plan.object_title}: {tried.refused}"
        fix = "Name a version that is let in, or have whoever runs that policy or webhook let it in."
        yield barred(Check("live-version", sentence, fix, field="to_version"))
    else:
        sentence = f"{plan.to_version} would be taken by {plan.object_title}: it was tried without storing it."
        yield passed(Check("live-version", sentence, is_good=True))


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
        on = names([node for node, _ in refused])
        sentence = f"The API server refuses the label that holds a node on {on}: {refused[0][1]}"
        fix = "Have whoever runs that policy or webhook let Quarterdeck's service account label nodes."
        about = tuple(f"{node}: {words}" for node, words in refused)
        yield barred(Check("live-hold", sentence, fix, about=about))
    if len(tries) == len(facts.node_patches) and not refused:
        on = names([node for node, _ in facts.node_patches])
        was = either(len(facts.node_patches), "it was", "each was")
        sentence = f"The label that holds a node would be taken on {on}: {was} tried without storing it."
        yield passed(Check("live-hold", sentence, is_good=True))
