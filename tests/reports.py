"""The texts of a problem, or of a finding, as one string each, for tests that look for words."""

from health.models import Finding
from health.rules.base import Problem


def told(report: Problem | Finding) -> str:
    """Title, summary and evidence, a line each."""
    items = report.evidence_items if isinstance(report, Finding) else report.evidence
    return "\n".join((report.title, report.summary, *(f"{item.label}: {item.text}" for item in items)))


def causes(report: Problem | Finding) -> str:
    return " ".join(report.causes)


def steps(report: Problem | Finding) -> str:
    return " ".join(report.steps)
