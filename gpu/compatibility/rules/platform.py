"""Evaluates the operator on this operating system and this Kubernetes or OpenShift."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu.compatibility.case import Case
from gpu.compatibility.entries import Elsewhere, Platform
from gpu.compatibility.facts import Facts
from gpu.compatibility.ranges import is_in_range, is_of, minor, order
from gpu.compatibility.systems import NAMED, NAMES, System
from gpu.compatibility.verdicts import Support, Verdict

RULE = "platform"
MAY = "It may still work, but NVIDIA does not support it."
TITLES = {name: title for name, _, title in NAMES}
LOOK_UP = "Check NVIDIA's platform support page."


def evaluate(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if not facts.operator:
        return
    subject = f"Operator {facts.operator}, {facts.system.title or 'an unknown operating system'}"
    entries = [entry for entry in case.matrix.platforms if facts.operator in entry.operator]
    if not entries:
        sentence = f"The matrix gives no range of Kubernetes versions for operator {facts.operator}."
        yield Verdict(RULE, f"Operator {facts.operator}, Kubernetes", Support.UNKNOWN, sentence, LOOK_UP)
    elif not facts.os:
        sentence = "The nodes report no operating system."
        yield Verdict(RULE, subject, Support.UNKNOWN, sentence, "Check nodeInfo.osImage of the nodes.")
    elif fitting := [entry for entry in entries if _fits(entry, facts.system)]:
        yield _system_verdict(subject, fitting, case)
    else:
        yield _unlisted_verdict(subject, entries, case)


def _fits(entry: Platform | Elsewhere, system: System) -> bool:
    if entry.os != system.name:
        return False
    return not entry.versions or any(is_of(system.version, version) for version in entry.versions)


def _system_verdict(subject: str, fitting: Sequence[Platform], case: Case) -> Verdict:
    distribution = case.facts.distribution
    if own := next((entry for entry in fitting if distribution in entry.distributions), None):
        if not own.openshift:
            return _ranged(subject, own, NAMED.get(distribution, "Kubernetes"), case.facts.kubernetes)
        verdict = _ranged(subject, own, "OpenShift", case.openshift.version)
        return replace(verdict, sentence=f"{verdict.sentence} {case.openshift.reason}".strip())
    return _other_system_verdict(subject, fitting, case.facts)


def _other_system_verdict(subject: str, fitting: Sequence[Platform], facts: Facts) -> Verdict:
    """Returns the verdict for another distribution. NVIDIA lists each separately, so upstream's range says nothing."""
    name = NAMED.get(facts.distribution, "the project itself")
    upstream = next((entry for entry in fitting if "" in entry.distributions and entry.kubernetes), None)
    known = (
        f" For Kubernetes itself, NVIDIA lists {upstream.kubernetes[0]} to {upstream.kubernetes[1]}."
        if upstream
        else ""
    )
    sentence = f"The matrix has no Kubernetes versions of {name} for operator {facts.operator}.{known}"
    return fitting[0].verdict(RULE, f"{subject}, {name}", Support.UNKNOWN, sentence, LOOK_UP)


def _ranged(subject: str, entry: Platform, what: str, version: str) -> Verdict:
    first, last = entry.openshift or entry.kubernetes
    if not version:
        sentence = f"NVIDIA validated {what} {first} to {last} here; the version of {what} cannot be read."
        return entry.verdict(RULE, subject, Support.UNKNOWN, sentence, f"Find out the version of {what}.")
    short = ".".join(str(part) for part in minor(version))
    subject = f"{subject}, {what} {short}"
    if is_in_range(version, (first, last)):
        sentence = f"{what} {short} is in the range that NVIDIA validated: {first} to {last}."
        return entry.verdict(RULE, subject, Support.SUPPORTED, sentence)
    if minor(version) < minor(first):
        sentence = f"{what} {short} is older than the range that NVIDIA validated: {first} to {last}."
        return entry.verdict(RULE, subject, Support.UNSUPPORTED, sentence, f"Update {what}.")
    sentence = f"{what} {short} is newer than the range that NVIDIA validated: {first} to {last}."
    return entry.verdict(
        RULE, subject, Support.UNSUPPORTED, sentence, "Update the operator to a release that lists it."
    )


def _unlisted_verdict(subject: str, entries: Sequence[Platform], case: Case) -> Verdict:
    facts, systems = case.facts, {entry.os for entry in entries}
    for entry in case.matrix.elsewhere:
        if _fits(entry, facts.system):
            return entry.verdict(RULE, subject, Support(entry.answer), entry.sentence, entry.action)
    if facts.system.name in systems:
        listed = ", ".join(_versions(facts.system.name, entries))
        sentence = (
            f"NVIDIA did not validate operator {facts.operator} on {facts.system.title}. It lists these versions "
            f"of it: {listed}."
        )
        return entries[0].verdict(
            RULE, subject, Support.UNSUPPORTED, sentence, f"Update the nodes to a listed version. {MAY}"
        )
    known = "; ".join(f"{TITLES[os]} {', '.join(_versions(os, entries))}".strip() for os in TITLES if os in systems)
    sentence = f"NVIDIA did not validate operator {facts.operator} on {facts.system.title}. It lists: {known}."
    return entries[0].verdict(RULE, subject, Support.UNSUPPORTED, sentence, MAY)


def _versions(os: str, entries: Sequence[Platform]) -> list[str]:
    return sorted({version for entry in entries if entry.os == os for version in entry.versions}, key=order)
