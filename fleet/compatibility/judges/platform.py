"""The operator on this operating system and this Kubernetes, or OpenShift."""

from collections.abc import Iterator, Sequence

from fleet.compatibility.case import Case
from fleet.compatibility.entries import Platform
from fleet.compatibility.facts import Facts
from fleet.compatibility.ranges import is_of, minor, within
from fleet.compatibility.systems import System
from fleet.compatibility.verdicts import Answer, Verdict

RULE = "platform"


def judge(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if not facts.operator:
        return
    subject = f"Operator {facts.operator}, {facts.system.title or 'an operating system that is not named'}"
    entries = [entry for entry in case.matrix.platforms if facts.operator in entry.operator]
    if not entries:
        sentence = f"The matrix gives no range of Kubernetes versions for operator {facts.operator}."
        action = "Look it up in NVIDIA's platform support page."
        yield Verdict(RULE, f"Operator {facts.operator}, Kubernetes", Answer.UNKNOWN, sentence, action)
    elif not facts.os:
        sentence = "The nodes do not say which operating system they run."
        yield Verdict(RULE, subject, Answer.UNKNOWN, sentence, "Look at their nodeInfo.osImage.")
    elif fitting := [entry for entry in entries if _fits(entry, facts.system)]:
        yield _ranged(subject, fitting[0], facts)
    else:
        yield _not_listed(subject, entries, facts)


def _fits(entry: Platform, system: System) -> bool:
    if entry.os != system.name:
        return False
    return not entry.versions or any(is_of(system.version, version) for version in entry.versions)


def _ranged(subject: str, entry: Platform, facts: Facts) -> Verdict:
    what, version = ("OpenShift", facts.openshift) if entry.openshift else ("Kubernetes", facts.kubernetes)
    first, last = entry.openshift or entry.kubernetes
    if not version:
        sentence = f"NVIDIA validated {what} {first} to {last} here; which {what} this is cannot be read."
        return entry.says(RULE, subject, Answer.UNKNOWN, sentence, f"Look up the version of {what}.")
    short = ".".join(str(part) for part in minor(version))
    subject = f"{subject}, {what} {short}"
    if within(version, (first, last)):
        sentence = f"{what} {short} is within what NVIDIA validated: {first} to {last}."
        return entry.says(RULE, subject, Answer.SUPPORTED, sentence)
    if minor(version) < minor(first):
        sentence = f"{what} {short} is older than what NVIDIA validated: {first} to {last}."
        return entry.says(RULE, subject, Answer.UNSUPPORTED, sentence, f"Update {what}.")
    sentence = f"{what} {short} is newer than what NVIDIA validated: {first} to {last}."
    return entry.says(RULE, subject, Answer.UNSUPPORTED, sentence, "Update the operator to a release that lists it.")


def _not_listed(subject: str, entries: Sequence[Platform], facts: Facts) -> Verdict:
    known = ", ".join(sorted({f"{entry.os} {', '.join(entry.versions)}".strip() for entry in entries}))
    sentence = f"NVIDIA did not validate operator {facts.operator} on {facts.system.title}. It lists: {known}."
    action = "It may work all the same; NVIDIA will not look at it where it does not."
    return entries[0].says(RULE, subject, Answer.UNSUPPORTED, sentence, action)
