"""Whether NVIDIA supports going from one operator to another: within a YY.MM series, or to the next one. Pure."""

from gpu.compatibility.matrix import Matrix, the_matrix
from gpu.compatibility.ranges import is_older, minor, numbers, order
from gpu.compatibility.verdicts import Support, Verdict

RULE = "operator-upgrade"


def judge_upgrade(now: str, to: str, *, matrix: Matrix | None = None) -> Verdict:
    """From a version of the operator to another. A way back is no upgrade: NVIDIA says nothing about it."""
    known = matrix or the_matrix()
    subject = f"Operator {now} to {to}"
    entry = max(known.series, key=lambda series: series.date)
    series = sorted({minor(each.series) for each in known.series})
    if not numbers(now) or not numbers(to) or minor(now) not in series or minor(to) not in series:
        sentence = "The matrix does not know both series, so that it cannot say whether one follows the other."
        return entry.says(RULE, subject, Support.UNKNOWN, sentence, "Look it up in NVIDIA's life cycle policy.")
    if order(now) == order(to):
        return entry.says(RULE, subject, Support.SUPPORTED, "It is the same version.")
    if is_older(to, now):
        sentence = "NVIDIA says nothing about going back to an older operator."
        return entry.says(RULE, subject, Support.UNKNOWN, sentence, "Try it on a cluster that nobody needs.")
    between = series[series.index(minor(now)) + 1 : series.index(minor(to))]
    if not between:
        return entry.says(RULE, subject, Support.SUPPORTED, "It is a step within a series or to the next one.")
    skipped = ", ".join(".".join(str(part) for part in each) for each in between)
    sentence = f"It skips {skipped}; NVIDIA supports upgrades only within a series or to the next one."
    return entry.says(RULE, subject, Support.UNSUPPORTED, sentence, f"Go through {skipped} first.")
