"""The mode and the breaker of automatic quarantine, and what its rounds and pages read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Min, Q

from edges.transition_errors import LostRace
from fleet.freshness.cluster import load_cluster_freshness, why_unseen
from fleet.freshness.kinds import PODS
from fleet.models import Cluster, Node, Pool
from gpu.cordons import SENTINEL_EVENT, sentinel_holds
from gpu.labels import SENTINEL_STATE
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_REQUIRED
from health.evaluation.node_properties import NodeProperties
from health.models import Finding
from health.rules.base import Severity
from health.suspects import NodeOutcome, suspects_of
from maintenance.lifecycle import CaseState
from maintenance.models import AutomaticDecision, AutomaticQuarantine, NodeCase, RepairKinds
from maintenance.refusals import CaseRefused
from maintenance.trials import ACCEPTED_RATIO, POOL, acceptance_of, move_trial
from maintenance.triggers import (
    DAY,
    HOUR,
    LONG_DOWN,
    MANY_ACTS,
    MODE_MOVES,
    MODE_ORDER,
    RULES,
    SAME_CAUSE_WITHIN,
    YOUNG,
    BreakerNumbers,
    BreakerState,
    Match,
    Mode,
    Sign,
    WouldAct,
    matches_in,
    replay,
)
from operations.external_owner import external_owner_of
from operations.models import Disruption, Quarantine
from operations.restraints import freezes_of, stop_reason
from people.models import AuditEntry
from people.roster.accounts import CONSOLE
from wording.durations import spell
from wording.instants import to_the_minute
from wording.numbers import count

ACTOR = "automatic quarantine"  # in cases, operations and the audit chain
BACKTEST = timedelta(days=30)
AT_REST = ("", UPGRADE_REQUIRED, UPGRADE_DONE)
# Columns of the switches of mode act.
SWITCHES_OFF = {"drain_since": None, "drain_by": "", "repair_since": None, "repair_by": "", "repair_through": ""}


def change_mode(
    pool: Pool, *, mode: str, actor: str, reason: str, skip_trial: bool = False, now: datetime
) -> AutomaticQuarantine:
    """Changes the mode of a pool. Findings so far start nothing. `skip_trial`: the reason also skips the rest of it.

    :raises CaseRefused: when the mode is more than one step up, its trial is too short, people accepted too few
        decisions for mode act, or somebody changed it first
    """
    columns = {"mode_since": now, "changed_by": actor, "reason": reason, "breaker_since": now, "evidence_after": now}
    with transaction.atomic():
        row, _ = AutomaticQuarantine.objects.get_or_create(pool=pool, defaults=columns)
        was, to = Mode(row.mode), Mode(mode)
        if to not in MODE_MOVES[was]:
            allowed = ", ".join(sorted(MODE_MOVES[was]))
            raise CaseRefused(f"The mode of pool {pool.name} is {was}. From there it may become {allowed}.")
        if to == Mode.ACT and (accepted := acceptance_of(row)).is_too_low:
            raise CaseRefused(f"{accepted.sentence} Mode act needs {ACCEPTED_RATIO * 100:.0f} %.")
        skip_reason = reason if skip_trial else ""
        trials = move_trial(row, was, to, actor=actor, skip_reason=skip_reason, now=now)
        del columns["breaker_since"]
        switches = {} if to == Mode.ACT else SWITCHES_OFF
        try:
            row.change(mode=to.value, trials=trials, **columns, **switches)
        except LostRace as lost:
            raise CaseRefused(f"{lost} Read it again.") from lost
        evidence = {"from": was, "trial": trials.get(POOL, {})}
        AuditEntry.record(
            row.mark, verb=f"automatic-quarantine.{to}", actor=actor, reason=reason, evidence=evidence, now=now
        )
    return row


def change_rule(
    pool: Pool, *, rule: str, mode: str, actor: str, reason: str, skip_trial: bool = False, now: datetime
) -> AutomaticQuarantine:
    """Limits one rule of a pool to a mode; `act` ends the limit. Findings of a raised rule so far start nothing.

    A rule that was off has a trial of its own.

    :raises CaseRefused: when the limit is more than one step up, its trial is too short, the pool has no setting yet,
        or somebody changed it first
    """
    row = AutomaticQuarantine.objects.filter(pool=pool).first()
    if row is None:
        raise CaseRefused(f"Automatic quarantine of pool {pool.name} was never on. Set its mode first.")
    was, to = Mode(row.rule_modes.get(rule, Mode.ACT)), Mode(mode)
    if to not in MODE_MOVES[was]:
        allowed = ", ".join(sorted(MODE_MOVES[was]))
        raise CaseRefused(f"The highest mode of the rule is {was}. From there it may become {allowed}.")
    limits = {key: limit for key, limit in row.rule_modes.items() if key != rule}
    limits |= {} if to == Mode.ACT else {rule: to.value}
    is_raised = MODE_ORDER.index(to) > MODE_ORDER.index(was)
    raised = row.rules_raised_at | ({rule: now.isoformat()} if is_raised else {})
    skip_reason = reason if skip_trial else ""
    trials = move_trial(row, was, to, rule=rule, actor=actor, skip_reason=skip_reason, now=now)
    evidence = {"rule": rule, "from": was.value, "to": to.value, "trial": trials.get(rule, {})}
    with transaction.atomic():
        try:
            row.change(rule_modes=limits, rules_raised_at=raised, trials=trials)
        except LostRace as lost:
            raise CaseRefused(f"{lost} Read it again.") from lost
        AuditEntry.record(
            row.mark, verb="automatic-quarantine.rule", actor=actor, reason=reason, evidence=evidence, now=now
        )
    return row


def reset_breaker(row: AutomaticQuarantine, *, actor: str, reason: str, now: datetime) -> None:
    """Makes an open breaker half-open. Findings so far start nothing.

    :raises CaseRefused: when it is not open, or somebody changed it first
    """
    if row.breaker != BreakerState.OPEN:
        raise CaseRefused(f"The breaker of pool {row.pool.name} is {row.breaker}. Only an open one is reset.")
    try:
        set_breaker(row, BreakerState.HALF_OPEN, actor=actor, reason=reason, now=now, evidence_after=now)
    except LostRace as lost:
        raise CaseRefused(f"{lost} Read it again.") from lost


def open_every_breaker(reason: str, now: datetime) -> str:
    """Opens every breaker after a restore of the database: it may lack acts and trips (lifecycle R55)."""
    opened = 0
    for key in AutomaticQuarantine.objects.exclude(breaker=BreakerState.OPEN).values_list("pk", flat=True):
        with transaction.atomic():  # a worker that still runs waits, and then loses its race
            row = AutomaticQuarantine.objects.select_for_update().get(pk=key)
            if row.breaker != BreakerState.OPEN:
                set_breaker(row, BreakerState.OPEN, actor=CONSOLE, reason=reason, now=now)
                opened += 1
    return f"{count(opened, 'breaker')} of automatic quarantine opened."


def set_breaker(
    row: AutomaticQuarantine,
    to: BreakerState,
    *,
    actor: str,
    reason: str,
    cause: str = "",
    now: datetime,
    **columns: datetime,
) -> None:
    """Changes the breaker. `cause`: key of CAUSES; blank: another reason.

    A breaker belongs to the storm of a breaker of its cause that opened shortly before in the cluster and is still
    open. So a reset of the first one does not make another storm of the others.

    :raises LostRace: when somebody changed the row first
    """
    was = row.breaker
    with transaction.atomic():
        storm = _storm_of(row, cause, now=now) if cause else None
        row.change(
            breaker=to.value, breaker_since=now, breaker_reason=reason[:1000], breaker_cause=cause, storm_since=storm,
            **columns,
        )  # fmt: skip
        AuditEntry.record(
            row.mark, verb=f"automatic-quarantine.breaker-{to}", actor=actor, reason=reason[:1000],
            evidence={"from": was}, now=now,
        )  # fmt: skip


def _storm_of(row: AutomaticQuarantine, cause: str, *, now: datetime) -> datetime:
    """Returns when the first breaker of the storm opened. One query."""
    others = AutomaticQuarantine.objects.filter(pool__cluster=row.pool.cluster_id, breaker=BreakerState.OPEN)
    lasts = HOUR if cause == MANY_ACTS else SAME_CAUSE_WITHIN  # the hourly limit stops pool after pool
    others = others.filter(breaker_cause=cause, breaker_since__gt=now - lasts)
    return others.aggregate(first=Min("storm_since"))["first"] or now


def signs_of(cluster: Cluster, *, since: datetime, now: datetime) -> list[Sign]:
    """Returns the findings since then that a trigger may read. One query."""
    rows = Finding.objects.filter(cluster=cluster, rule__in=RULES, node__isnull=False, opened_at__isnull=False)
    rows = rows.filter(Q(resolved_at=None) | Q(resolved_at__gt=since), is_shadow=False, opened_at__lte=now)
    columns = (
        "pk",
        "node__uid",
        "node__name",
        "rule",
        "title",
        "opened_at",
        "facts",
        "severity",
        "resolved_at",
        "times",
    )
    return [
        Sign(
            pk, uid, name, rule, title, opened_at, xid=facts.get("xid") if isinstance(facts.get("xid"), int) else None,
            is_critical=severity == Severity.CRITICAL, ended_at=resolved_at, times=times,
        )
        for pk, uid, name, rule, title, opened_at, facts, severity, resolved_at, times in rows.values_list(*columns)
    ]  # fmt: skip


def matches_of(cluster: Cluster, *, off: Collection[str] = (), now: datetime) -> dict[str, list[Match]]:
    """Returns the triggers that are not off and that signs meet, by UID of their node. One query."""
    by_node: dict[str, list[Sign]] = defaultdict(list)
    for sign in signs_of(cluster, since=now - DAY, now=now):
        by_node[sign.node_uid].append(sign)
    found = {uid: list(matches_in(signs, off=off, now=now)) for uid, signs in by_node.items()}
    return {uid: matches for uid, matches in found.items() if matches}


def numbers_of(
    row: AutomaticQuarantine, *, alike: Sequence[str] = (), shared: str = "", now: datetime
) -> BreakerNumbers:
    """Returns the numbers of the breaker now. `alike`: nodes with the same cause; `shared`: what they share.
    Four queries.

    A node on probation is in service, and takes no place of the pool's limit. A node in a case, in quarantine (such as
    a retired one) or down for long says nothing about an outage of now.
    """
    held = NodeCase.objects.open().exclude(state=CaseState.PROBATION)
    automatic = AutomaticDecision.objects.filter(automatic__pool__cluster=row.pool.cluster_id, case__isnull=False)
    is_down = Q(is_ready=False) | Q(is_ready=None)
    gpu_nodes = Node.objects.filter(cluster=row.pool.cluster_id, is_gpu_node=True)
    gpu_nodes = gpu_nodes.exclude(is_down, ready_since__lt=now - LONG_DOWN)
    gpu_nodes = gpu_nodes.exclude(uid__in=held.values("node_uid"))
    gpu_nodes = gpu_nodes.exclude(uid__in=Quarantine.objects.in_force().values("node_uid"))
    return BreakerNumbers(
        nodes=row.pool.nodes.count(),
        in_cases=held.filter(opened_by=ACTOR, node_uid__in=row.pool.nodes.values("uid")).count(),
        last_hour=automatic.filter(at__gt=now - HOUR).count(),
        same_cause=alike,
        shared=shared,
        **gpu_nodes.aggregate(in_service=Count("pk"), not_ready=Count("pk", filter=is_down)),
    )


def shared_by(properties: Mapping[str, NodeProperties], node_names: Sequence[str]) -> str:
    """Returns what these nodes share and other GPU nodes of their cluster lack (lifecycle R52). Blank: nothing.

    A node without a product counts if it is one of these: a broken driver takes the label away.
    """
    compared = {name: its for name, its in properties.items() if its["GPU"] or name in node_names}
    suspects = suspects_of(NodeOutcome(name, name in node_names, its) for name, its in compared.items()).suspects
    if not (every := next((one for one in suspects if one.failed_with == one.failed), None)):
        return ""
    return f"They share {every.title}; {every.good_with} of {every.good} other nodes have it."


def why_not_now(cluster: Cluster, *, now: datetime) -> str:
    """Returns why nothing is decided in a cluster now. Blank: it is. "No pods" is believed only where pods are seen."""
    if not load_cluster_freshness(cluster, now=now).is_fresh:
        return f"{cluster.name} is not seen now: its findings may be old."
    return stop_reason(now=now) or why_unseen(cluster.pk, PODS, now=now)


def why_wait(node: Node, *, now: datetime) -> str:
    """Returns why the signs of a node start nothing now. Blank: they do."""
    if node.is_unschedulable:
        return "The node is cordoned already."
    if now - max(node.created_at, node.booted_at or node.created_at) < YOUNG:
        return f"The node joined or booted less than {spell(YOUNG)} ago."
    if node.upgrade_state not in AT_REST or node.is_paused or node.reconfiguring:
        return "The node is being changed."
    if sentinel_holds(node.labels, node.annotations):
        return "NVSentinel quarantines the node."
    if external := external_owner_of(node, now=now):
        return external.sentence
    if NodeCase.objects.open().of_node(node.uid).exists():
        return "The node has an open case."
    taken = Disruption.objects.in_force().filter(node_uid=node.uid).order_by("pk").first()
    if taken is not None:
        return taken.not_free
    return freezes_of(node.cluster_id, [node.uid], now=now).get(node.uid, "")


def other_quarantine(cluster: Cluster) -> str:
    """Returns who else quarantines nodes of the cluster (lifecycle R14). Blank: nobody is known to. Two queries."""
    marks = Q(annotations__has_key=SENTINEL_EVENT) | Q(labels__has_key=SENTINEL_STATE)
    if nodes := cluster.nodes.filter(marks).count():
        return f"NVSentinel quarantines {count(nodes, 'node')} of this cluster. Quarterdeck leaves them to it."
    seen_at = RepairKinds.objects.filter(cluster=cluster).values_list("sentinel_seen_at", flat=True).first()
    if seen_at is None:
        return ""
    seen = f"NVSentinel is in this cluster, last seen {to_the_minute(seen_at)}."
    return f"{seen} Quarterdeck leaves a node that it quarantines to it."


def backtest(pool: Pool, *, now: datetime) -> Sequence[WouldAct]:
    """Returns what mode act would have done in the last 30 days, the newest first. At most three queries.

    A rule that is limited to a lower mode does not act.
    """
    since = now - BACKTEST
    setting = AutomaticQuarantine.objects.filter(pool=pool).first()
    members = set(pool.nodes.values_list("uid", flat=True))
    signs = signs_of(pool.cluster, since=since - DAY, now=now)
    found = replay(signs, pool=members, off=setting.rule_modes if setting else (), since=since)
    return [each for each in found if each.at <= now][::-1]


def status_of(row: AutomaticQuarantine | None, pool: Pool, *, now: datetime) -> str:
    """Returns a sentence about the automatic quarantine of a pool now."""
    if row is None or row.mode == Mode.OFF:
        return "Off. Nothing is recorded or done."
    if row.breaker == BreakerState.OPEN:
        return f"The breaker is open since {to_the_minute(row.breaker_since)}: {row.breaker_reason}"
    return why_not_now(pool.cluster, now=now) or f"In mode {row.mode} since {to_the_minute(row.mode_since)}."
