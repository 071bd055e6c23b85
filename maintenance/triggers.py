"""The signs that quarantine a node automatically, and the breaker that stops it. Pure.

The table follows NVIDIA's catalogue of Xids (docs.nvidia.com/deploy/xid-errors). An Xid gauge neither clears nor
repeats (dcgm-exporter #500, #190), so an Xid counts only with a second sign or a repeat.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, chain

from wording.lists import names
from wording.numbers import count

VERSION = 4  # of the table; raise it with each change
DAY, HOUR = timedelta(hours=24), timedelta(hours=1)
SETTLES = timedelta(minutes=1)  # a finding is open so long first; `settles_for` has the exceptions
YOUNG = timedelta(minutes=15)  # since the node joined or booted
POOL_SHARE, PER_HOUR = 0.05, 3  # of a pool's nodes in automatic cases; new ones of a cluster
NOT_READY_SHARE = 0.2  # of a cluster's GPU nodes in service; EKS and Karpenter stop their repairs there
LONG_DOWN = timedelta(days=7)  # a node that is not Ready for longer tells nothing about an outage of now
SAME_CAUSE, SAME_CAUSE_WITHIN = 3, timedelta(minutes=10)
WATCHED = timedelta(minutes=30)  # after the first act of a half-open breaker
EVER = datetime.min.replace(tzinfo=UTC)


class Mode(StrEnum):
    OFF = "off"
    SHADOW = "shadow"  # records its decisions, and does nothing
    SUGGEST = "suggest"  # it opens a case; a person quarantines the node
    ACT = "act"  # it opens a case and cordons the node


# Up one step at a time; down any number.
MODE_MOVES: Mapping[Mode, frozenset[Mode]] = {
    Mode.OFF: frozenset({Mode.SHADOW}),
    Mode.SHADOW: frozenset({Mode.OFF, Mode.SUGGEST}),
    Mode.SUGGEST: frozenset({Mode.OFF, Mode.SHADOW, Mode.ACT}),
    Mode.ACT: frozenset({Mode.OFF, Mode.SHADOW, Mode.SUGGEST}),
}


MODE_ORDER = tuple(Mode)


def lower_mode(first: Mode, second: Mode) -> Mode:
    return min(first, second, key=MODE_ORDER.index)


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"  # nothing is quarantined automatically; a person resets it
    HALF_OPEN = "half-open"  # after a reset: one act, which is watched


class AutomaticVerdict(StrEnum):
    SHADOW = "would-act"  # the mode is shadow
    SUGGESTED = "suggested"
    ACTED = "acted"
    BLOCKED = "blocked"  # by the breaker, a budget or a refusal


@dataclass(frozen=True)
class Trigger:
    """Signs that suffice: a finding of `rules`, with one of `also`, or `times` within a day."""

    key: str
    title: str
    rules: frozenset[str]
    xids: frozenset[int] = frozenset()  # empty: any
    also: frozenset[str] = frozenset()  # rules of a second open finding; empty: none is needed
    times: int = 1
    is_critical: bool = False  # only a critical finding counts
    may_be_driver: bool = False  # a driver at fault shows it on one node after another
    source: str = "NVIDIA's Xid catalogue"


XID = frozenset({"gpu-xid"})
LOST = frozenset({"allocatable-below-expected", "gpu-silent", "device-unhealthy", "gpu-recovery-action"})
MEMORY = frozenset({"gpu-row-remap", "gpu-ecc-uncorrected", "gpu-recovery-action", "device-unhealthy"})
TRIGGERS: Sequence[Trigger] = (
    Trigger("off-the-bus", "GPU off the bus", XID, frozenset({79}), also=LOST),
    Trigger(
        "gpu-lost", "GPU lost", frozenset({"gpu-silent"}), also=frozenset({"allocatable-below-expected"}),
        is_critical=True, source="Kubernetes and the exporter agree",
    ),
    Trigger(
        "needs-reset", "GPU needs a reset or reboot", frozenset({"gpu-recovery-action"}), is_critical=True,
        may_be_driver=True, source="Driver's recovery action",
    ),
    Trigger(
        "remap-failed", "Memory row not remapped", frozenset({"gpu-row-remap"}), is_critical=True,
        source="NVIDIA's guide to memory errors",
    ),
    Trigger("memory", "Uncontained memory error", XID, frozenset({48, 64, 95, 140}), also=MEMORY),
    Trigger(
        "gsp", "Repeated GSP or driver error", XID, frozenset({48, 62, 109, 119, 120}), times=2, may_be_driver=True
    ),
    Trigger("nvlink", "Repeated NVLink error", XID, frozenset({74, *range(144, 151)}), times=3),
    Trigger(
        "detector", "Hardware fault reported by a detector", frozenset({"node-conditions"}), is_critical=True,
        source="Detector that wrote the condition",
    ),
    Trigger(
        "flapping", "Node flapping with GPU errors", frozenset({"node-flapping"}), also=XID,
        source="Quarterdeck's own rule",
    ),
)  # fmt: skip
TITLES: Mapping[str, str] = {trigger.key: trigger.title for trigger in TRIGGERS}
NOT_READY, MANY_ACTS = "not-ready", "many-acts"
# The causes that breakers of several pools may share.
CAUSES: Mapping[str, str] = {
    **TITLES, NOT_READY: "many nodes not Ready", MANY_ACTS: f"{PER_HOUR} nodes of the cluster within an hour",
}  # fmt: skip
JUDGED_FIRST = frozenset({"nvlink", "detector", "flapping"})  # no repair mends them as such
RULES = frozenset(rule for trigger in TRIGGERS for rule in (*trigger.rules, *trigger.also))
# No trigger names these. A test compares.
NEVER_XIDS = frozenset({13, 31, 43, 45, 63, 92, 94, 137})
NEVER_RULES = frozenset(
    {
        "gpu-hot", "gpu-throttled", "gpu-power-near-limit", "gpu-memory-nearly-full", "gpu-ecc-corrected", "idle-gpus",
        "exporter-silent", "telemetry-silent", "node-not-ready", "cluster-not-seen",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Sign:
    """A finding of a node."""

    finding: int
    node_uid: str
    node_name: str
    rule: str
    title: str
    opened_at: datetime
    xid: int | None = None
    is_critical: bool = False
    ended_at: datetime | None = None  # None: it is open
    times: int = 1  # that it opened

    def is_open(self, at: datetime) -> bool:
        return self.opened_at <= at and (self.ended_at is None or self.ended_at > at)


@dataclass(frozen=True)
class Match:
    trigger: Trigger
    signs: Sequence[Sign]  # open ones of its rules, the oldest first
    met_at: datetime  # since when they are enough: with the second sign, or the repeat

    @property
    def sign(self) -> Sign:
        """Returns the newest."""
        return self.signs[-1]

    def begins(self, after: datetime) -> datetime | None:
        """Returns since when the signs newer than `after` are enough. A further sign does not move it."""
        new = next((sign.opened_at for sign in self.signs if sign.opened_at > after), None)
        return new and max(new, self.met_at)

    def moments(self, after: datetime) -> Collection[datetime]:
        """Returns when its signs newer than `after` opened, and when they were enough."""
        begins = self.begins(after)
        return {begins, *(sign.opened_at for sign in self.signs if sign.opened_at > after)} if begins else ()


def matches_in(signs: Iterable[Sign], *, off: Collection[str] = (), now: datetime) -> Iterator[Match]:
    """Yields the triggers that the signs of one node meet. `off`: keys of triggers that do not count."""
    recent = [sign for sign in signs if now - DAY < (sign.ended_at or now) and sign.opened_at <= now]
    recent.sort(key=lambda sign: (sign.opened_at, sign.finding))
    open_ones = [sign for sign in recent if sign.is_open(now)]
    for trigger in (each for each in TRIGGERS if each.key not in off):
        main = [sign for sign in recent if _is_main(trigger, sign)]
        its = [sign for sign in main if sign.is_open(now)]
        so_far = accumulate(sign.times for sign in main)
        enough = next((sign for sign, times in zip(main, so_far, strict=True) if times >= trigger.times), None)
        also = next((sign for sign in open_ones if sign.rule in trigger.also), None)
        if its and enough and (also or not trigger.also):
            yield Match(trigger, its, met_at=max(each.opened_at for each in (enough, also) if each))


def _is_main(trigger: Trigger, sign: Sign) -> bool:
    if sign.rule not in trigger.rules or (trigger.is_critical and not sign.is_critical):
        return False
    return not trigger.xids or sign.xid in trigger.xids


@dataclass(frozen=True)
class BreakerNumbers:
    """The numbers that the breaker compares before an act."""

    nodes: int  # of the pool
    in_cases: int  # of these, in open cases that were opened automatically
    last_hour: int  # automatic cases of the cluster in the last hour
    same_cause: Sequence[str] = field(default_factory=tuple)  # nodes of the cluster, the asked one among them
    shared: str = ""  # sentence: what these nodes share and others lack; blank: nothing, or unknown
    not_ready: int = 0  # GPU nodes of the cluster in service
    in_service: int = 0  # all of these

    @property
    def most_in_cases(self) -> int:
        return max(1, int(self.nodes * POOL_SHARE))

    @property
    def sentence(self) -> str:
        in_cases = f"{self.in_cases} of at most {count(self.most_in_cases, 'node')} of the pool in automatic cases"
        return f"{in_cases}, {self.last_hour} of at most {PER_HOUR} acts in the last hour."

    @property
    def is_systemic(self) -> bool:
        return len(self.same_cause) >= SAME_CAUSE

    @property
    def is_outage(self) -> bool:
        return self.not_ready >= max(SAME_CAUSE, self.in_service * NOT_READY_SHARE)

    @property
    def is_pool_full(self) -> bool:
        return self.in_cases >= self.most_in_cases

    def cause_of_trip(self, trigger: str) -> str:
        """Returns the cause that breakers of several pools share. Blank: the limit of this pool. `trigger`: its key."""
        if self.is_systemic:
            return trigger
        if self.is_outage:
            return NOT_READY
        return "" if self.is_pool_full else MANY_ACTS

    @property
    def why_trip(self) -> str:
        """Returns why the breaker opens instead of the next act. Blank: it does not."""
        if self.is_systemic:
            same = f"{len(self.same_cause)} nodes have the same cause within 10 min"
            return f"{same}: {names(sorted(self.same_cause))}. {self.shared or 'Look for what they share.'}"
        if self.is_outage:
            not_ready = f"{self.not_ready} of {count(self.in_service, 'GPU node')} in service are not Ready."
            return f"{not_ready} Look at the zone and the control plane."
        if self.is_pool_full:
            most = count(self.most_in_cases, "node")
            return f"Automatic cases hold {self.in_cases} of {count(self.nodes, 'node')} of the pool. At most {most}."
        if self.last_hour >= PER_HOUR:
            return f"{self.last_hour} nodes of the cluster were quarantined automatically in the last hour."
        return ""


def trigger_of(rule: str, xid: int | None) -> Trigger | None:
    """Returns the row of the table for a finding of a node. None: the table leaves it to people."""
    if rule in NEVER_RULES or xid in NEVER_XIDS:
        return None
    return next((each for each in TRIGGERS if rule in each.rules and (not each.xids or xid in each.xids)), None)


def recommended_operation(rule: str, xid: int | None) -> str:
    """Returns the kind of operation that a finding of a node recommends. Blank: none (lifecycle, section 9).

    A fault that a repair mends is drained; where both ends or a detector have to be judged first, pods only stay off.
    """
    if (trigger := trigger_of(rule, xid)) is None:
        return ""
    return "quarantine" if trigger.key in JUDGED_FIRST else "drain"


@dataclass(frozen=True)
class WouldAct:
    at: datetime
    match: Match
    reason: str  # why the breaker would have blocked it; blank: it would have acted


def settles_for(trigger: Trigger, alike: int) -> timedelta:
    """Returns how long a sign is open before it counts. `alike`: nodes with the same cause now, this one among them.

    In a small fleet a common cause needs minutes to show on a third node (lifecycle R52). So a second node with the
    cause, and a fault that may be the driver's, wait for as long as others count as the same cause.
    """
    is_doubtful = trigger.may_be_driver or alike > 1
    return SAME_CAUSE_WITHIN if is_doubtful and alike < SAME_CAUSE else SETTLES


class SameCauses:
    """The nodes of a cluster that meet each trigger now, by the time of their signs.

    Acts, drains and the backtest count with it.
    """

    def __init__(self, matches: Iterable[Match]) -> None:
        self._matches = matches
        self._near: dict[tuple[str, datetime], frozenset[str]] = {}

    def nodes_like(self, match: Match, *, after: datetime) -> Sequence[str]:
        """Returns the nodes with a sign less than 10 min from one of the match newer than `after`, its own among them.

        The time counts from the signs of the match, and not from now: a wait or a late round hides no node.
        """
        near = (self._names_near(match.trigger.key, moment) for moment in match.moments(after))
        return sorted({match.sign.node_name}.union(*near))

    def is_due(self, match: Match, *, after: datetime, now: datetime) -> bool:
        """Returns whether the signs newer than `after` had time to settle."""
        begins = match.begins(after)
        if begins is None or begins + SETTLES > now:
            return False
        return begins + settles_for(match.trigger, len(self.nodes_like(match, after=after))) <= now

    def _names_near(self, trigger: str, moment: datetime) -> frozenset[str]:
        if (trigger, moment) not in self._near:
            seen = self._seen[trigger].items()
            near = (names_then for then, names_then in seen if abs(then - moment) < SAME_CAUSE_WITHIN)
            self._near[trigger, moment] = frozenset[str]().union(*near)
        return self._near[trigger, moment]

    @cached_property
    def _seen(self) -> Mapping[str, Mapping[datetime, set[str]]]:
        seen: dict[str, dict[datetime, set[str]]] = defaultdict(lambda: defaultdict(set))
        for match in self._matches:
            for moment in match.moments(EVER):
                seen[match.trigger.key][moment].add(match.sign.node_name)
        return seen


def last_decided(match: Match, decided: Collection[int | None]) -> datetime:
    """Returns when the newest sign opened that was decided about. Those since then wait anew. `decided`: findings."""
    return max((sign.opened_at for sign in match.signs if sign.finding in decided), default=EVER)


def replay(
    signs: Iterable[Sign], *, pool: Collection[str], off: Collection[str] = (), since: datetime
) -> Iterator[WouldAct]:
    """Yields what mode act would have done in a pool (UIDs of its nodes), from the findings of its cluster.

    It looks at each moment that could change a decision, with the signs of that moment. `off` has the triggers that may
    not act. A breaker that opens stays open, since nobody was there to reset it. A case lasts a day.
    """
    by_node: dict[str, list[Sign]] = defaultdict(list)
    changes: dict[datetime, set[str]] = defaultdict(set)  # nodes whose signs change then
    for sign in signs:
        by_node[sign.node_uid].append(sign)
        for at in (sign.opened_at, *([sign.ended_at, sign.ended_at + DAY] if sign.ended_at else [])):
            changes[at].add(sign.node_uid)
        for waits in (SETTLES, SAME_CAUSE_WITHIN):
            changes.setdefault(sign.opened_at + waits, set())
    matches: dict[str, Sequence[Match]] = {}
    changed: dict[str, datetime] = {}  # nodes that may decide now, with their last change
    decided = set[int]()
    acts: dict[str, datetime] = {}
    tripped = ""
    for at in sorted(changes):
        for uid in changes[at]:
            matches[uid], changed[uid] = list(matches_in(by_node[uid], off=off, now=at)), at
        changed = {uid: last for uid, last in changed.items() if at - last <= SAME_CAUSE_WITHIN}
        causes = SameCauses(chain.from_iterable(matches.values()))
        due = [match for uid in pool if uid in changed and (match := _due(matches[uid], causes, decided, now=at))]
        for match in sorted(due, key=lambda each: (each.sign.opened_at, each.sign.finding)):
            uid, alike = match.sign.node_uid, causes.nodes_like(match, after=last_decided(match, decided))
            decided.add(match.sign.finding)
            if at < since or at - acts.get(uid, since - DAY) < DAY:
                continue
            recent = [each for each in acts.values() if at - each < DAY]
            numbers = BreakerNumbers(
                nodes=len(pool),
                in_cases=len(recent),
                last_hour=sum(at - each < HOUR for each in recent),
                same_cause=alike,
            )
            tripped = tripped or numbers.why_trip
            if not tripped:
                acts[uid] = at
            yield WouldAct(at, match, tripped)


def _due(matches: Sequence[Match], causes: SameCauses, decided: Collection[int], *, now: datetime) -> Match | None:
    """Returns the first match of a node that is due. None: there is none, or it was decided about."""
    for match in matches:
        if match.sign.finding in decided:
            return None
        if causes.is_due(match, after=last_decided(match, decided), now=now):
            return match
    return None
