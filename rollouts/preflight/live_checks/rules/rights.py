"""Our service account has each right that the plan needs, as the API server answers."""

from collections.abc import Iterator, Sequence

from rollouts.checks import Check, each
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult, barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import LiveFacts, NoAnswer, Right
from wording.numbers import count


def are_there(facts: LiveFacts) -> Iterator[LiveAnswer]:
    if not facts.rights:
        yield unanswered("what Quarterdeck may do there", None)
        return
    unknown = [right for right in facts.rights if isinstance(right.is_allowed, NoAnswer)]
    missing = [right for right in facts.rights if right.is_allowed is False]
    if untold := [right for right in unknown if right.is_needed]:
        first = untold[0].is_allowed
        rights = each(map(_right_line, untold))
        given = first if isinstance(first, NoAnswer) else None
        yield unanswered(f"whether Quarterdeck may {_rights_text(untold)}", given, *rights)
    if needed := [right for right in missing if right.is_needed]:
        title = f"Quarterdeck lacks {count(len(needed), 'right')} that the plan needs"
        steps = ("Apply deploy/rbac/quarterdeck.yaml, or add these verbs to the roles of the service account.",)
        summary, lines = f"It may not {_rights_text(needed)}.", each(map(_right_line, needed))
        yield barring_answer(Check("live-rights", title=title, summary=summary, evidence=lines, steps=steps))
    if spared := [right for right in missing if not right.is_needed]:
        title, lines = "The plan's image cannot be pulled beforehand", each(map(_right_line, spared))
        steps = ("Apply the Role for the operator's namespace in deploy/rbac/quarterdeck.yaml.",)
        summary = f"Quarterdeck may not {_rights_text(spared)}."
        check = Check("live-pull-rights", title=title, summary=summary, evidence=lines, steps=steps)
        yield LiveAnswer(LiveResult.WARNED, check)
    if not any(right.is_needed for right in (*unknown, *missing)):
        held = count(sum(right.is_needed for right in facts.rights), "right")
        yield passed(Check("live-rights", title=f"Quarterdeck has the {held} that the plan needs", is_good=True))


def _rights_text(missing: Sequence[Right]) -> str:
    """Returns text such as "patch nodes, nor create, update leases.coordination.k8s.io in quarterdeck"."""
    by_kind: dict[str, list[str]] = {}
    for right in missing:
        by_kind.setdefault(f"{right.kind}{right.where}", []).append(right.verb)
    return ", nor ".join(f"{' or '.join(verbs)} {what}" for what, verbs in by_kind.items())


def _right_line(right: Right) -> tuple[str, str]:
    return f"{right.kind}{right.where}", right.verb
