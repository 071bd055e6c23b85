"""Automatic quarantine: only on signs of the node, one step at a time, under a breaker (lifecycle R51 to R58, Z20)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from edges.transition_errors import LostRace
from fleet.models import Node, Pool
from gpu.labels import SENTINEL_CORDON
from health.evaluation.node_properties import properties_of
from health.models import EvaluationRun, Finding
from maintenance import automatic, automatic_round, commands
from maintenance.automatic_round import PoolRound, run_automatic_quarantine
from maintenance.findings import BREAKER
from maintenance.lifecycle import CaseState
from maintenance.models import AutomaticDecision, AutomaticQuarantine, NodeCase, RepairKinds
from maintenance.new_nodes import why_not_free
from maintenance.queries import why_no_release
from maintenance.refusals import CaseRefused
from maintenance.trials import TRIAL, DecisionAcceptance, ShadowTrial, acceptance_of, skipped_rules, trial_of
from maintenance.triggers import (
    WATCHED,
    AutomaticVerdict,
    BreakerNumbers,
    BreakerState,
    Mode,
    Sign,
    matches_in,
    replay,
)
from operations import commands as operations
from operations.models import Freeze, Operation, Quarantine
from operations.restraints import AFTER_RESTORE
from people.models import AuditEntry
from people.roster.accounts import CONSOLE
from tests.callers import calling
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, a_pod, a_pool, a_user, an_operation
from tests.pages import page, visiting
from wording.instants import to_the_minute
from wording.reports import instant

LONG_AGO = NOON - timedelta(days=20)


def sign(node: str = "gpu-1", rule: str = "gpu-xid", xid: int | None = 79, *, minute: float = 0, **given: Any) -> Sign:
    row = {"finding": int(minute * 60) * 1000 + hash((node, rule)) % 1000, "node_uid": node, "node_name": node}
    row |= {"title": "It is wrong.", "opened_at": NOON + timedelta(minutes=minute)}
    return Sign(**{**row, "rule": rule, "xid": xid, "is_critical": True} | given)


def key_of(*signs: Sign) -> str:
    match = next(matches_in(signs, now=NOON + timedelta(minutes=30)), None)
    return match.trigger.key if match else ""


@pytest.mark.parametrize(
    ("signs", "key"),
    [
        ([sign()], ""),  # an Xid gauge alone
        ([sign(), sign(rule="allocatable-below-expected", xid=None)], "off-the-bus"),
        ([sign(xid=31), sign(rule="allocatable-below-expected", xid=None)], ""),
        ([sign(rule="gpu-silent", xid=None)], ""),
        ([sign(rule="gpu-silent", xid=None), sign(rule="allocatable-below-expected", xid=None)], "gpu-lost"),
        ([sign(rule="gpu-row-remap", xid=None)], "remap-failed"),
        ([sign(rule="gpu-row-remap", xid=None, is_critical=False)], ""),
        ([sign(xid=119)], ""),
        ([sign(xid=119, times=2)], "gsp"),
        ([sign(xid=119), sign(xid=119, minute=9)], "gsp"),
        ([sign(xid=119, minute=-1500, ended_at=NOON - timedelta(hours=24)), sign(xid=119)], ""),
        ([sign(xid=74, times=2)], ""),
        ([sign(xid=74, times=3)], "nvlink"),
        ([sign(xid=119, times=2, ended_at=NOON + timedelta(minutes=5))], ""),  # it is over
        ([sign(rule="gpu-hot", xid=None)], ""),
    ],
)
def test_a_sign_needs_a_second_one_or_a_repeat(signs: list[Sign], key: str):
    assert key_of(*signs) == key


def lost_gpu(node: str, minute: float) -> list[Sign]:
    return [
        sign(node, "gpu-silent", None, minute=minute),
        sign(node, "allocatable-below-expected", None, minute=minute),
    ]


def test_a_backtest_acts_on_single_faults_and_on_no_node_of_a_storm():
    pool = [f"gpu-{number}" for number in range(200)]
    single = [each for day in range(3) for each in lost_gpu(f"gpu-{day}", day * 1440)]
    storm = [each for number in range(60) for each in lost_gpu(f"gpu-{100 + number}", 5 * 1440 + number / 60)]
    found = list(replay([*single, *storm], pool=pool, since=NOON - timedelta(days=1)))

    assert [each.match.sign.node_name for each in found if not each.reason] == ["gpu-0", "gpu-1", "gpu-2"]
    assert len(found) == 63
    assert found[-1].reason.startswith("60 nodes have the same cause within 10 min")


@pytest.mark.parametrize("rule", ["gpu-recovery-action", "gpu-silent"])
def test_a_backtest_holds_back_what_a_third_node_makes_a_storm(rule: str):
    """A driver's fault shows on a small fleet minutes apart; a second lost GPU may be the second of three."""
    pool = [f"gpu-{number}" for number in range(30)]
    begins = {f"gpu-{number}": minute for number, minute in enumerate((0, 0.5 if rule == "gpu-silent" else 4, 8))}
    signs = [
        sign(node, each, None, minute=minute)
        for node, minute in begins.items()
        for each in (rule, "allocatable-below-expected")
    ]
    found = list(replay(signs, pool=pool, since=NOON - timedelta(days=1)))
    assert [bool(each.reason) for each in found] == [True] * 3

    alone = list(replay(signs[:2], pool=pool, since=NOON - timedelta(days=1)))
    waits = 1 if rule == "gpu-silent" else 10
    assert [(each.reason, each.at) for each in alone] == [("", NOON + timedelta(minutes=waits))]
    over = [replace(each, ended_at=NOON + timedelta(minutes=9)) for each in signs[:2]]
    assert len(list(replay(over, pool=pool, since=NOON - timedelta(days=1)))) == (rule == "gpu-silent")


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        (BreakerNumbers(100, 4, 2), ""),
        (BreakerNumbers(100, 5, 0), "Automatic cases hold 5 of 100 nodes of the pool. At most 5 nodes."),
        (BreakerNumbers(4, 0, 0), ""),
        (BreakerNumbers(4, 1, 0), "Automatic cases hold 1 of 4 nodes of the pool. At most 1 node."),
        (BreakerNumbers(100, 0, 3), "3 nodes of the cluster were quarantined automatically in the last hour."),
        (BreakerNumbers(100, 0, 0, not_ready=19, in_service=100), ""),
        (BreakerNumbers(100, 0, 0, not_ready=20, in_service=100), "20 of 100 GPU nodes in service are not Ready."),
        (BreakerNumbers(4, 0, 0, not_ready=2, in_service=4), ""),
        (BreakerNumbers(100, 0, 0, ("a", "b")), ""),
        (BreakerNumbers(100, 0, 0, ("a", "b", "c")), "3 nodes have the same cause within 10 min"),
    ],
)
def test_each_limit_opens_the_breaker(numbers: BreakerNumbers, why: str):
    assert numbers.why_trip.startswith(why)
    assert bool(numbers.why_trip) is bool(why)


@pytest.mark.parametrize(
    ("numbers", "cause"),
    [
        (BreakerNumbers(100, 0, 3, ("a", "b", "c")), "gpu-lost"),
        (BreakerNumbers(100, 0, 3, not_ready=20, in_service=100), "not-ready"),
        (BreakerNumbers(100, 0, 3), "many-acts"),
        (BreakerNumbers(100, 5, 3), ""),  # the pool's own limit
    ],
)
def test_breakers_of_several_pools_share_a_cause_of_the_cluster(numbers: BreakerNumbers, cause: str):
    assert numbers.cause_of_trip("gpu-lost") == cause


# With rows.


def a_pool_in(mode: Mode, *, nodes: int = 20, **given: Any) -> Pool:
    cluster = a_cluster()
    pool = a_pool(cluster, "h200", max_unavailable=nodes)
    for number in range(nodes):
        a_node(cluster, f"gpu-{number}", pool=pool, created_at=LONG_AGO)
    since = {"mode_since": LONG_AGO, "breaker_since": LONG_AGO, "evidence_after": LONG_AGO}
    AutomaticQuarantine.objects.create(pool=pool, mode=mode, changed_by="root", reason="x", **since | given)
    return pool


def strike(pool: Pool, *numbers: int, opened_at: datetime = NOON - timedelta(minutes=2)) -> None:
    for number in numbers:
        node = Node.objects.get(cluster=pool.cluster, name=f"gpu-{number}")
        given = {"node": node, "severity": "critical", "opened_at": opened_at}
        a_finding(pool.cluster, rule="gpu-silent", title=f"{node.name}: GPU 3 is silent.", facts={}, **given)
        a_finding(pool.cluster, rule="allocatable-below-expected", **given)


def verdicts() -> list[str]:
    return [decision.verdict for decision in AutomaticDecision.objects.order_by("pk")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("mode", "verdict", "cases", "operations_started"),
    [
        (Mode.OFF, [], 0, 0),
        (Mode.SHADOW, ["would-act"], 0, 0),
        (Mode.SUGGEST, ["suggested"], 1, 0),
        (Mode.ACT, ["acted"], 1, 1),
    ],
)
def test_each_mode_does_one_step_more(mode: Mode, verdict: list[str], cases: int, operations_started: int):
    pool = a_pool_in(mode)
    strike(pool, 3)
    for _ in range(2):
        run_automatic_quarantine(now=NOON)

    assert verdicts() == verdict
    assert (NodeCase.objects.count(), Operation.objects.count()) == (cases, operations_started)
    if operations_started:
        operation, case = Operation.objects.get(), NodeCase.objects.get()
        assert (operation.steps, operation.asked_by) == (["cordon"], "automatic quarantine")
        assert case.opened_by == "automatic quarantine"
        assert "0 of at most 1 node of the pool" in case.moves.get(verb="case.automatic").reason


@pytest.mark.django_db
def test_a_storm_opens_the_breaker_before_its_first_act_and_lists_the_rest():
    """One driver breaks 30 % of the nodes."""
    pool = a_pool_in(Mode.ACT)
    other = a_pool_in(Mode.ACT, nodes=1)
    strike(pool, *range(6))
    strike(other, 0)
    run_automatic_quarantine(now=NOON)

    row = AutomaticQuarantine.objects.get(pool=pool)
    assert (row.breaker, NodeCase.objects.filter(cluster=pool.cluster).count()) == (BreakerState.OPEN, 0)
    assert row.breaker_reason.startswith("6 nodes have the same cause within 10 min: gpu-0, gpu-1,")
    assert list(row.decisions.values_list("verdict", flat=True)) == [AutomaticVerdict.BLOCKED] * 6
    assert AutomaticQuarantine.objects.get(pool=other).breaker == BreakerState.CLOSED, "of another cluster"
    ((_, problem),) = BREAKER.say(pool.cluster, now=NOON)
    assert problem.summary == row.breaker_reason
    assert AuditEntry.objects.filter(subject=row.mark, verb="automatic-quarantine.breaker-open").count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("driver", "shared"), [("580.65.06", "They share driver 580.65.06; 1 of 17 other nodes have it."), ("570.1", "")]
)
def test_a_storm_names_what_its_nodes_share(driver: str, shared: str, monkeypatch):
    """lifecycle R52. A node whose broken driver took its label away counts."""
    read: list[int] = []
    monkeypatch.setattr(automatic_round, "properties_of", lambda *given: read.append(1) or properties_of(*given))
    pool = a_pool_in(Mode.ACT)
    Node.objects.filter(name__in=["gpu-0", "gpu-1", "gpu-2", "gpu-7"]).update(driver_version="580.65.06")
    Node.objects.filter(name="gpu-1").update(gpu_product="", driver_version=driver)
    strike(pool, *range(3))
    run_automatic_quarantine(now=NOON)

    reason = AutomaticQuarantine.objects.get(pool=pool).breaker_reason
    assert reason.partition("They share")[1:] == (shared[:10], shared[10:])
    assert len(read) == 1, "once for all matches of a round"


@pytest.mark.django_db
def test_a_storm_over_two_pools_is_one_finding_and_names_the_switch_of_its_nodes():
    """lifecycle R52: one page, and what the nodes share."""
    pool = a_pool_in(Mode.ACT)
    other = a_pool(pool.cluster, "b200", max_unavailable=20)
    since = {"mode_since": LONG_AGO, "breaker_since": LONG_AGO, "evidence_after": LONG_AGO}
    AutomaticQuarantine.objects.create(pool=other, mode=Mode.ACT, changed_by="root", reason="x", **since)
    for number in (2, 3):
        other.nodes.add(node := Node.objects.get(name=f"gpu-{number}"))
        pool.nodes.remove(node)
    strike(pool, *range(4))
    for node in Node.objects.all():
        is_struck = node.name in {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}
        node.labels["network.topology.nvidia.com/leaf"] = "leaf-1" if is_struck else "leaf-2"
        node.save(update_fields=["labels"])
    run_automatic_quarantine(now=NOON)

    subject = f"automatic quarantine: GPU lost, {to_the_minute(NOON)}"
    ((about, problem),) = BREAKER.say(pool.cluster, now=NOON)
    assert (about, str(problem.title)) == (subject, "Automatic quarantine of 2 pools is stopped")
    assert "They share switch leaf-1; " in problem.summary

    row = AutomaticQuarantine.objects.select_related("pool").get(pool=pool)
    automatic.reset_breaker(row, actor="ada", reason="x", now=NOON)
    ((about, problem),) = BREAKER.say(pool.cluster, now=NOON)
    assert (about, str(problem.title)) == (subject, "Automatic quarantine of pool b200 is stopped")


def trips(pool: Pool, *minutes: int, cause: str) -> list[AutomaticQuarantine]:
    """Opens the breaker of another pool of the cluster for one cause, at each of these minutes after noon."""
    rows = []
    for minute in minutes:
        since = {"mode_since": LONG_AGO, "breaker_since": LONG_AGO, "evidence_after": LONG_AGO}
        other = a_pool(pool.cluster, f"pool-{minute}")
        row = AutomaticQuarantine.objects.create(pool=other, mode=Mode.ACT, changed_by="root", reason="x", **since)
        at, reason = NOON + timedelta(minutes=minute), f"Storm at {minute}."
        automatic.set_breaker(row, BreakerState.OPEN, actor=automatic.ACTOR, reason=reason, cause=cause, now=at)
        rows.append(row)
    return rows


@pytest.mark.django_db
@pytest.mark.parametrize("cause", ["off-the-bus", "not-ready"])
def test_a_later_storm_of_the_same_cause_is_a_finding_of_its_own(cause: str):
    """The finding of the earlier storm may be acknowledged, with its breaker still open."""
    pool = a_pool_in(Mode.ACT)
    first, *_ = trips(pool, 0, 9, 1440, 1445, cause=cause)
    at = NOON + timedelta(days=2)
    found = dict(BREAKER.say(pool.cluster, now=at))
    assert [(str(each.title), each.summary) for each in found.values()] == [
        ("Automatic quarantine of 2 pools is stopped", "Storm at 9."),
        ("Automatic quarantine of 2 pools is stopped", "Storm at 1445."),
    ]
    assert [each.evidence[0] for each in found.values()] == [
        instant("Breaker open since", NOON), instant("Breaker open since", NOON + timedelta(days=1)),
    ]  # fmt: skip

    automatic.reset_breaker(first, actor="ada", reason="x", now=at)
    assert list(dict(BREAKER.say(pool.cluster, now=at))) == list(found), "a reset of the first pool is no new storm"


@pytest.mark.django_db
def test_pools_that_the_hourly_limit_stops_within_an_hour_are_one_finding():
    pool = a_pool_in(Mode.ACT)
    trips(pool, 0, 50, 150, cause="many-acts")
    found = BREAKER.say(pool.cluster, now=NOON + timedelta(days=1))
    assert [str(each.title) for _, each in found] == [
        "Automatic quarantine of 2 pools is stopped", "Automatic quarantine of pool pool-150 is stopped",
    ]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("is_ready", [False, None])
def test_many_nodes_not_ready_open_the_breaker(is_ready: bool | None):
    """lifecycle section 9: node NotReady; many switch the automation off."""
    pool = a_pool_in(Mode.ACT)
    Node.objects.filter(name__in=["gpu-5", "gpu-6", "gpu-7", "gpu-8"]).update(is_ready=is_ready)
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    row = AutomaticQuarantine.objects.get()
    assert row.breaker_reason.startswith("4 of 20 GPU nodes in service are not Ready.")
    assert row.breaker_cause == "not-ready", "breakers of several pools are one finding (lifecycle R52)"


@pytest.mark.django_db
def test_nodes_in_cases_in_quarantine_or_down_for_long_are_no_outage():
    """Three dead nodes of a small cluster would stop automatic quarantine for ever."""
    pool = a_pool_in(Mode.ACT, nodes=15)
    row = AutomaticQuarantine.objects.select_related("pool").get()
    down = [Node.objects.get(name=f"gpu-{number}") for number in range(5, 9)]
    Node.objects.filter(pk__in=[node.pk for node in down]).update(is_ready=False, ready_since=NOON)
    assert automatic.numbers_of(row, now=NOON).why_trip.startswith("4 of 15 GPU nodes in service are not Ready.")

    a_case(down[0])
    operation = an_operation(pool.cluster)
    Quarantine.objects.create(
        cluster=pool.cluster, operation=operation, node_uid=down[1].uid, node_name=down[1].name, wanted_since=NOON
    )  # fmt: skip
    Node.objects.filter(pk=down[2].pk).update(is_ready=None, ready_since=NOON - timedelta(days=8))
    Node.objects.filter(name="gpu-0").update(ready_since=NOON - timedelta(days=90))
    numbers = automatic.numbers_of(row, now=NOON)
    assert (numbers.not_ready, numbers.in_service, numbers.why_trip) == (1, 12, "")
    Node.objects.filter(pk=down[2].pk).update(ready_since=None)
    assert automatic.numbers_of(row, now=NOON).not_ready == 2, "nobody knows since when"


@pytest.mark.django_db
def test_an_open_breaker_survives_a_restart_lists_new_signs_and_stops_no_return():
    """lifecycle R53, R55."""
    pool = a_pool_in(Mode.ACT, breaker=BreakerState.OPEN, breaker_reason="Storm.")
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    node = Node.objects.get(name="gpu-5")
    a_case(node, state=CaseState.VALIDATING, passed_at=NOON)
    operation = operations.start(
        pool.cluster, "release", [node], actor="ada", reason="It is well.", now=NOON, typed_count=1
    )

    assert verdicts() == ["blocked"]
    assert AutomaticDecision.objects.get().reason == "The breaker is open: Storm."
    assert (why_no_release([node.uid]), operation.state) == ({}, "running")


@pytest.mark.django_db
def test_a_reset_is_half_open_for_one_act_and_closes_after_a_quiet_while():
    """lifecycle R54: evidence before the reset starts nothing."""
    pool = a_pool_in(Mode.ACT, nodes=80, breaker=BreakerState.OPEN, breaker_reason="Storm.")
    strike(pool, 1, opened_at=NOON - timedelta(minutes=30))
    row = AutomaticQuarantine.objects.select_related("pool").get()
    automatic.reset_breaker(row, actor="ada", reason="The driver is back.", now=NOON - timedelta(minutes=20))
    strike(pool, 2, opened_at=NOON - timedelta(minutes=15))
    strike(pool, 3, opened_at=NOON - timedelta(minutes=3))
    run_automatic_quarantine(now=NOON)

    assert verdicts() == ["acted", "blocked"]
    assert NodeCase.objects.get().node_name == "gpu-2"
    AutomaticDecision.objects.update(at=NOON - WATCHED)
    AutomaticQuarantine.objects.update(breaker_since=NOON - WATCHED)
    seen_at = pool.cluster.bookmarks.values_list("last_seen_at", flat=True).first()
    pool.cluster.bookmarks.update(last_seen_at=NOON - timedelta(minutes=5))
    run_automatic_quarantine(now=NOON)
    assert AutomaticQuarantine.objects.get().breaker == BreakerState.HALF_OPEN, "nobody saw what happened"
    pool.cluster.bookmarks.update(last_seen_at=seen_at)
    for began_at, until in ((NOON - WATCHED, NOON - timedelta(minutes=20)), (NOON - timedelta(minutes=2), NOON)):
        EvaluationRun.objects.create(cluster=pool.cluster, began_at=began_at, until=until)
    run_automatic_quarantine(now=NOON)
    assert AutomaticQuarantine.objects.get().breaker == BreakerState.HALF_OPEN, "Quarterdeck did not run"
    EvaluationRun.objects.all().delete()
    silence = a_finding(pool.cluster, rule="telemetry-silent", since=NOON - WATCHED, opened_at=NOON - WATCHED)
    run_automatic_quarantine(now=NOON)
    assert AutomaticQuarantine.objects.get().breaker == BreakerState.HALF_OPEN, "no Xid was seen"
    silence.delete()
    run_automatic_quarantine(now=NOON)
    assert AutomaticQuarantine.objects.get().breaker == BreakerState.CLOSED
    with pytest.raises(CaseRefused, match="Only an open one is reset"):
        automatic.reset_breaker(AutomaticQuarantine.objects.get(), actor="ada", reason="x", now=NOON)


def _is_frozen(pool: Pool, node: Node) -> None:
    Freeze.objects.create(cluster=pool.cluster, by="ada", at=NOON, reason="x")


def _is_stopped(pool: Pool, node: Node) -> None:
    Freeze.objects.create(is_stop=True, binds_rollbacks=True, by="ada", at=NOON, reason="x")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "hinder",
    [
        lambda _, node: Node.objects.filter(pk=node.pk).update(is_unschedulable=True),
        lambda _, node: Node.objects.filter(pk=node.pk).update(booted_at=NOON - timedelta(minutes=5)),
        lambda _, node: Node.objects.filter(pk=node.pk).update(upgrade_state="drain-required"),
        lambda _, node: Node.objects.filter(pk=node.pk).update(annotations={"quarantineHealthEvent": "[]"}),
        lambda _, node: a_case(node),
        lambda pool, _: pool.cluster.bookmarks.update(last_seen_at=NOON - timedelta(minutes=5)),
        lambda pool, _: pool.cluster.bookmarks.filter(kind="pods").update(last_seen_at=NOON - timedelta(minutes=5)),
        _is_frozen,
        _is_stopped,
    ],
)
def test_a_node_that_is_changed_held_or_not_seen_is_left_alone(hinder):
    """lifecycle R14, Z20, Z21."""
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3)
    hinder(pool, Node.objects.get(name="gpu-3"))
    run_automatic_quarantine(now=NOON)

    assert (verdicts(), Operation.objects.exists()) == ([], False)


@pytest.mark.django_db
def test_a_label_that_nvsentinel_left_on_a_node_keeps_no_machine_away():
    """lifecycle R1: its label stays after a manual uncordon (NVIDIA/NVSentinel #1872)."""
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3)
    marked = Node.objects.filter(name="gpu-3")
    marked.update(labels={SENTINEL_CORDON: "NVSentinel"})
    assert why_not_free(list(marked), now=NOON) == {}, "for the gate of new nodes"
    run_automatic_quarantine(now=NOON)
    assert verdicts() == ["acted"]


@pytest.mark.django_db
def test_a_node_has_at_most_one_automatic_case_in_24_hours():
    """lifecycle R57."""
    pool = a_pool_in(Mode.SUGGEST, nodes=80)
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    first = NodeCase.objects.get()
    commands.close(first, actor="ada", reason="It is well.", now=NOON)
    Finding.objects.update(resolved_at=NOON, state="resolved")
    later = AutomaticDecision.objects.get().at + timedelta(hours=24)
    for now, cases in ((later - timedelta(minutes=1), 1), (later, 2)):
        a_finding(
            pool.cluster, f"GPU 3 at {now}", node=Node.objects.get(name="gpu-3"), rule="gpu-recovery-action",
            severity="critical", opened_at=now - timedelta(minutes=11), facts={},
        )  # fmt: skip
        pool.cluster.bookmarks.update(last_seen_at=now)
        run_automatic_quarantine(now=now)
        assert NodeCase.objects.count() == cases

    assert verdicts() == ["suggested", "blocked", "suggested"]
    assert AutomaticDecision.objects.order_by("pk")[1].reason == "The node had an automatic case in the last 24 h."


@pytest.mark.django_db
def test_a_second_node_waits_until_a_third_opens_the_breaker_or_ten_minutes_have_passed():
    pool = a_pool_in(Mode.ACT, nodes=80)
    strike(pool, 3, 4)
    for minutes, verdict in ((0, []), (7.9, []), (8, ["acted", "acted"])):
        see(pool, at := NOON + timedelta(minutes=minutes))
        run_automatic_quarantine(now=at)
        assert verdicts() == verdict

    strike(pool, 5, opened_at=NOON + timedelta(minutes=6))
    run_automatic_quarantine(now=at)
    assert verdicts() == ["acted", "acted", "blocked"]
    assert AutomaticQuarantine.objects.get().breaker == BreakerState.OPEN


def see(pool: Pool, at: datetime) -> None:
    pool.cluster.bookmarks.update(last_seen_at=at, listed_at=at)


def need_reset(pool: Pool, *signs: tuple[int, float], gpu: int = 0) -> None:
    """Adds a recovery action of a GPU: the number of its node, and the minute after noon."""
    for number, minute in signs:
        node = Node.objects.get(cluster=pool.cluster, name=f"gpu-{number}")
        a_finding(
            pool.cluster, f"GPU {gpu} of {node.name}", node=node, rule="gpu-recovery-action", severity="critical",
            opened_at=NOON + timedelta(minutes=minute), facts={},
        )  # fmt: skip


def decide_at(pool: Pool, *minutes: float) -> list[tuple[float, str, bool]]:
    """Returns the decisions of sweeps at these minutes, and that the backtest makes the same."""
    for minute in minutes:
        see(pool, at := NOON + timedelta(minutes=minute))
        run_automatic_quarantine(now=at)
    found = [
        ((each.at - NOON).total_seconds() / 60, each.node_name, each.verdict == AutomaticVerdict.BLOCKED)
        for each in AutomaticDecision.objects.order_by("pk")
    ]
    past = automatic.backtest(pool, now=at)[::-1]
    replayed = [((one.at - NOON).total_seconds() / 60, one.match.sign.node_name, bool(one.reason)) for one in past]
    assert [each for each in replayed if each[0] <= minutes[-1]] == found
    return found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("signs", "looks", "decided"),
    [
        ([(3, 0)], [9, 10], [(10, "gpu-3", False)]),
        # The third one shows just before the wait of the first one is over.
        (
            [(3, 0), (4, 6), (5, 9.5)], [9, 9.5, 10.5],
            [(9.5, "gpu-3", True), (9.5, "gpu-4", True), (10.5, "gpu-5", True)],
        ),
        ([(3, 0), (4, 10), (5, 20)], [9, 10, 20], [(10, "gpu-3", False), (20, "gpu-4", False)]),
        ([(3, 0), (4, 9), (5, 18)], [10, 18], [(10, "gpu-3", False), (18, "gpu-4", True)]),
    ],
)  # fmt: skip
def test_nodes_with_one_cause_count_from_the_sign_of_the_node(signs, looks: Sequence[float], decided):
    """lifecycle R52. The wait for a common cause hides no node, live and in the backtest."""
    pool = a_pool_in(Mode.ACT, nodes=80)
    need_reset(pool, *signs)
    assert decide_at(pool, *looks) == decided


@pytest.mark.django_db
def test_a_round_that_is_late_still_sees_what_nodes_have_in_common():
    """After a stop, a blind cluster, or a worker that was down."""
    pool = a_pool_in(Mode.ACT, nodes=80)
    need_reset(pool, (3, 0), (4, 1), (5, 2))
    run_automatic_quarantine(now=NOON)
    see(pool, late := NOON + timedelta(minutes=15))
    run_automatic_quarantine(now=late)
    assert verdicts() == ["blocked"] * 3


@pytest.mark.django_db
def test_further_signs_of_a_node_begin_no_wait_again():
    pool = a_pool_in(Mode.ACT, nodes=80)
    for gpu in range(3):
        need_reset(pool, (3, gpu * 9), gpu=gpu)
    assert decide_at(pool, 9, 10) == [(10, "gpu-3", False)]


@pytest.mark.django_db
def test_a_sign_after_a_decision_waits_for_others_again():
    """The driver breaks a node on which an earlier fault was blocked: it is not the first act of the storm."""
    pool = a_pool_in(Mode.ACT, nodes=80)
    _serve(pool, 3)
    need_reset(pool, (3, 0))
    see(pool, at := NOON + timedelta(minutes=10))
    run_automatic_quarantine(now=at)
    assert verdicts() == ["blocked"], "the only Ready node of a service"
    Node.objects.get(name="gpu-3").pods.all().delete()
    need_reset(pool, (3, 300), gpu=1)
    for minute, verdict in ((305, ["blocked"]), (310, ["blocked", "acted"])):
        see(pool, at := NOON + timedelta(minutes=minute))
        run_automatic_quarantine(now=at)
        assert verdicts() == verdict


@pytest.mark.django_db
def test_a_new_sign_after_a_reset_waits_and_counts_without_the_storm_before_it():
    pool = a_pool_in(Mode.ACT, nodes=80, evidence_after=NOON + timedelta(minutes=30))
    need_reset(pool, (3, 0), (4, 1), (5, 2))
    need_reset(pool, (3, 60), gpu=1)
    for minute, verdict in ((69, []), (70, ["acted"])):
        see(pool, at := NOON + timedelta(minutes=minute))
        run_automatic_quarantine(now=at)
        assert verdicts() == verdict


def test_old_gauges_that_one_outage_confirms_are_one_cause():
    """Xid gauges outlast their faults; the device plugin then fails everywhere."""
    names = ["gpu-1", "gpu-2", "gpu-3"]
    old = [sign(name, minute=-200 * number) for number, name in enumerate(names, 1)]
    below = [sign(name, "allocatable-below-expected", None, minute=number) for number, name in enumerate(names)]
    found = list(replay([*old, *below], pool=[f"gpu-{n}" for n in range(80)], since=NOON - timedelta(days=1)))
    assert [bool(each.reason) for each in found] == [True] * 3


@pytest.mark.django_db
def test_a_fault_that_may_be_the_drivers_waits_ten_minutes():
    pool = a_pool_in(Mode.ACT)
    for minutes, verdict in ((9, []), (11, ["acted"])):
        Finding.objects.all().delete()
        a_finding(
            pool.cluster, node=Node.objects.get(name="gpu-3"), rule="gpu-recovery-action", severity="critical",
            opened_at=NOON - timedelta(minutes=minutes), facts={},
        )  # fmt: skip
        run_automatic_quarantine(now=NOON)
        assert verdicts() == verdict


@pytest.mark.django_db
def test_a_full_failure_domain_blocks_and_a_young_sign_waits():
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3, opened_at=NOON - timedelta(seconds=30))
    run_automatic_quarantine(now=NOON)
    assert verdicts() == []

    Pool.objects.update(max_unavailable=1)
    Node.objects.filter(name="gpu-9").update(is_ready=False)
    run_automatic_quarantine(now=NOON + timedelta(seconds=60))
    assert "may have 1 node unavailable and has 1" in AutomaticDecision.objects.get().reason
    assert not NodeCase.objects.exists()


def _serve(pool: Pool, *numbers: int, ready: Sequence[int] = ()) -> None:
    """A service with a replica of two GPUs on each of these nodes."""
    for number in numbers:
        node = Node.objects.get(cluster=pool.cluster, name=f"gpu-{number}")
        its = {"owner_kind": "StatefulSet", "owner_name": "chat", "is_ready": number in (ready or numbers)}
        a_pod(node, f"chat-{number}", gpus=2, **its)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("numbers", "ready", "others", "why"),
    [
        ([3], [3], "NVIDIA-H200", "gpu-3 is the only node where StatefulSet team-a/chat is Ready. A person decides."),
        ([3, 4], [3], "NVIDIA-H200", "StatefulSet team-a/chat is Ready on gpu-3 alone."),
        ([3, 4], [3, 4], "NVIDIA-H200", ""),
        ([3, 4], [4], "NVIDIA-H200", ""),
        ([3, 4], [3, 4], "NVIDIA-B200", "1 pod of gpu-3 finds no room: team-a/chat-3 (2 GPUs). 2 GPUs to place again"),
    ],
)
def test_no_machine_takes_the_last_ready_node_of_a_service_or_pods_without_room(
    numbers: Sequence[int], ready: Sequence[int], others: str, why: str
):
    """lifecycle R51."""
    pool = a_pool_in(Mode.ACT)
    Node.objects.exclude(name="gpu-3").update(gpu_product=others)
    _serve(pool, *numbers, ready=ready)
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)

    decision = AutomaticDecision.objects.get()
    assert (decision.verdict, Operation.objects.count()) == (("blocked", 0) if why else ("acted", 1))
    assert decision.reason.startswith(why or "Case opened and node cordoned.")


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"mode": Mode.OFF}, {"breaker": BreakerState.OPEN}, {"epoch": 7}])
def test_an_act_loses_against_a_change_of_mode_or_breaker(change: dict[str, Any]):
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3)
    row = AutomaticQuarantine.objects.select_related("pool__cluster").get()
    AutomaticQuarantine.objects.update(**change)

    with pytest.raises(LostRace):
        PoolRound(row, now=NOON).go()
    assert (verdicts(), NodeCase.objects.exists(), Operation.objects.exists()) == ([], False, False)


@pytest.mark.django_db
def test_a_finding_is_decided_once_also_by_two_rounds(monkeypatch: pytest.MonkeyPatch):
    pool = a_pool_in(Mode.SHADOW)
    strike(pool, 3)
    row = AutomaticQuarantine.objects.select_related("pool__cluster").get()
    decide = PoolRound._decide

    def decide_twice(self, match, *, after):
        other = PoolRound(row, now=NOON)
        other.causes = self.causes
        decide(other, match, after=after)
        decide(self, match, after=after)

    monkeypatch.setattr(PoolRound, "_decide", decide_twice)
    with pytest.raises(LostRace, match="Another round decided"):
        PoolRound(row, now=NOON).go()
    assert verdicts() == ["would-act"]


@pytest.mark.django_db
def test_a_case_that_somebody_opens_at_the_same_time_is_no_crash(monkeypatch: pytest.MonkeyPatch):
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3)
    a_case(Node.objects.get(name="gpu-3"))
    monkeypatch.setattr("maintenance.automatic_round.why_wait", lambda *_, **__: "")
    run_automatic_quarantine(now=NOON)

    assert "has an open case" in AutomaticDecision.objects.get().reason
    assert (verdicts(), Operation.objects.exists()) == (["blocked"], False)


def acting_with(others: Sequence[CaseState]) -> AutomaticQuarantine:
    """A pool in mode act with 17 accepted cases, and others in these states."""
    pool = a_pool_in(Mode.ACT)
    row = AutomaticQuarantine.objects.get()
    for number, state in enumerate([CaseState.CLOSED] * 17 + [*others]):
        node = a_node(pool.cluster, f"old-{number}")
        case = a_case(node, state=state, passed_at=NOON if number < 17 else None)
        AutomaticDecision.objects.create(
            automatic=row,
            at=LONG_AGO,
            node_uid=node.uid,
            node_name=node.name,
            trigger="gsp",
            verdict="acted",
            case=case,
        )  # fmt: skip
    return row


@pytest.mark.django_db
def test_cases_that_people_dismiss_end_mode_act():
    """lifecycle section 7: below 90 % of the last 20 it falls back to suggest by itself."""
    row = acting_with([CaseState.CLOSED] * 3)
    run_automatic_quarantine(now=NOON)

    row.refresh_from_db()
    assert (row.mode, row.reason) == (Mode.SUGGEST, "People accepted 17 of the last 20 judged decisions.")


@pytest.mark.django_db
@pytest.mark.parametrize("state", [CaseState.IN_REPAIR, CaseState.VALIDATING])
def test_a_node_in_repair_is_no_dismissed_case(state: CaseState):
    """Three long repairs of hardware at once say nothing against the rules."""
    row = acting_with([state] * 3)
    run_automatic_quarantine(now=NOON)

    row.refresh_from_db()
    assert row.mode == Mode.ACT


@pytest.mark.django_db
def test_the_mode_goes_up_one_step_at_a_time_by_an_admin():
    pool = a_pool(a_cluster(), "h200")
    root, ada = calling(a_user("root", role="admin")), calling(a_user("ada", role="operator"))
    path = f"/api/v1/automatic-quarantines/{pool.pk}"

    assert root.get(path).json()["mode"] == "off"
    assert ada.post(f"{path}/modes", {"mode": "shadow", "reason": "x"}, format="json").status_code == 403
    refused = root.post(f"{path}/modes", {"mode": "act", "reason": "x"}, format="json")
    assert (refused.status_code, "it may become shadow" in refused.json()["detail"]) == (409, True)
    for mode in ("shadow", "suggest", "act"):
        sent = {"mode": mode, "reason": "Trust.", "skip_trial": True}
        answer = root.post(f"{path}/modes", sent, format="json")
        assert (answer.status_code, answer.json()["mode"]) == (200, mode)
    assert (answer.json()["trial_skipped_by"], answer.json()["trial_skip_reason"]) == ("root", "Trust.")
    assert ada.post(f"{path}/breaker-resets", {"reason": "x"}, format="json").status_code == 409
    assert [row["name"] for row in ada.get("/api/v1/automatic-quarantines").json()["results"]] == ["h200"]
    stranger = calling(a_user("eve", role="operator", on=a_cluster()))
    assert stranger.get(path).status_code == 404


@pytest.mark.django_db
def test_mode_suggest_needs_14_days_of_shadow_mode_or_a_reason_that_is_shown():
    """lifecycle section 7, order of trust. A step back to shadow mode keeps the days, off begins again."""
    pool = a_pool(a_cluster(), "h200")
    given = {"actor": "root", "reason": "We know this rule."}
    automatic.change_mode(pool, mode="shadow", now=NOON, **given)
    early, ends = NOON + timedelta(days=13), NOON + TRIAL
    with pytest.raises(CaseRefused, match=r"Mode suggest needs 14 days of shadow mode first\. Pool h200 has 13 d, and"):
        automatic.change_mode(pool, mode="suggest", now=early, **given)
    row = automatic.change_mode(pool, mode="suggest", skip_trial=True, now=early, **given)
    assert trial_of(row) == ShadowTrial(NOON, "root", "We know this rule.")
    entry = AuditEntry.objects.filter(verb="automatic-quarantine.suggest").get()
    assert entry.evidence["trial"] == {
        "since": NOON.isoformat(), "skipped_by": "root", "skip_reason": "We know this rule.",
    }  # fmt: skip
    text = page(visiting(a_user(role="viewer")), f"/maintenance/automatic/{pool.pk}").text
    assert "root skipped the rest: We know this rule." in text

    assert "over since" not in text
    row = automatic.change_mode(pool, mode="act", now=early + timedelta(hours=1), **given)
    assert trial_of(row).skipped_by == "root", "the skipped rest is over for mode act, too"

    automatic.change_mode(pool, mode="off", now=ends, **given)
    row = automatic.change_mode(pool, mode="shadow", now=ends, **given)
    assert trial_of(row) == ShadowTrial(ends)
    with pytest.raises(CaseRefused, match="Mode suggest needs 14 days"):
        automatic.change_mode(pool, mode="suggest", now=ends + timedelta(days=1), **given)
    for mode in ("suggest", "shadow", "suggest", "act"):
        automatic.change_mode(pool, mode=mode, now=ends + TRIAL, **given)


@pytest.mark.django_db
def test_a_rule_that_was_off_has_14_days_of_its_own():
    pool = a_pool_in(Mode.ACT, rule_modes={"gpu-lost": "off", "gsp": "suggest"})
    given = {"actor": "root", "reason": "x"}
    automatic.change_rule(pool, rule="gsp", mode="act", now=NOON, **given)  # it was tried with its pool
    automatic.change_rule(pool, rule="gpu-lost", mode="shadow", now=NOON, **given)
    with pytest.raises(CaseRefused, match=r"Mode suggest needs 14 days of shadow mode first\. Rule gpu-lost has 1 d"):
        automatic.change_rule(pool, rule="gpu-lost", mode="suggest", now=NOON + timedelta(days=1), **given)
    row = automatic.change_rule(pool, rule="gpu-lost", mode="suggest", now=NOON + TRIAL, **given)
    assert (skipped_rules(row), row.rule_modes) == ({}, {"gpu-lost": "suggest"})


@pytest.mark.django_db
def test_a_row_from_before_trials_and_limits_counts_from_its_mode():
    pool = a_pool_in(Mode.SHADOW)
    row = AutomaticQuarantine.objects.get()
    assert (row.trials, row.rule_modes, row.rules_raised_at, row.storm_since) == ({}, {}, {}, None)
    assert (trial_of(row), skipped_rules(row)) == (ShadowTrial(LONG_AGO), {})

    given = {"actor": "root", "reason": "x", "now": NOON}
    assert automatic.change_rule(pool, rule="gsp", mode="shadow", **given).trials == {}, "tried with its pool"
    assert automatic.change_rule(pool, rule="gsp", mode="suggest", **given).trials == {}
    row = automatic.change_mode(pool, mode="suggest", **given)
    assert trial_of(row) == ShadowTrial(LONG_AGO), "kept at the first change"

    AutomaticQuarantine.objects.update(breaker=BreakerState.OPEN, breaker_reason="Storm.", breaker_cause="gsp")
    ((subject, _),) = BREAKER.say(pool.cluster, now=NOON)
    assert subject.endswith(to_the_minute(LONG_AGO))


@pytest.mark.django_db
def test_a_pool_whose_decisions_people_dismiss_in_shadow_mode_may_not_act():
    pool = a_pool_in(Mode.SUGGEST)
    row = AutomaticQuarantine.objects.get()
    for number in range(20):
        feedback = "dismissed" if number < 3 else "accepted"
        finding = a_finding(pool.cluster, f"gpu {number}", feedback=feedback)
        AutomaticDecision.objects.create(
            automatic=row, at=LONG_AGO, node_uid="x", node_name="x", trigger="gsp", verdict="would-act", finding=finding
        )  # fmt: skip
    assert acceptance_of(row) == DecisionAcceptance(17, 20, 0)
    with pytest.raises(CaseRefused, match="accepted 17 of the last 20 judged decisions"):
        automatic.change_mode(pool, mode="act", actor="root", reason="x", skip_trial=True, now=NOON)

    Finding.objects.filter(feedback="dismissed").update(feedback="")
    assert acceptance_of(row) == DecisionAcceptance(17, 17, 3)
    over = Finding.objects.filter(feedback="").first()
    Finding.objects.filter(pk=over.pk).update(resolved_at=NOON, state="resolved")
    assert acceptance_of(row) == DecisionAcceptance(17, 17, 2), "a resolved finding takes no judgement"
    automatic.change_mode(pool, mode="act", actor="root", reason="x", now=NOON)


@pytest.mark.django_db
def test_pages_and_rest_show_decisions_and_what_it_would_have_done():
    pool = a_pool_in(Mode.SHADOW)
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    bob, api = visiting(a_user("bob", role="viewer")), calling(a_user("ada", role="operator"))

    assert "h200" in page(bob, "/maintenance/automatic").text
    AutomaticDecision.objects.update(reason="Shadow mode.")
    text = page(bob, f"/maintenance/automatic/{pool.pk}").text
    assert "GPU lost" in text
    assert "Shadow mode." in text
    decisions = api.get(f"/api/v1/automatic-quarantines/{pool.pk}/decisions").json()["results"]
    assert [row["verdict"] for row in decisions] == ["would-act"]
    found = automatic.backtest(Pool.objects.get(), now=NOON)
    assert [(each.match.trigger.key, each.reason) for each in found] == [("gpu-lost", "")]
    assert api.get(f"/api/v1/automatic-quarantines/{pool.pk}/backtests").status_code == 200
    assert (
        visiting(a_user("root", role="admin"))
        .post(f"/maintenance/automatic/{pool.pk}/mode", {"mode": "suggest", "reason": "Trust."})  # after 20 days
        .status_code
        == 302
    )
    assert AutomaticQuarantine.objects.get().mode == Mode.SUGGEST


@pytest.mark.django_db
@pytest.mark.parametrize(("state", "held"), [("suspect", 1), ("drained", 1), ("probation", 0), ("closed", 0)])
def test_a_node_on_probation_takes_no_place_of_the_pools_limit(state: str, held: int):
    """lifecycle R38: it is in service."""
    pool = a_pool_in(Mode.ACT)
    a_case(Node.objects.get(name="gpu-0"), state=state, opened_by=automatic.ACTOR)

    assert automatic.numbers_of(AutomaticQuarantine.objects.get(pool=pool), now=NOON).in_cases == held


@pytest.mark.django_db
def test_a_restore_opens_every_breaker():
    """lifecycle R55: the restored rows may lack acts and trips."""
    pool = a_pool_in(Mode.ACT)
    strike(pool, 1)
    assert [end("The database was restored: incident 4711", NOON) for end in AFTER_RESTORE] == [
        "1 breaker of automatic quarantine opened."
    ]
    run_automatic_quarantine(now=NOON)

    row = AutomaticQuarantine.objects.get()
    assert (row.breaker, row.breaker_reason) == (BreakerState.OPEN, "The database was restored: incident 4711")
    assert not NodeCase.objects.exists()
    assert AuditEntry.objects.filter(verb="automatic-quarantine.breaker-open", actor=CONSOLE).exists()


@pytest.mark.django_db
@pytest.mark.parametrize(("limit", "verdict"), [("off", []), ("shadow", ["would-act"]), ("suggest", ["suggested"])])
def test_a_rule_goes_no_further_than_its_own_limit(limit: str, verdict: list[str]):
    pool = a_pool_in(Mode.ACT)
    automatic.change_rule(pool, rule="gpu-lost", mode=limit, actor="root", reason="Not yet.", now=LONG_AGO)
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    assert (verdicts(), Operation.objects.count()) == (verdict, 0)
    assert AuditEntry.objects.filter(verb="automatic-quarantine.rule").get().evidence["to"] == limit


def test_a_backtest_leaves_out_rules_that_may_not_act():
    signs = [sign(rule=rule) for rule in ("gpu-silent", "allocatable-below-expected", "gpu-recovery-action")]
    found = replay(signs, pool=["gpu-1"], off=["gpu-lost"], since=NOON - timedelta(days=1))
    assert [each.match.trigger.key for each in found] == ["needs-reset"]


def strike_twice(pool: Pool, *numbers: int, **given: Any) -> None:
    """Adds the sign of a second rule, which comes later in the table."""
    strike(pool, *numbers, **given)
    for number in numbers:
        node = Node.objects.get(cluster=pool.cluster, name=f"gpu-{number}")
        a_finding(
            pool.cluster, f"GPU 3 of {node.name}", node=node, rule="gpu-recovery-action", severity="critical",
            opened_at=NOON - timedelta(minutes=11), facts={},
        )  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("limit", ["off", "shadow", "suggest"])
def test_a_limited_rule_hides_no_rule_in_a_higher_mode(limit: str):
    pool = a_pool_in(Mode.ACT, rule_modes={"gpu-lost": limit})
    strike_twice(pool, 3)
    run_automatic_quarantine(now=NOON)
    assert list(AutomaticDecision.objects.values_list("trigger", "verdict")) == [("needs-reset", "acted")]


@pytest.mark.django_db
def test_a_record_of_a_rule_in_shadow_mode_does_not_decide_the_finding():
    pool = a_pool_in(Mode.ACT, rule_modes={"gpu-lost": "shadow"})
    strike(pool, 3)
    run_automatic_quarantine(now=NOON)
    assert verdicts() == ["would-act"]
    AutomaticQuarantine.objects.update(rule_modes={"off-the-bus": "shadow"})
    AutomaticDecision.objects.update(trigger="off-the-bus")
    for _ in range(2):
        run_automatic_quarantine(now=NOON)

    assert verdicts() == ["would-act", "acted"]
    assert [each.finding is None for each in AutomaticDecision.objects.order_by("pk")] == [True, False]
    assert acceptance_of(AutomaticQuarantine.objects.get()) == DecisionAcceptance(0, 0, 1), (
        "nobody can judge the record"
    )


@pytest.mark.django_db
def test_a_rule_in_shadow_mode_opens_no_breaker_and_takes_no_watched_act():
    pool = a_pool_in(Mode.ACT, nodes=80, rule_modes={"gpu-lost": "shadow"}, breaker=BreakerState.HALF_OPEN)
    strike(pool, *range(6))
    run_automatic_quarantine(now=NOON)
    assert AutomaticQuarantine.objects.get().breaker == BreakerState.HALF_OPEN
    assert AutomaticDecision.objects.first().reason.startswith("In mode act the breaker would open: 6 nodes")
    AutomaticDecision.objects.update(verdict=AutomaticVerdict.SHADOW)

    strike_twice(pool, 9)
    run_automatic_quarantine(now=NOON)
    assert AutomaticDecision.objects.get(node_name="gpu-9").verdict == "acted", "the shadow records were no acts"


@pytest.mark.django_db
def test_a_limit_goes_up_one_step_at_a_time_and_dates_its_rule_alone():
    pool = a_pool_in(Mode.ACT)
    given = {"rule": "gpu-lost", "actor": "root", "reason": "x", "skip_trial": True}
    row = automatic.change_rule(pool, mode="off", now=NOON, **given)
    assert (row.counts_from("gpu-lost"), row.evidence_after) == (LONG_AGO, LONG_AGO), "it was not raised"
    with pytest.raises(CaseRefused, match=r"The highest mode of the rule is off\. From there it may become shadow"):
        automatic.change_rule(pool, mode="act", now=NOON, **given)
    for mode in ("shadow", "suggest", "act"):
        row = automatic.change_rule(pool, mode=mode, now=NOON, **given)
    assert (row.rule_modes, row.counts_from("gpu-lost"), row.counts_from("needs-reset")) == ({}, NOON, LONG_AGO)

    strike_twice(pool, 3)
    run_automatic_quarantine(now=NOON)
    assert AutomaticDecision.objects.get().trigger == "needs-reset", "it is older than the raise of the other"


@pytest.mark.django_db
def test_a_limit_that_is_changed_under_the_round_acts_not():
    """The limit of the rule is in the guarded row, as the mode is."""
    pool = a_pool_in(Mode.ACT)
    strike(pool, 3)
    row = AutomaticQuarantine.objects.get()
    automatic.change_rule(pool, rule="gpu-lost", mode="shadow", actor="root", reason="x", now=LONG_AGO)
    with pytest.raises(LostRace):
        row.change()


@pytest.mark.django_db
def test_a_limit_ends_with_act_and_needs_a_mode_first():
    pool = a_pool_in(Mode.SUGGEST)
    for mode in ("suggest", "act"):
        row = automatic.change_rule(pool, rule="gpu-lost", mode=mode, actor="root", reason="x", now=NOON)
    assert (row.rule_modes, row.mode_of("gpu-lost")) == ({}, Mode.SUGGEST)
    with pytest.raises(CaseRefused, match="was never on"):
        automatic.change_rule(a_pool(a_cluster()), rule="gpu-lost", mode="off", actor="root", reason="x", now=NOON)


@pytest.mark.django_db
def test_a_page_names_who_else_quarantines_nodes_of_the_cluster():
    """lifecycle R14."""
    pool = a_pool_in(Mode.SHADOW, nodes=3)
    assert automatic.other_quarantine(pool.cluster) == ""
    RepairKinds.objects.create(cluster=pool.cluster, sentinel_seen_at=NOON)
    assert automatic.other_quarantine(pool.cluster).startswith(
        f"NVSentinel is in this cluster, last seen {to_the_minute(NOON)}."
    )
    Node.objects.filter(name="gpu-1").update(labels={"dgxc.nvidia.com/nvsentinel-state": "quarantined"})
    Node.objects.filter(name="gpu-2").update(annotations={"quarantineHealthEvent": "[]"})
    Node.objects.filter(name="gpu-0").update(labels={SENTINEL_CORDON: "NVSentinel"})  # of an earlier quarantine
    sentence = "NVSentinel quarantines 2 nodes of this cluster."
    assert sentence in page(visiting(a_user(role="viewer")), f"/maintenance/automatic/{pool.pk}").text
