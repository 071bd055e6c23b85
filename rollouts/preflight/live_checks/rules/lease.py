"""Our Lease shows no other Quarterdeck and no old copy of the database (Z10)."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer
from wording.reports import EvidenceItem


def is_ours(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, trouble = facts.plan, facts.lease
    if trouble is None or isinstance(trouble, NoAnswer):
        yield unanswered(f"whether another Quarterdeck drives {plan.cluster}", trouble)
    elif trouble:
        steps = ("Decide which Quarterdeck writes, and stop the other one.", f"Its Lease: {plan.command}")
        lease = (EvidenceItem("Lease", trouble),)
        title = f"Another Quarterdeck may write to {plan.cluster}"
        yield barring_answer(Check("live-lease", title=title, summary=trouble, evidence=lease, steps=steps))
    else:
        yield passed(Check("live-lease", title=f"No other Quarterdeck writes to {plan.cluster}", is_good=True))
