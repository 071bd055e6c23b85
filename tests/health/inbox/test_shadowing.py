"""A rule in shadow mode is evaluated and listed, and notifies nobody: by no list, no count, no timeline."""

import inspect
import re
from datetime import timedelta

import pytest
from django.db import connection

from fleet.history.lines import FINDING, Span, lines_of
from fleet.models import Bookmark, DomainEvent, Node, Observer
from fleet.web.summary import cluster_lines
from health.evaluation import evaluation_round
from health.evaluation.finding_openings import TEXTS
from health.inbox import shadow_mode
from health.inbox.hours import hours_of
from health.inbox.queries import counts_of
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.rulebook import on_page
from health.lifecycle import FindingState
from health.models import Finding, RuleShadow
from health.rules import RULES
from health.rules.gpus import GPU_RULES
from health.web.timeline import findings_then
from health.web.trouble import trouble_of
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from tests.make import NOON, a_cluster, a_node, a_user

pytestmark = pytest.mark.django_db
RULE = "node-not-ready"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return cluster


def looked(cluster, *minutes: float) -> None:
    for each in minutes:
        Bookmark.objects.filter(cluster=cluster).update(last_seen_at=NOON + each * MINUTE)
        evaluation_round.evaluate_cluster(cluster, now=NOON + each * MINUTE)


def in_shadow_mode(rule: str = RULE) -> RuleShadow:
    return shadow_mode.begin(rule, actor="ada", reason="New here.", now=NOON)


def what_people_are_told(cluster) -> tuple[int, ...]:
    user = a_user(role="viewer")
    counts = counts_of(user)
    trouble = trouble_of(user, counts, cluster_lines(user, now=NOON), now=NOON)
    told = Finding.objects.open().count(), Finding.objects.confirming().count()
    nodes = sum(Node.objects.filter(cluster=cluster).values_list("unresolved", flat=True))
    return (*told, nodes, trouble.open, trouble.confirming, counts.unresolved)


def test_what_a_rule_on_trial_finds_is_judged_and_nobody_is_told(cluster):
    """Z35."""
    in_shadow_mode()
    a_node(cluster, "gpu-1", is_ready=False)

    looked(cluster, 0, 1)

    finding = Finding.objects.get(rule=RULE)
    assert (finding.state, finding.is_shadow) == (FindingState.OPEN, True)
    assert what_people_are_told(cluster) == (0, 0, 0, 0, 0, 0)
    assert not DomainEvent.objects.exists()
    row = next(row for row in on_page(a_user(role="viewer"), now=NOON) if row.entry.key == RULE)
    assert (row.shadow.by, row.would_notify, row.open) == ("ada", 1, 0)


def test_it_is_resolved_without_a_word(cluster):
    in_shadow_mode()
    a_node(cluster, "gpu-1", is_ready=False)
    looked(cluster, 0, 1)
    Node.objects.update(is_ready=True)

    looked(cluster, 2)

    assert Finding.objects.get(rule=RULE).resolved_at == NOON + 2 * MINUTE
    assert not DomainEvent.objects.exists()


def test_whoever_is_told_when_a_trial_ends_is_told_all_that_was_written_of_it(cluster):
    """What its rule wrote: the sentence, why it is so, what to do, and by what it was judged."""
    shadow = in_shadow_mode("allocatable-below-expected")
    a_node(cluster, "gpu-1", allocatable={"nvidia.com/gpu": 0}, expected={"nvidia.com/gpu": 8})
    looked(cluster, 0, 2)
    written = (*TEXTS, "severity")
    tried = Finding.objects.filter(is_shadow=True).values(*written).get()
    assert all(tried.values())

    shadow_mode.end_shadow_mode(shadow, actor="ada", reason="It is right.", now=NOON + 3 * MINUTE)

    assert Finding.objects.notified().values(*written).get() == tried


def test_it_hides_no_other_and_is_hidden_by_none(cluster):
    node = a_node(cluster, "gpu-1", is_ready=False, allocatable={"nvidia.com/gpu": 0})
    looked(cluster, 0, 1)
    assert Finding.objects.get(rule="allocatable-below-expected").parent.rule == RULE

    in_shadow_mode()

    missing = Finding.objects.get(rule="allocatable-below-expected")
    assert missing.parent is None
    node.refresh_from_db()
    assert node.unresolved == 1


def test_what_was_open_goes_out_of_every_count_and_comes_back(cluster):
    a_node(cluster, "gpu-1", is_ready=False)
    looked(cluster, 0, 1)
    before = what_people_are_told(cluster)
    row = in_shadow_mode()
    assert what_people_are_told(cluster) == (0, 0, 0, 0, 0, 0)

    shadow_mode.end_shadow_mode(row, actor="amy", reason="It is right.", now=NOON + MINUTE)

    assert what_people_are_told(cluster) == before == (1, 0, 1, 1, 0, 1)


def test_a_look_that_ran_beside_is_put_in_step_by_the_next(cluster):
    a_node(cluster, "gpu-1", is_ready=False)
    looked(cluster, 0, 1)
    RuleShadow.objects.create(rule=RULE, by="ada", at=NOON, reason="x")  # as if written while a look went on

    looked(cluster, 2)

    assert Finding.objects.unresolved().get(rule=RULE).is_shadow
    told = Finding.objects.get(rule=RULE, is_shadow=False)
    assert (told.resolved_at, told.resolved_reason) == (NOON + 2 * MINUTE, "its rule entered shadow mode")
    assert what_people_are_told(cluster) == (0, 0, 0, 0, 0, 0)


def test_who_comes_second_is_told_who_was_first_and_nothing_is_written(cluster):
    row = in_shadow_mode()

    with pytest.raises(FindingRefusal, match="ada has already started shadow mode"):
        shadow_mode.begin(RULE, actor="amy", reason="Me, too.", now=NOON)
    shadow_mode.end_shadow_mode(row, actor="ada", reason="Done.", now=NOON)
    with pytest.raises(FindingRefusal, match="already ended"):
        shadow_mode.end_shadow_mode(RuleShadow.objects.get(pk=row.pk), actor="amy", reason="Done.", now=NOON)

    entries = AuditEntry.objects.filter(subject=f"rule:{RULE}").order_by("number")
    assert [(entry.verb, entry.actor) for entry in entries] == [
        ("rule.shadow.begin", "ada"),
        ("rule.shadow.end", "ada"),
    ]
    assert not list(broken_links(AuditEntry.objects.order_by("subject", "number")))


def test_what_people_were_told_stays_in_every_history(cluster):
    node, user = a_node(cluster, "gpu-1", is_ready=False), a_user(role="viewer")
    looked(cluster, 0, 1)
    row = shadow_mode.begin(RULE, actor="ada", reason="New here.", now=NOON + 30 * MINUTE)
    looked(cluster, 31)
    shadow_mode.end_shadow_mode(row, actor="ada", reason="Good.", now=NOON + 150 * MINUTE)
    looked(cluster, 151)

    at = {minute: list(findings_then(node, user, NOON + minute * MINUTE)) for minute in (20, 100, 151)}
    assert [len(at[minute]) for minute in (20, 100, 151)] == [1, 0, 1]
    lines = [line.sentence for line in reversed(lines_of(node, user, Span(frozenset({FINDING}))))]
    assert [line.partition(":")[0] for line in lines if "No longer" in line] == [
        "No longer reported, as its rule entered shadow mode"
    ]
    assert len(lines) == 3
    Node.objects.update(created_at=NOON - 60 * MINUTE)
    node.refresh_from_db()
    hours = {each.hour: each.severity for each in hours_of(node, now=NOON + 180 * MINUTE)}
    assert [bool(hours[NOON.replace(minute=0) + hour * 60 * MINUTE]) for hour in (0, 1, 2)] == [True, False, True]


@pytest.mark.parametrize("number", [1, 40])
def test_a_trial_costs_no_more_for_many_findings_than_for_one(cluster, number, django_assert_max_num_queries):
    """A slice of forty costs as many queries as one finding."""
    for each in range(number):
        a_node(cluster, f"gpu-{each}", is_ready=False)
    looked(cluster, 0, 1)

    locks = 2 * connection.features.has_select_for_update  # of the observer, with what is counted and explained
    with django_assert_max_num_queries(36 + locks):  # SQLite writes forty rows in two statements
        row = in_shadow_mode()
    with django_assert_max_num_queries(38 + locks):
        shadow_mode.end_shadow_mode(row, actor="ada", reason="Good.", now=NOON + 2 * MINUTE)

    assert Finding.objects.open().filter(rule=RULE).count() == number
    assert Node.objects.filter(unresolved=1).count() == number


def test_each_side_has_a_row_of_its_own_that_is_as_old_as_the_trouble(cluster):
    a_node(cluster, "gpu-1", is_ready=False)
    looked(cluster, 0, 1)
    row = in_shadow_mode()
    shadow_mode.end_shadow_mode(row, actor="ada", reason="Good.", now=NOON + 2 * MINUTE)

    rows = Finding.objects.filter(rule=RULE).order_by("pk")
    assert [(each.is_shadow, each.state, each.resolved_reason) for each in rows] == [
        (False, FindingState.RESOLVED, "its rule entered shadow mode"),
        (True, FindingState.RESOLVED, "its rule left shadow mode"),
        (False, FindingState.OPEN, ""),
    ]
    assert {each.since for each in rows} == {NOON}
    assert [each.times for each in rows] == [1, 1, 1]
    assert DomainEvent.objects.count() == 3


def test_what_is_being_confirmed_changes_sides_as_it_is(cluster):
    a_node(cluster, "gpu-1", is_ready=False)
    looked(cluster, 0)

    in_shadow_mode()

    finding = Finding.objects.get(rule=RULE)
    assert (finding.is_shadow, finding.state, finding.resolved_at) == (True, FindingState.CONFIRMING, None)


def test_no_rule_that_says_that_nobody_sees_may_be_on_trial():
    says_so = re.compile(r"\b(silent|nobody (sees|hears|would see)|not seen|no sample|in no series|unwatched)\b", re.I)
    about = {
        rule.key
        for rule in (*RULES, *GPU_RULES)
        if says_so.search(f"{rule.title} {inspect.getmodule(rule.evaluate).__doc__.splitlines()[0]}")
    }

    assert about >= {"exporter-silent", "gpu-silent", "telemetry-silent", "cluster-not-seen", "cluster-unwatched"}
    assert not shadow_mode.MAY_BE_SHADOWS & (about | {"observer-behind", "series-explosion"})
    assert {rule.key for rule in (*RULES, *GPU_RULES)} >= shadow_mode.OF_NOT_SEEING


@pytest.mark.parametrize(
    "rule",
    ["cluster-not-seen", "exporter-silent", "gpu-silent", "observer-behind", "telemetry-silent", "plan-halted", "x"],
)
def test_what_says_that_we_do_not_see_is_never_on_trial(rule):
    with pytest.raises(BadAct, match="always notifies"):
        in_shadow_mode(rule)


def test_nobody_does_it_without_a_reason():
    with pytest.raises(BadAct, match="Give a reason"):
        shadow_mode.begin(RULE, actor="ada", reason="", now=NOON)


def test_what_comes_back_soon_after_a_trial_is_told_as_if_new(cluster):
    row = in_shadow_mode()
    a_node(cluster, "gpu-1", is_ready=False)
    looked(cluster, 0, 1)
    Node.objects.update(is_ready=True)
    looked(cluster, 2)
    shadow_mode.end_shadow_mode(row, actor="ada", reason="Good.", now=NOON + 2 * MINUTE)
    Node.objects.update(is_ready=False)

    looked(cluster, 3, 4)

    assert Finding.objects.open().get().times == 1
    assert Finding.objects.get(is_shadow=True).state == FindingState.RESOLVED
