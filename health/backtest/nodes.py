"""Replays a node rule from timelines: at each change, and when a waiting time ends."""

from collections.abc import Iterator
from datetime import datetime

from health.backtest.replay import Replay, WouldBe
from health.backtest.timelines import LONG_AGO, NodePast
from health.evaluation.signals import Signal, Subject
from health.rules.base import NodeFacts, Rule
from health.rules.node_flapping import WITHIN, NodeFlapping
from health.rules.node_not_ready import NodeNotReady
from health.rules.upgrade_failed import UpgradeFailed
from health.rules.upgrade_stuck import UpgradeStuck

# These rules read the node's timeline. Pods, conditions and expected counts have no history.
REPLAYED: tuple[Rule[NodeFacts], ...] = (NodeNotReady(), NodeFlapping(), UpgradeFailed(), UpgradeStuck())
READ = ("is_ready", "upgrade_state")


def replay_node(node: NodePast, rule: Rule[NodeFacts], *, begin: datetime, end: datetime) -> list[WouldBe]:
    """Returns the findings, oldest first."""
    replay = Replay(is_exact=True)
    subject = Subject(f"node {node.name}", node.node_id, node.uid, node.name)
    known_until = node.known_until(READ)
    for at in _instants(node, begin, end):
        if known_until is not None and at >= known_until:
            break
        wrong = rule.evaluate(_facts(node, at)) if node.is_there(at) else None
        replay.look(at, [Signal(subject, rule, wrong)] if wrong else [])
    return replay.opened


def _instants(node: NodePast, begin: datetime, end: datetime) -> Iterator[datetime]:
    changed = {at for turns in node.turns.values() for at, _ in turns}
    over = {at + WITHIN for at, _ in node.turns["is_ready"] if at != LONG_AGO}
    seen = {node.seen_from} | ({node.gone_at} if node.gone_at else set())
    yield from sorted({begin, end} | {at for at in changed | over | seen if begin < at < end})


def _facts(node: NodePast, at: datetime) -> NodeFacts:
    since, is_ready = node.turn("is_ready", at)
    last = node.turns["is_ready"][-1][0]
    reason = node.reasons.get(since, node.reason if since == last else "")
    return NodeFacts(
        name=node.name,
        allocatable={},
        capacity={},
        expected={},
        requested={},
        is_ready=is_ready,
        is_unreported=is_ready is None,
        not_ready_reason="" if is_ready else reason,
        falls=node.falls(at - WITHIN, at),
        upgrade_state=node.was("upgrade_state", at),
    )
