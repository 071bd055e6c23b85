"""Our Lease shows no other Quarterdeck and no old copy of the database (Z10)."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barred, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer


def is_ours(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, trouble = facts.plan, facts.lease
    if trouble is None or isinstance(trouble, NoAnswer):
        yield unanswered(f"whether another Quarterdeck drives {plan.cluster}", trouble)
    elif trouble:
        fix = f"Decide which Quarterdeck drives it, and end what the other one does. Its Lease: {plan.command}"
        yield barred(Check("live-lease", trouble, fix))
    else:
        yield passed(Check("live-lease", f"No other Quarterdeck drives {plan.cluster}.", is_good=True))
