"""The driver object is as in the preview (Z25)."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barred, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer, ObjectFacts, PlanFacts

ANEW = "Draft it anew, for what is there now."


def is_as_shown(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, seen = facts.plan, facts.driver_object
    if seen is None or isinstance(seen, NoAnswer):
        yield unanswered(f"how {plan.object_title} is now", seen)
    elif not seen.uid:
        yield barred(Check("live-object", f"{plan.object_title} was deleted.", ANEW))
    elif seen.uid != plan.object_uid:
        sentence = f"{plan.object_title} was deleted and made again: it is another object now."
        yield barred(Check("live-object", sentence, ANEW))
    elif plan.is_written:
        yield _as_written(plan, seen)
    elif seen.version != plan.from_version:
        asks = f"asks for {seen.version}" if seen.version else "names no version"
        sentence = f"{plan.object_title} {asks} now; the plan was written for {plan.from_version}."
        yield barred(Check("live-object", sentence, ANEW))
    elif seen.generation != plan.generation:
        known = "no longer shown" if plan.generation is None else f"shown as generation {plan.generation}"
        sentence = (
            f"{plan.object_title} was changed, and what the preview was made from is older: it is generation "
            f"{seen.generation}, and {known}."
        )
        fix = "Wait until Quarterdeck shows it, which takes seconds, read the preview again, and start it then."
        yield barred(Check("live-object", sentence, fix))
    else:
        sentence = f"{plan.object_title} is as it is shown: it asks for {seen.version}, generation {seen.generation}."
        yield passed(Check("live-object", sentence, is_good=True))


def _as_written(plan: PlanFacts, seen: ObjectFacts) -> LiveAnswer:
    if seen.version == plan.to_version:
        sentence = f"{plan.object_title} asks for {seen.version}, as the plan wrote."
        return passed(Check("live-object", sentence, is_good=True))
    asks = f"asks for {seen.version}" if seen.version else "names no version"
    sentence = f"{plan.object_title} {asks} now; the plan wrote {plan.to_version}."
    return barred(Check("live-object", sentence, "See who changed it: the plan halts."))
