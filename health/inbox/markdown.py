"""An incident or a shift as Markdown, to paste into a chat or a ticket."""

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urljoin

from health.impact import Impact
from health.inbox.queries import Detail
from health.inbox.shift_report import Handover, ReportedFinding, ReportSection
from health.models import Finding
from wording.durations import spell
from wording.instants import to_the_minute, to_the_second
from wording.numbers import count, either


def as_markdown(detail: Detail, *, link: str, now: datetime) -> str:
    return "\n".join(_markdown_lines(detail, link, now)) + "\n"


def _markdown_lines(detail: Detail, link: str, now: datetime) -> Iterator[str]:
    finding = detail.finding
    yield f"**{_escape(finding.title)}**"
    yield ""
    if finding.summary:
        yield _escape(finding.summary)
        yield ""
    yield f"- {finding.severity}, {finding.state}: {_escape(detail.rule_title)} (`{finding.rule}`)"
    where = f", {either(len(detail.pools), 'pool', 'pools')} {', '.join(detail.pools)}" if detail.pools else ""
    yield f"- Where: {_escape(finding.subject)}, cluster {_escape(finding.cluster.name)}{_escape(where)}"
    again = f"; {finding.recurrence}" if finding.recurrence else ""
    yield f"- Since {to_the_second(finding.since)}{again}"
    if detail.last_seen:
        yield f"- {detail.last_seen.sentence}"
    if finding.resolved_at:
        reason = f", as {finding.resolved_reason}" if finding.resolved_reason else ""
        yield f"- Resolved {to_the_second(finding.resolved_at)}{reason}"
    yield from _assignee_lines(finding)
    if detail.impact:
        yield f"- Impact: {detail.impact.sentence}{_first_pod_name(detail.impact)}"
    yield from (f"- {_escape(item.label)}: {_escape(item.text)}" for item in finding.evidence_items)
    yield from (f"- Probable cause: {_escape(cause)}" for cause in finding.causes)
    yield from (f"- Listed under it: {_escape(child.title)}" for child in detail.children)
    if detail.alike:
        named = ", ".join(f"{_escape(one.subject)} in {_escape(one.cluster.name)}" for one in detail.alike)
        more = f" and {detail.alike_left_out} more" if detail.alike_left_out else ""
        yield f"- {_escape(detail.code) or 'The same rule'} also: {named}{more}"
    if detail.elsewhere:
        yield f"- The same rule has {count(detail.elsewhere, 'other open finding')} now"
    yield from (f"- {_escape(shared.title)}. {_escape(shared.summary)}" for shared in filter(None, [detail.shared]))
    if detail.driver_change:
        changed = f"{to_the_second(detail.driver_change.at)}, {detail.driver_changed}"
        yield f"- Last driver change: {changed}: {_escape(detail.driver_change.sentence)}"
    elif finding.node_id:
        yield "- Last driver change: none is known"
    yield f"- {link}"
    yield ""
    if finding.steps:
        yield "Steps:"
        yield ""
        yield from (f"{number}. {_escape(step)}" for number, step in enumerate(finding.steps, 1))
        yield ""
    yield f"As of {to_the_second(now)}."


def _first_pod_name(impact: Impact) -> str:
    """Returns the name of the first affected pod; empty if there is none."""
    more = ", …" if impact.pods > len(impact.names) else ""
    return f" ({_escape(', '.join(impact.names))}{more})" if impact.names else ""


def _assignee_lines(finding: Finding) -> Iterator[str]:
    if finding.acknowledged_by and finding.acknowledged_at:
        yield f"- Acknowledged by {_escape(finding.acknowledged_by)} at {to_the_second(finding.acknowledged_at)}"
    if finding.assigned_to:
        yield f"- Assigned to {_escape(finding.assigned_to)}"


def handover_as_markdown(handover: Handover, *, inbox: str) -> str:
    """Returns the handover as Markdown. `inbox` is the inbox's address for other readers."""
    return "\n".join(_handed_over(handover, inbox)) + "\n"


def _handed_over(handover: Handover, inbox: str) -> Iterator[str]:
    counts, late = handover.counts, [age.words for age in handover.ages if age.is_late]
    yield f"**Shift report, {to_the_minute(handover.at)}**"
    yield ""
    yield (
        f"{counts.unresolved} unresolved: {counts.open} open, {counts.acknowledged} acknowledged, "
        f"{counts.confirming} being confirmed, {counts.muted} muted."
    )
    if handover.in_shadow_mode:
        what = either(
            handover.in_shadow_mode,
            "is in shadow mode and notifies nobody",
            "are in shadow mode and notify nobody",
        )
        yield f"{count(handover.in_shadow_mode, 'rule')} {what}."
    if late:
        yield ""
        yield "Outdated or incomplete data:"
        yield from (f"- {_escape(one)}" for one in late)
    yield from _cases(handover, inbox)
    yield from _section("Unresolved, the worst first:", handover.unresolved, inbox)
    yield from _section(f"Resolved in the last {count(handover.hours, 'hour')}:", handover.resolved, inbox)


def _cases(handover: Handover, inbox: str) -> Iterator[str]:
    yield ""
    yield "Open cases, the longest in their state first:"
    if not handover.cases.lines:
        yield "- none"
    for case in handover.cases.lines:
        state = f"{case.state.lower()} for {spell(handover.at - case.state_since)}"
        opened = f"opened {spell(handover.at - case.opened_at)} ago: {_escape(case.reason)}"
        parts = [f"{_escape(case.node)} in {_escape(case.cluster)}", state, f"owner: {_escape(case.owner)}", opened]
        following = f"Next: {_escape(case.next_step)} {urljoin(inbox, case.path)}"
        yield f"- **Case {case.number}** ({'; '.join(parts)}). {following}"
    if handover.cases.left_out:
        yield f"- and {handover.cases.left_out} more"


def _section(head: str, section: ReportSection, inbox: str) -> Iterator[str]:
    yield ""
    yield head
    if not section.lines:
        yield "- none"
    for line in section.lines:
        yield f"- {_finding_in_line(line)} {inbox}?finding={line.finding.pk}"
    if section.left_out:
        yield f"- and {section.left_out} more"


def _finding_in_line(line: ReportedFinding) -> str:
    finding = line.finding
    parts = [f"{finding.severity}, {finding.state}", f"{_escape(finding.subject)} in {_escape(finding.cluster.name)}"]
    parts.append(f"since {to_the_minute(finding.since)}")
    if finding.resolved_at:
        reason = f", as {finding.resolved_reason}" if finding.resolved_reason else ""
        parts.append(f"resolved {to_the_minute(finding.resolved_at)}{reason}")
    else:
        if finding.acknowledged_by:
            parts.append(f"acknowledged by {_escape(finding.acknowledged_by)}")
        if finding.assigned_to and finding.assigned_to != finding.acknowledged_by:
            parts.append(f"assigned to {_escape(finding.assigned_to)}")
    if line.impact:
        parts.append(line.impact.short)
    if line.last_seen:
        parts.append(line.last_seen.sentence.removesuffix("."))
    return f"**{_escape(finding.title)}** ({'; '.join(parts)})"


def _escape(text: str) -> str:
    """Escapes names from a cluster, so that none becomes a heading, a link, code or a mention.

    Mentions are matched in the rendered text, without backslashes. A zero-width space after @ stops them.
    """
    words = "".join(f"\\{letter}" if letter in r"\`*_[]<>#|" else letter for letter in " ".join(text.split()))
    return words.replace("@", "@\u200b")
