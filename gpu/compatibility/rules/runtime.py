"""Evaluates the operator with this container runtime."""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.conditions import is_system
from gpu.compatibility.entries import Runtime
from gpu.compatibility.facts import Facts
from gpu.compatibility.ranges import is_in_range, minor, numbers
from gpu.compatibility.verdicts import Support, Verdict

RULE = "runtime"
TITLES = {"cri-o": "CRI-O"}
LOOK_UP = "Check NVIDIA's platform support page."


def evaluate(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if not facts.operator:
        return
    subject = f"Operator {facts.operator}, {f'{_runtime_title(facts)} {facts.runtime_version}'.strip() or 'runtime'}"
    entries = [entry for entry in case.matrix.runtimes if facts.operator in entry.operator]
    if not facts.runtime:
        sentence = "The nodes report no container runtime."
        yield Verdict(RULE, subject, Support.UNKNOWN, sentence, "Check nodeInfo.containerRuntimeVersion of the nodes.")
    elif not entries:
        sentence = f"The matrix gives no container runtime for operator {facts.operator}."
        yield Verdict(RULE, f"Operator {facts.operator}, container runtime", Support.UNKNOWN, sentence, LOOK_UP)
    elif named := next((entry for entry in entries if entry.runtime == facts.runtime_name), None):
        yield _listed_runtime_verdict(subject, named, case)
    else:
        sentence = f"NVIDIA lists containerd and CRI-O for operator {facts.operator}, not {facts.runtime_name}."
        yield entries[0].verdict(RULE, subject, Support.UNSUPPORTED, sentence, "Move the nodes to containerd or CRI-O.")


def _runtime_title(facts: Facts) -> str:
    return TITLES.get(facts.runtime_name, facts.runtime_name)


def _listed_runtime_verdict(subject: str, entry: Runtime, case: Case) -> Verdict:
    facts = case.facts
    name, version = _runtime_title(facts), facts.runtime_version
    if not is_system(facts.system, entry.os or _systems(case)):
        sentence = f"NVIDIA's table of runtimes does not name {facts.system.title or 'this system'} with {name}."
        return entry.verdict(RULE, subject, Support.UNKNOWN, sentence, LOOK_UP)
    if not entry.versions and case.is_openshift:
        sentence = f"NVIDIA lists {name} on Red Hat CoreOS. OpenShift determines its version."
        return entry.verdict(RULE, subject, Support.SUPPORTED, sentence)
    if not entry.versions:
        sentence = f"{name} is listed without a version range. Support for {version} is unknown."
        return entry.verdict(
            RULE,
            subject,
            Support.UNKNOWN,
            sentence,
            f"Keep {name} at the minor version of Kubernetes, which is the tested combination.",
        )
    return _ranged(subject, entry, name, version)


def _systems(case: Case) -> list[str]:
    """Returns all systems listed for the operator, in place of a runtime table without systems."""
    platforms = [entry for entry in case.matrix.platforms if case.facts.operator in entry.operator]
    return [f"{entry.os} {version}".strip() for entry in platforms for version in entry.versions or ("",)]


def _ranged(subject: str, entry: Runtime, name: str, version: str) -> Verdict:
    first, last = entry.versions
    if not numbers(version):
        sentence = f"NVIDIA validated {name} {first} to {last}; the nodes report no version."
        return entry.verdict(RULE, subject, Support.UNKNOWN, sentence, LOOK_UP)
    if is_in_range(version, (first, last)):
        sentence = f"{name} {version} is in the range that NVIDIA validated: {first} to {last}."
        return entry.verdict(RULE, subject, Support.SUPPORTED, sentence)
    if minor(version) < minor(first):
        sentence = f"{name} {version} is older than the range that NVIDIA validated: {first} to {last}."
        return entry.verdict(RULE, subject, Support.UNSUPPORTED, sentence, f"Update {name}.")
    sentence = f"{name} {version} is newer than the range that NVIDIA validated: {first} to {last}."
    return entry.verdict(
        RULE, subject, Support.UNSUPPORTED, sentence, "Update the operator to a release that lists it."
    )
