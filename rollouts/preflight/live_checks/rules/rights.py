"""Our service account has each right that the plan needs, as the API server answers."""

from collections.abc import Iterator, Sequence

from rollouts.checks import Check
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult, barred, passed, unanswered
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
        yield unanswered(f"whether Quarterdeck may {_said(untold)}", first if isinstance(first, NoAnswer) else None)
    if needed := [right for right in missing if right.is_needed]:
        sentence = f"Quarterdeck may not {_said(needed)}, which the plan needs."
        fix = "Apply deploy/rbac/quarterdeck.yaml, or add these verbs to the roles of Quarterdeck's service account."
        yield barred(Check("live-rights", sentence, fix, about=tuple(map(_line, needed))))
    if spared := [right for right in missing if not right.is_needed]:
        sentence = f"Quarterdeck may not {_said(spared)}: the plan's image cannot be pulled beforehand."
        fix = "Apply the Role for the operator's namespace in deploy/rbac/quarterdeck.yaml where it should be."
        yield LiveAnswer(LiveResult.WARNED, Check("live-pull-rights", sentence, fix, about=tuple(map(_line, spared))))
    if not any(right.is_needed for right in (*unknown, *missing)):
        rights = count(sum(right.is_needed for right in facts.rights), "right")
        yield passed(Check("live-rights", f"Quarterdeck has the {rights} that the plan needs.", is_good=True))


def _said(missing: Sequence[Right]) -> str:
    """Returns text such as "patch nodes, nor create, update leases.coordination.k8s.io in quarterdeck"."""
    by_kind: dict[str, list[str]] = {}
    for right in missing:
        by_kind.setdefault(f"{right.kind}{right.where}", []).append(right.verb)
    return ", nor ".join(f"{' or '.join(verbs)} {what}" for what, verbs in by_kind.items())


def _line(right: Right) -> str:
    return f"{right.verb} {right.kind}{right.where}"
