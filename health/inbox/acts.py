"""What a person does to one finding. Each is one transaction: the guarded write, the act, the audit entry, the counts.

It takes the lock that a look takes: neither writes over the other.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import IntegrityError, transaction

from edges import unseen
from edges.moves import LostRace
from fleet.models import Cluster
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.rights import may_see
from health.inbox.verbs import VERBS, why_not_now
from health.judging.counting import announce_findings, count_on_nodes
from health.lifecycle import FindingState
from health.models import Finding, FindingAct
from people.models import AuditEntry, User

ACCEPTED, DISMISSED = "accepted", "dismissed"


def acknowledge(finding: Finding, *, actor: str, because: str = "", key: str = "", now: datetime) -> None:
    """Look after it. Where it is nobody's, it is the actor's.

    :raises FindingRefusal: when it is not open; LostRace: somebody else was first
    """

    def act() -> None:
        finding.refresh_from_db(fields=["assigned_to"])  # it may have become somebody's since it was read
        whose = {} if finding.assigned_to else {"assigned_to": actor}
        finding.move(FindingState.ACKNOWLEDGED, now=now, acknowledged_by=actor, **whose)

    _tell(finding, "acknowledge", act, actor=actor, because=because, key=key, now=now)


def mark_of(finding: Finding, verb: str) -> str:
    """Of what somebody has to have seen to say this. Blank: it is the same whatever they saw."""
    columns = VERBS[verb].changes
    return unseen.mark_of(finding, columns) if columns else ""


def assign(
    finding: Finding, *, to: str, actor: str, because: str = "", key: str = "", seen: str = "", now: datetime
) -> None:
    """`seen`, of this and the others: its `mark_of` when it was shown. Blank: as it is now.

    :raises BadAct: nobody of that name may see it; LostRace: it became somebody else's meanwhile
    """
    person = User.objects.filter(username=to, is_active=True).first()
    if person is None or not may_see(person, finding):
        raise BadAct(("to", f"Nobody named {to} may see this finding."))

    def act() -> None:
        if finding.assigned_to == to:
            raise FindingRefusal(f"It is {to}'s already.")
        _write(finding, now=now, unless={"assigned_to": finding.assigned_to}, assigned_to=to)

    _tell(finding, "assign", act, actor=actor, because=because, key=key, seen=seen, now=now, to=to)


def unassign(finding: Finding, *, actor: str, because: str = "", key: str = "", seen: str = "", now: datetime) -> None:
    """Nobody looks after it any more.

    :raises FindingRefusal: when nobody does; LostRace: it changed meanwhile
    """

    def act() -> None:
        if finding.state == FindingState.ACKNOWLEDGED:
            _require_unchanged(Finding.objects.filter(pk=finding.pk, assigned_to=finding.assigned_to).exists())
            finding.move(FindingState.OPEN, now=now, assigned_to="")
        elif finding.assigned_to:
            _write(finding, now=now, unless={"assigned_to": finding.assigned_to}, assigned_to="")
        else:
            raise FindingRefusal("It is nobody's: there is nothing to unassign.")

    _tell(finding, "unassign", act, actor=actor, because=because, key=key, seen=seen, now=now)


def accept(finding: Finding, *, actor: str, because: str, key: str = "", seen: str = "", now: datetime) -> None:
    """The recommended action is right."""
    _judge(finding, "accept", ACCEPTED, actor=actor, because=because, key=key, seen=seen, now=now)


def dismiss(finding: Finding, *, actor: str, because: str, key: str = "", seen: str = "", now: datetime) -> None:
    """The recommended action is not right here."""
    _judge(finding, "dismiss", DISMISSED, actor=actor, because=because, key=key, seen=seen, now=now)


def _judge(
    finding: Finding, verb: str, feedback: str, *, actor: str, because: str, key: str, seen: str, now: datetime
) -> None:
    def act() -> None:
        if finding.feedback:
            raise FindingRefusal(f"{finding.feedback_by} {finding.feedback} the action already.")
        _write(
            finding, now=now, unless={"feedback": "", "action": finding.action}, feedback=feedback, feedback_by=actor,
            feedback_because=because,
        )  # fmt: skip

    _tell(finding, verb, act, actor=actor, because=because, key=key, seen=seen, now=now)


def _tell(
    finding: Finding,
    verb: str,
    act: Callable[[], None],
    *,
    actor: str,
    because: str,
    key: str,
    now: datetime,
    seen: str = "",
    to: str = "",
) -> None:
    if key and _is_done(finding, verb, actor, key):
        return
    if VERBS[verb].needs_reason and not because:
        raise BadAct(("because", "Say why: it is kept."))
    if refusal := why_not_now(verb, FindingState(finding.state), acknowledged_by=finding.acknowledged_by):
        raise FindingRefusal(refusal)
    if seen and seen != mark_of(finding, verb):
        raise LostRace(_by_now(finding, verb))
    try:
        with transaction.atomic():
            cluster = Cluster.objects.select_for_update(no_key=True).get(pk=finding.cluster_id)
            if key and _is_done(finding, verb, actor, key):  # by who had the lock before us
                return
            act()
            record(finding, verb, actor=actor, because=because, key=key, now=now, to=to)
            recount(cluster, now=now)
    except IntegrityError:
        if key and _is_done(finding, verb, actor, key):
            return
        raise


def _by_now(finding: Finding, verb: str) -> str:
    if "action" in VERBS[verb].changes:
        return f"It recommends something else since you looked: {finding.action}"
    whose = f"{finding.assigned_to}’s" if finding.assigned_to else "nobody’s"
    return f"It is {whose} since you looked. To go on all the same, say it again."


def record(
    finding: Finding, verb: str, *, actor: str, because: str, now: datetime, key: str = "", to: str = ""
) -> None:
    """Keep who did what to it and why: with the finding, and in the audit chain for good."""
    FindingAct.objects.create(
        finding=finding, rule=finding.rule, verb=verb, by=actor, at=now, because=because, to=to, key=key,
        said=finding.sentence,
    )  # fmt: skip
    evidence = {
        "rule": finding.rule, "subject": finding.subject, "severity": finding.severity, "sentence": finding.sentence,
        "probable_cause": finding.probable_cause, "action": finding.action, "evidence": finding.evidence,
    } | ({"to": to} if to else {})  # fmt: skip
    AuditEntry.record(
        f"finding:{finding.pk}", verb=f"finding.{verb}", actor=actor, because=because, evidence=evidence, now=now
    )


def recount(cluster: Cluster, *, now: datetime) -> None:
    """Count on nodes anew, and tell browsers once it is written. Within the transaction of the act."""
    nodes = count_on_nodes(cluster)
    transaction.on_commit(lambda: announce_findings(cluster.pk, nodes=nodes, at=now), robust=True)


def _write(finding: Finding, *, now: datetime, unless: dict[str, str], **columns: str) -> None:
    """:raises LostRace: when it is not as it was read"""
    same = Finding.objects.unresolved().filter(pk=finding.pk, **unless)
    _require_unchanged(same.update(updated_at=now, **columns))
    for name, value in columns.items():
        setattr(finding, name, value)


def _require_unchanged(is_same: object) -> None:
    """:raises LostRace: when it is not as it was read"""
    if not is_same:
        raise LostRace("The finding has changed meanwhile: look at it again.")


def _is_done(finding: Finding, verb: str, actor: str, key: str) -> bool:
    """:raises FindingRefusal: when the key named another act"""
    given = FindingAct.objects.filter(finding=finding, by=actor, key=key).values_list("verb", flat=True).first()
    if given not in (None, verb):
        raise FindingRefusal("This Idempotency-Key named another act on this finding. Choose a new one.")
    return given is not None
