"""The driver object is as in the preview (Z25)."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer, ObjectFacts, PlanFacts
from wording.reports import EvidenceItem, fit

ANEW = ("Draft the plan again.",)


def is_as_shown(facts: LiveFacts) -> Iterator[LiveAnswer]:
    plan, seen = facts.plan, facts.driver_object
    if seen is None or isinstance(seen, NoAnswer):
        yield unanswered(f"how {plan.object_title} is now", seen)
    elif not seen.uid:
        yield barring_answer(Check("live-object", title=fit("{} was deleted", plan.object_title), steps=ANEW))
    elif seen.uid != plan.object_uid:
        yield barring_answer(
            Check("live-object", title=fit("{} was deleted and created again", plan.object_title), steps=ANEW)
        )
    elif plan.is_written:
        yield _answer_after_write(plan, seen)
    elif seen.version != plan.from_version:
        title, summary = _version_title(plan, seen), f"The plan was written for {plan.from_version}."
        yield barring_answer(Check("live-object", title=title, summary=summary, steps=ANEW))
    elif seen.generation != plan.generation:
        generations = (
            EvidenceItem("Generation in the cluster", seen.generation),
            EvidenceItem("Generation in the preview", "none" if plan.generation is None else plan.generation),
        )
        steps = (
            "Wait some seconds until Quarterdeck shows the change.",
            "Read the preview again, then start the plan.",
        )
        title = fit("{} changed after the preview", plan.object_title)
        yield barring_answer(Check("live-object", title=title, evidence=generations, steps=steps))
    else:
        summary = f"It asks for {seen.version}, generation {seen.generation}."
        title = fit("{} is as in the preview", plan.object_title)
        yield passed(Check("live-object", title=title, summary=summary, is_good=True))


def _answer_after_write(plan: PlanFacts, seen: ObjectFacts) -> LiveAnswer:
    if seen.version == plan.to_version:
        summary = "The plan wrote this version."
        return passed(Check("live-object", title=_version_title(plan, seen), summary=summary, is_good=True))
    summary, steps = f"The plan wrote {plan.to_version}.", ("Find out who changed it. The plan halts.",)
    return barring_answer(Check("live-object", title=_version_title(plan, seen), summary=summary, steps=steps))


def _version_title(plan: PlanFacts, seen: ObjectFacts) -> str:
    if seen.version:
        return fit("{} asks for {}", plan.object_title, seen.version)
    return fit("{} names no version", plan.object_title)
