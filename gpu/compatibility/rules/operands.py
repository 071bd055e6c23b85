"""Evaluates overridden image tags: NVIDIA tests the operands of a release as a set."""

from collections.abc import Iterator, Mapping

from gpu.compatibility.case import Case
from gpu.compatibility.entries import Release
from gpu.compatibility.ranges import order
from gpu.compatibility.verdicts import Support, Verdict
from gpu.versions import agree, is_digest

RULE = "operands"
SHOWN = 4


def evaluate(case: Case) -> Iterator[Verdict]:
    operator, requested = case.facts.operator, case.facts.asked
    if not operator or not requested:
        return
    release = next((each for each in case.matrix.releases if order(each.version) == order(operator)), None)
    if release is None:
        sentence = f"The matrix has no image tags of operator {operator}, so the tags here cannot be evaluated."
        action = "Compare them with the chart's values.yaml."
        yield Verdict(RULE, f"Operands of {operator}", Support.UNKNOWN, sentence, action)
        return
    yield from _compare_tags(
        release, {operand: requested[operand] for operand in sorted(requested) if operand in release.operands}
    )


def _compare_tags(release: Release, requested: Mapping[str, str]) -> Iterator[Verdict]:
    subject = f"Operands of {release.version}"
    hidden = [operand for operand, version in requested.items() if is_digest(version)]
    others = [
        operand
        for operand, version in requested.items()
        if operand not in hidden and not ships(release.operands[operand], version)
    ]
    if others:
        tags = _tag_pairs_text(others, requested, release)
        sentence = f"Image tags are overridden one by one: {tags}. NVIDIA tests them as a set."
        action = "Remove the versions from the values, so that the chart's versions are used."
        yield release.verdict(RULE, subject, Support.UNSUPPORTED, sentence, action)
    if hidden:
        sentence = f"Named by digest, without a readable version: {', '.join(hidden)}."
        yield release.verdict(RULE, subject, Support.UNKNOWN, sentence, "Compare the digests with the release's.")
    if requested and not others and not hidden:
        sentence = f"All set image tags ({len(requested)}) are the tags of {release.version}."
        yield release.verdict(RULE, subject, Support.SUPPORTED, sentence)


def ships(default: str, requested: str) -> bool:
    """Tells whether a tag is the release's version. DCGM's images add a build number: 4.5.2-1-ubuntu22.04 is 4.5.2."""
    return bool(agree(default, requested)) or bool("-" not in default and agree(default, requested.partition("-")[0]))


def _tag_pairs_text(operands: list[str], requested: Mapping[str, str], release: Release) -> str:
    pairs = [f"{each} {requested[each]} (ships {release.operands[each]})" for each in operands[:SHOWN]]
    more = f", and {len(operands) - SHOWN} more" if len(operands) > SHOWN else ""
    return f"{', '.join(pairs)}{more}"
