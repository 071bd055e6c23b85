"""Evaluates the driver: end of life of its branch, and the operator's list."""

from collections.abc import Iterator
from datetime import date

from gpu.compatibility.case import Case
from gpu.compatibility.entries import SOON, Branch, ListedEntry
from gpu.compatibility.matrix import Matrix
from gpu.compatibility.ranges import order
from gpu.compatibility.verdicts import Support, Verdict

RULE = "driver"
LOOK_UP = "Check NVIDIA's table of driver branches before you rely on it."


def evaluate(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if not facts.driver:
        sentence = "The nodes report no driver version."
        yield Verdict(
            RULE, "Driver", Support.UNKNOWN, sentence, "Open the GPU stack on the page of one of these nodes."
        )
        return
    if branch := case.matrix.branch_of(facts.driver):
        yield _branch_verdict(branch, case.today)
    else:
        yield _unknown_branch_verdict(facts.driver, case.matrix)
    if facts.operator:
        entry = next((each for each in case.matrix.listed if facts.operator in each.operator), None)
        yield _list_verdict(facts.operator, facts.driver, entry)


def _branch_verdict(branch: Branch, today: date) -> Verdict:
    subject = f"Branch R{branch.branch}"
    name = f"R{branch.branch} ({branch.kind})" if branch.kind else f"R{branch.branch}"
    if has_branch_ended(branch, today):
        on = f" in {branch.ends:%B %Y}" if branch.ends else ", on an unknown day"
        sentence = f"{name} reached its end of life{on} and gets no more fixes, not even for CVEs."
        return branch.verdict(RULE, subject, Support.UNSUPPORTED, sentence, "Plan a step to a maintained branch.")
    if branch.ends and branch.ends - today <= SOON:
        sentence = f"{name} reaches its end of life in {branch.ends:%B %Y}: in {(branch.ends - today).days} days."
        return branch.verdict(RULE, subject, Support.DEPRECATED, sentence, "Plan a step to a newer branch now.")
    if branch.ends is None:
        sentence = f"NVIDIA's table has no end of life for {name}, so the end of its fixes is unknown."
        return branch.verdict(RULE, subject, Support.UNKNOWN, sentence, LOOK_UP)
    return branch.verdict(RULE, subject, Support.SUPPORTED, f"{name} is maintained until {branch.ends:%B %Y}.")


def _unknown_branch_verdict(driver: str, matrix: Matrix) -> Verdict:
    newest = max(matrix.branches, key=lambda branch: branch.branch)
    subject = f"Driver {driver}"
    if order(driver)[0] > newest.branch:
        sentence = f"{driver} is newer than the matrix, whose newest branch is R{newest.branch}."
    else:
        sentence = f"The matrix does not know the branch of driver {driver}."
    return newest.verdict(RULE, subject, Support.UNKNOWN, sentence, LOOK_UP)


def has_branch_ended(branch: Branch, today: date) -> bool:
    return branch.ended or (branch.ends is not None and branch.ends < today)


def _list_verdict(operator: str, driver: str, entry: ListedEntry | None) -> Verdict:
    subject = f"Operator {operator}, driver {driver}"
    if entry is None:
        sentence = f"The matrix has no list of drivers for operator {operator}."
        return Verdict(
            RULE, f"Operator {operator}, drivers", Support.UNKNOWN, sentence, "Check NVIDIA's component matrix."
        )
    if order(driver) in [order(each) for each in entry.drivers]:
        return entry.verdict(RULE, subject, Support.SUPPORTED, f"NVIDIA lists {driver} for operator {operator}.")
    sentence = (
        f"NVIDIA does not list {driver} for operator {operator}{_listed_drivers_text(driver, entry)}. NVIDIA adds "
        "drivers between releases and supports every maintained production driver."
    )
    action = f"NVIDIA recommends {entry.recommended}." if entry.recommended else "Check whether NVIDIA lists it now."
    return entry.verdict(RULE, subject, Support.UNKNOWN, sentence, action)


def _listed_drivers_text(driver: str, entry: ListedEntry) -> str:
    listed = [each for each in entry.drivers if order(each)[0] == order(driver)[0]]
    return f"; it lists {', '.join(listed)} of that branch" if listed else ", nor any other driver of that branch"
