"""Acts of a person on one finding.

Each act is one transaction: the guarded write, the act, the audit entry and the counts. It takes the same lock as an
evaluation, so neither overwrites the other.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from edges import concurrent_edits
from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.transition_errors import LostRace
from fleet.models import Cluster
from health.evaluation.finding_counts import announce_findings, count_on_nodes
from health.evaluation.finding_events import write_events
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.rights import may_see_finding
from health.inbox.verbs import VERBS, why_not_now
from health.lifecycle import FindingState
from health.models import Finding, FindingAct
from people.models import AuditEntry, User

ACCEPTED, DISMISSED = "accepted", "dismissed"
EVENT_OF_VERB: Mapping[str, str] = {  # kinds of `fleet.event_kinds`
    "acknowledge": "finding.acknowledged",
    "assign": "finding.assigned",
    "unassign": "finding.unassigned",
    "accept": "finding.accepted",
    "dismiss": "finding.dismissed",
}
HOLDS: Mapping[str, Callable[[Finding, FindingAct], bool]] = {  # tests whether the effect of an act holds now
    "acknowledge": lambda now, act: now.state == FindingState.ACKNOWLEDGED and now.acknowledged_at == act.at,
    "assign": lambda now, act: now.assigned_to == act.to,
    "unassign": lambda now, _: not now.assigned_to and now.state != FindingState.ACKNOWLEDGED,
    "accept": lambda now, act: (now.feedback, now.feedback_by) == (ACCEPTED, act.by),
    "dismiss": lambda now, act: (now.feedback, now.feedback_by) == (DISMISSED, act.by),
}


def acknowledge(finding: Finding, *, actor: str, reason: str = "", key: str = "", now: datetime) -> None:
    """Acknowledges a finding. An unassigned finding is assigned to the actor.

    :raises FindingRefusal: when the finding is not open
    :raises LostRace: when somebody else was first
    """

    def act() -> None:
        finding.refresh_from_db(fields=["assigned_to"])  # somebody may have been assigned since it was read
        whose = {} if finding.assigned_to else {"assigned_to": actor}
        finding.move(FindingState.ACKNOWLEDGED, now=now, acknowledged_by=actor, **whose)

    _apply_verb(finding, "acknowledge", act, actor=actor, reason=reason, key=key, now=now)


def mark_of(finding: Finding, verb: str) -> str:
    """Returns the mark of the finding's state that the act depends on; empty if it depends on none."""
    columns = VERBS[verb].changes
    return concurrent_edits.mark_of(finding, columns) if columns else ""


def assign(
    finding: Finding, *, to: str, actor: str, reason: str = "", key: str = "", seen: str = "", now: datetime
) -> None:
    """Assigns a finding.

    `seen`, here and in the other acts, is the finding's `mark_of` when it was shown; empty means as it is now.

    :raises BadAct: when no user of that name may see the finding
    :raises LostRace: when it was assigned to somebody else meanwhile
    """
    person = User.objects.filter(username=to, is_active=True).first()
    if person is None or not may_see_finding(person, finding):
        raise BadAct(("to", f"No person with the name {to} may see this finding."))

    def act() -> None:
        if finding.assigned_to == to:
            raise FindingRefusal(f"The finding is already assigned to {to}.")
        _write(finding, now=now, unless={"assigned_to": finding.assigned_to}, assigned_to=to)

    _apply_verb(finding, "assign", act, actor=actor, reason=reason, key=key, seen=seen, now=now, to=to)


def unassign(finding: Finding, *, actor: str, reason: str = "", key: str = "", seen: str = "", now: datetime) -> None:
    """Removes the assignee of a finding.

    :raises FindingRefusal: when it has no assignee
    :raises LostRace: when it changed meanwhile
    """

    def act() -> None:
        if finding.state == FindingState.ACKNOWLEDGED:
            _require_unchanged(Finding.objects.filter(pk=finding.pk, assigned_to=finding.assigned_to).exists())
            finding.move(FindingState.OPEN, now=now, assigned_to="")
        elif finding.assigned_to:
            _write(finding, now=now, unless={"assigned_to": finding.assigned_to}, assigned_to="")
        else:
            raise FindingRefusal("The finding has no assignee.")

    _apply_verb(finding, "unassign", act, actor=actor, reason=reason, key=key, seen=seen, now=now)


def accept(finding: Finding, *, actor: str, reason: str, key: str = "", seen: str = "", now: datetime) -> None:
    """Records that the recommended action is right."""
    _give_feedback(finding, "accept", ACCEPTED, actor=actor, reason=reason, key=key, seen=seen, now=now)


def dismiss(finding: Finding, *, actor: str, reason: str, key: str = "", seen: str = "", now: datetime) -> None:
    """Records that the recommended action is not right here."""
    _give_feedback(finding, "dismiss", DISMISSED, actor=actor, reason=reason, key=key, seen=seen, now=now)


def _give_feedback(
    finding: Finding, verb: str, feedback: str, *, actor: str, reason: str, key: str, seen: str, now: datetime
) -> None:
    def act() -> None:
        if finding.feedback:
            raise FindingRefusal(f"{finding.feedback_by} has already {finding.feedback} the action.")
        _write(
            finding, now=now, unless={"feedback": "", "steps": finding.steps}, feedback=feedback, feedback_by=actor,
            feedback_reason=reason,
        )  # fmt: skip

    _apply_verb(finding, verb, act, actor=actor, reason=reason, key=key, seen=seen, now=now)


def _apply_verb(
    finding: Finding,
    verb: str,
    act: Callable[[], None],
    *,
    actor: str,
    reason: str,
    key: str,
    now: datetime,
    seen: str = "",
    to: str = "",
) -> None:
    asked = _key_of(key, actor, verb, reason=reason, to=to)
    if _is_done(finding, asked):
        return
    if VERBS[verb].needs_reason and not reason:
        raise BadAct(("reason", "Give a reason. It is stored."))
    if refusal := why_not_now(verb, FindingState(finding.state), acknowledged_by=finding.acknowledged_by):
        raise FindingRefusal(refusal)
    if seen and seen != mark_of(finding, verb):
        raise LostRace(_changed_sentence(finding, verb))
    try:
        with transaction.atomic():
            cluster = Cluster.objects.select_for_update(no_key=True).get(pk=finding.cluster_id)
            if _is_done(finding, asked):  # by who had the lock before us
                return
            kind = _kind_of_event(verb, finding)
            act()
            write_events([finding], kind, now=now, actor=actor, reason=reason, **({"assignee": to} if to else {}))
            record(finding, verb, actor=actor, reason=reason, key=key, now=now, to=to)
            recount(cluster, [finding.node_id], now=now)
    except IntegrityError:
        if _is_done(finding, asked):
            return
        raise


def _kind_of_event(verb: str, finding: Finding) -> str:
    if verb == "unassign" and finding.state != FindingState.ACKNOWLEDGED:
        return "finding.assignee-removed"  # it was open before, so nobody is notified
    return EVENT_OF_VERB[verb]


def _changed_sentence(finding: Finding, verb: str) -> str:
    if "steps" in VERBS[verb].changes:
        return f"The steps have changed since you read them: {' '.join(finding.steps)}"
    return f"The finding is now {_assignee_text(finding)}. To continue anyway, press the button again."


def _assignee_text(finding: Finding) -> str:
    return f"{finding.assigned_to}’s" if finding.assigned_to else "nobody’s"


def record(finding: Finding, verb: str, *, actor: str, reason: str, now: datetime, key: str = "", to: str = "") -> None:
    FindingAct.objects.create(
        finding=finding, rule=finding.rule, verb=verb, by=actor, at=now, reason=reason, to=to, key=key,
        said=finding.title,
    )  # fmt: skip
    evidence = {
        "rule": finding.rule, "subject": finding.subject, "severity": finding.severity, "title": finding.title,
        "summary": finding.summary, "evidence": finding.evidence, "causes": finding.causes, "steps": finding.steps,
    } | ({"to": to} if to else {})  # fmt: skip
    AuditEntry.record(
        f"finding:{finding.pk}", verb=f"finding.{verb}", actor=actor, reason=reason, evidence=evidence, now=now
    )


def recount(cluster: Cluster, nodes: Collection[int | None] | None = None, *, now: datetime) -> None:
    """Recounts findings on nodes, and notifies browsers after the commit. Runs in the transaction of the act.

    `nodes` holds the keys of the nodes that may have changed; None means all.
    """
    changed = count_on_nodes(cluster, nodes)
    transaction.on_commit(lambda: announce_findings(cluster.pk, nodes=changed, at=now), robust=True)


def _write(finding: Finding, *, now: datetime, unless: dict[str, Any], **columns: str) -> None:
    """Saves the finding.

    :raises LostRace: when the finding changed since it was read
    """
    same = Finding.objects.unresolved().filter(pk=finding.pk, **unless)
    _require_unchanged(same.update(updated_at=now, **columns))
    for name, value in columns.items():
        setattr(finding, name, value)


def _require_unchanged(is_same: object) -> None:
    """Requires that the finding has not changed since it was read.

    :raises LostRace: when it has
    """
    if not is_same:
        raise LostRace("The finding has changed since you read it. Read it again.")


def _key_of(key: str, actor: str, verb: str, *, reason: str, to: str) -> IdempotencyKey:
    return IdempotencyKey.of(key, person=actor, verb=verb, body={"reason": reason, "to": to})


def _is_done(finding: Finding, asked: IdempotencyKey) -> bool:
    """Returns whether this very act was carried out before and still holds.

    :raises FindingRefusal: when it was undone, or the key belongs to another act
    """
    same = FindingAct.objects.filter(finding=finding, by=asked.person, key=asked.key).select_related("finding")
    act = same.first() if asked.key else None
    if act is None or (now := act.finding) is None:
        return False
    key = _key_of(act.key, act.by, act.verb, reason=act.reason, to=act.to)
    earlier = EarlierCommand(key, act.at, HOLDS[act.verb](now, act), lambda: _state_sentence(now, act.verb))
    return is_done(asked, earlier, refusal=FindingRefusal)


def _state_sentence(finding: Finding, verb: str) -> str:
    if "steps" in VERBS[verb].changes:
        feedback = f"{finding.feedback_by} {finding.feedback} that" if finding.feedback else "it has no feedback"
        return f"The steps are now: {' '.join(finding.steps)} Feedback: {feedback}."
    return f"The finding is {finding.state} and {_assignee_text(finding)}."
