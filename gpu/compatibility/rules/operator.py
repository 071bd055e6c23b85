"""Evaluates the operator's life cycle: the newest YY.MM is supported, the one before deprecated, older ones ended."""

from collections.abc import Iterator
from datetime import timedelta

from gpu.compatibility.case import Case
from gpu.compatibility.entries import Series
from gpu.compatibility.matrix import Matrix
from gpu.compatibility.ranges import is_older, minor, order
from gpu.compatibility.verdicts import Support, Verdict

RULE = "operator"
OLD = timedelta(days=180)  # after this time a newer series exists, by NVIDIA's release cadence
ONE_BY_ONE = "Update to a supported series, one series at a time: NVIDIA supports upgrades only to the next series."


def evaluate(case: Case) -> Iterator[Verdict]:
    version, matrix = case.facts.operator, case.matrix
    subject = f"Operator {version}".strip()
    if not version:
        sentence = "The version of the GPU Operator is unknown, so nothing can be compared with the matrix."
        yield Verdict(RULE, subject, Support.UNKNOWN, sentence, "Check its Deployment, if it has one.")
    elif is_older(matrix.newest.version, version):
        yield _newer(subject, version, matrix)
    elif series := next((each for each in matrix.series if minor(each.series) == minor(version)), None):
        is_old = series.state != "ended" and case.today - series.date > OLD
        yield (
            _outdated_series_verdict(subject, series, case)
            if is_old
            else _series_verdict(subject, series, version, matrix)
        )
    else:
        yield _unlisted(subject, version, matrix)


def _series_verdict(subject: str, series: Series, version: str, matrix: Matrix) -> Verdict:
    name = f"{series.series}.x"
    newest = _newest_of(series, version, matrix)
    if series.state == "supported":
        return series.verdict(RULE, subject, Support.SUPPORTED, f"{name} is supported.{newest}")
    if series.state == "deprecated":
        sentence = f"{name} is deprecated: only critical bugs and CVEs are still fixed.{newest}"
        return series.verdict(RULE, subject, Support.DEPRECATED, sentence, "Plan the update to the next series.")
    since = f" when {series.ended_by} came" if series.ended_by else ""
    sentence = f"{name} reached its end of support{since} and gets no more fixes."
    return series.verdict(RULE, subject, Support.UNSUPPORTED, sentence, ONE_BY_ONE)


def _outdated_series_verdict(subject: str, series: Series, case: Case) -> Verdict:
    days = (case.today - series.date).days
    sentence = (
        f"{series.series}.x was {series.state} {days} days ago, when the matrix was read; it may have ended since."
    )
    action = "Check NVIDIA's life cycle policy, and update Quarterdeck."
    return series.verdict(RULE, subject, Support.UNKNOWN, sentence, action)


def _newest_of(series: Series, version: str, matrix: Matrix) -> str:
    """Returns a hint to the newest patch of the series. Blank: it runs already, or none is known."""
    patches = [release.version for release in matrix.releases if minor(release.version) == minor(series.series)]
    newest = max(patches, key=order, default=version)
    return f" Its newest release is {newest}." if is_older(version, newest) else ""


def _newer(subject: str, version: str, matrix: Matrix) -> Verdict:
    sentence = (
        f"The matrix was read on {matrix.read_on:%Y-%m-%d}; newer releases are missing. Its newest release is "
        f"{matrix.newest.version}, and {version} runs here."
    )
    action = "Check NVIDIA's platform support page, and update Quarterdeck."
    return Verdict(RULE, subject, Support.UNKNOWN, sentence, action, matrix.newest.source, matrix.read_on)


def _unlisted(subject: str, version: str, matrix: Matrix) -> Verdict:
    oldest = min(matrix.series, key=lambda series: minor(series.series))
    if minor(version) < minor(oldest.series):
        sentence = f"{version} is older than {oldest.series}, which has reached its end of support."
        return oldest.verdict(RULE, subject, Support.UNSUPPORTED, sentence, ONE_BY_ONE)
    sentence = f"The matrix has no series for {version}. It may be a custom build."
    return oldest.verdict(RULE, subject, Support.UNKNOWN, sentence, "Find out the release that it was built from.")
