"""What people do to a finding: kept, audited, done once, and never over what somebody else did first."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edges import slices
from edges.transition_errors import IllegalMove, LostRace
from fleet.messages import announce
from fleet.models import Node, Observer
from health.evaluation.finding_openings import Openings
from health.inbox import acts, rule_mutes
from health.inbox.queries import detail_of
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.rulebook import on_page
from health.inbox.verbs import VERBS, why_not_now
from health.lifecycle import FINDING_MOVES, FindingState
from health.models import Finding, FindingAct, Mute
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from tests.make import NOON, a_cluster, a_finding, a_node, a_node_event, a_pool, a_user

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(minutes=1)


@pytest.fixture
def finding():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return a_finding(cluster, node=a_node(cluster, "gpu-001"))


def read(finding) -> Finding:
    return Finding.objects.get(pk=finding.pk)


def test_who_acknowledges_it_has_it(finding):
    acts.acknowledge(finding, actor="ada", reason="Looking.", now=NOON)

    seen = read(finding)
    assert (seen.state, seen.acknowledged_by, seen.acknowledged_at) == (FindingState.ACKNOWLEDGED, "ada", NOON)
    assert seen.assigned_to == "ada"
    act = seen.acts.get()
    assert (act.verb, act.by, act.reason, act.rule, act.said) == ("acknowledge", "ada", "Looking.", "x", seen.title)
    entry = AuditEntry.objects.get(subject=f"finding:{finding.pk}")
    assert (entry.verb, entry.actor, entry.reason) == ("finding.acknowledge", "ada", "Looking.")


def test_an_act_is_told_with_the_number_of_a_flush_that_came_before_it_was_written(
    finding, monkeypatch, django_capture_on_commit_callbacks
):
    told: list[int] = []
    monkeypatch.setattr(announce, "cluster_changed", lambda _id, **given: told.append(given["seq"]))
    with django_capture_on_commit_callbacks(execute=True):
        acts.acknowledge(finding, actor="ada", now=NOON)
        Observer.objects.update(batch=7)

    assert told == [7]


def test_what_is_somebodys_stays_theirs_when_another_acknowledges_it(finding):
    acts.assign(finding, to=a_user("bob", role="viewer").username, actor="ada", now=NOON)
    acts.acknowledge(finding, actor="ada", now=NOON)

    assert read(finding).assigned_to == "bob"


def test_what_becomes_somebodys_while_another_acknowledges_it_stays_theirs(finding):
    late = read(finding)
    acts.assign(finding, to=a_user("bob", role="viewer").username, actor="ada", now=NOON)
    acts.acknowledge(late, actor="amy", now=LATER)

    assert (read(finding).assigned_to, read(finding).acknowledged_by) == ("bob", "amy")


def test_the_second_who_acknowledges_is_told_who_did(finding):
    late = read(finding)
    acts.acknowledge(finding, actor="ada", now=NOON)

    with pytest.raises(FindingRefusal, match="ada has already acknowledged the finding"):
        acts.acknowledge(read(finding), actor="amy", now=LATER)
    with pytest.raises(LostRace):
        acts.acknowledge(late, actor="amy", now=LATER)
    assert FindingAct.objects.count() == 1


def test_the_same_key_is_the_same_act(finding):
    for _ in range(2):
        acts.acknowledge(read(finding), actor="ada", key="k", now=NOON)

    assert FindingAct.objects.count() == AuditEntry.objects.count() == 1


BOB = {"to": "bob"}
UNDONE_BY = {
    "acknowledge": (
        {},
        lambda finding: acts.unassign(finding, actor="amy", now=LATER),
        "The finding is open and nobody’s",
    ),
    "assign": (BOB, lambda finding: acts.unassign(finding, actor="amy", now=LATER), "The finding is open and nobody’s"),
    "unassign": (
        {},
        lambda finding: acts.assign(finding, **BOB, actor="amy", now=LATER),
        "The finding is open and bob’s",
    ),
}


@pytest.mark.parametrize("verb", UNDONE_BY)
def test_an_act_that_was_undone_is_not_said_to_be_done(finding, verb):
    """Z37: done is what is so now."""
    a_user("bob", role="viewer")
    asked, undo, is_now = UNDONE_BY[verb]
    if verb == "unassign":
        acts.assign(finding, **BOB, actor="amy", now=NOON)
    act = getattr(acts, verb)
    for _ in range(2):
        act(read(finding), **asked, actor="ada", key="k", now=NOON)
    undo(read(finding))
    kept = FindingAct.objects.count()

    with pytest.raises(FindingRefusal, match=f"is no longer in effect. {is_now}"):
        act(read(finding), **asked, actor="ada", key="k", now=LATER)

    assert FindingAct.objects.count() == kept


def test_a_judgement_of_another_action_is_not_that_of_this_one(finding):
    acts.accept(read(finding), actor="ada", reason="So it is.", key="k", now=NOON)
    acts.accept(read(finding), actor="ada", reason="So it is.", key="k", now=NOON)
    Finding.objects.update(feedback="", feedback_by="", feedback_reason="", steps=["Drain it."])

    with pytest.raises(FindingRefusal, match="The steps are now: Drain it"):
        acts.accept(read(finding), actor="ada", reason="So it is.", key="k", now=LATER)


def test_who_sends_one_key_twice_at_once_has_acted_once(finding, monkeypatch):
    """The second one's first look at the key comes before the first one's act is committed."""
    late, truly, looks = read(finding), acts._is_done, []
    acts.acknowledge(finding, actor="ada", key="k", now=NOON)
    monkeypatch.setattr(acts, "_is_done", lambda *asked: truly(*asked) if looks else looks.append(1))

    acts.acknowledge(late, actor="ada", key="k", now=NOON)

    assert FindingAct.objects.count() == 1


@pytest.mark.parametrize("other", [{"to": "amy"}, {"reason": "Their rack."}])
def test_a_key_names_one_body_only(finding, other):
    for name in ("amy", "bob"):
        a_user(name, role="viewer")
    acts.assign(finding, **BOB, actor="ada", key="k", now=NOON)

    with pytest.raises(FindingRefusal, match="was already used for"):
        acts.assign(read(finding), **BOB | other, actor="ada", key="k", now=NOON)

    assert read(finding).assigned_to == "bob"


def test_it_is_assigned_to_who_may_see_it_only(finding):
    a_user("eve")
    a_user("zoe", role="viewer", on=a_cluster())

    for name in ("eve", "zoe", "nobody"):
        with pytest.raises(BadAct, match=f"No person with the name {name} may see"):
            acts.assign(finding, to=name, actor="ada", now=NOON)


def test_what_happened_nearest_to_its_beginning_is_not_what_is_left_out(finding):
    for second in range(50):
        a_node_event(finding.node, "It flapped.", at=finding.since - timedelta(minutes=20, seconds=second))
    for second, sentence in ((5, "It rebooted."), (-5, "Cordoned.")):
        a_node_event(finding.node, sentence, at=finding.since - timedelta(seconds=second))

    told = detail_of(finding, a_user(role="admin"), now=NOON)

    assert [event.sentence for event in told.around][-3:] == ["It flapped.", "It rebooted.", "Cordoned."]
    assert (len(told.around), told.around_left_out) == (40, 12)
    assert [event.at for event in told.around] == sorted(event.at for event in told.around)


def test_who_assigns_second_has_assigned_nothing(finding):
    a_user("bob", role="viewer")
    a_user("zoe", role="viewer")
    late = read(finding)
    acts.assign(finding, to="bob", actor="ada", now=NOON)

    with pytest.raises(LostRace):
        acts.assign(late, to="zoe", actor="amy", now=LATER)

    assert read(finding).assigned_to == "bob"


def test_what_is_resolved_meanwhile_is_assigned_to_nobody(finding):
    a_user("bob", role="viewer")
    late = read(finding)
    finding.move(FindingState.RESOLVED, now=NOON)

    with pytest.raises(LostRace):
        acts.assign(late, to="bob", actor="ada", now=LATER)


def test_what_is_released_is_open_and_nobodys(finding):
    acts.acknowledge(finding, actor="ada", now=NOON)
    late = read(finding)
    acts.unassign(finding, actor="ada", now=NOON)

    seen = read(finding)
    assert (seen.state, seen.assigned_to, seen.acknowledged_by) == (FindingState.OPEN, "", "")
    with pytest.raises(LostRace):
        acts.unassign(late, actor="amy", now=LATER)
    with pytest.raises(FindingRefusal, match="has no assignee"):
        acts.unassign(seen, actor="amy", now=LATER)


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_a_release_of_what_became_somebody_elses_loses(finding, is_acknowledged):
    a_user("bob", role="viewer")
    a_user("zoe", role="viewer")
    acts.assign(finding, to="bob", actor="ada", now=NOON)
    if is_acknowledged:
        acts.acknowledge(finding, actor="ada", now=NOON)
    late = read(finding)
    acts.assign(finding, to="zoe", actor="ada", now=NOON)

    with pytest.raises(LostRace):
        acts.unassign(late, actor="amy", now=LATER)
    assert read(finding).assigned_to == "zoe"


@pytest.mark.parametrize(("tell", "feedback"), [(acts.accept, "accepted"), (acts.dismiss, "dismissed")])
def test_the_action_is_judged_once_with_a_reason(finding, tell, feedback):
    late = read(finding)
    tell(finding, actor="ada", reason="It was the riser.", now=NOON)

    seen = read(finding)
    assert (seen.feedback, seen.feedback_by, seen.feedback_reason) == (feedback, "ada", "It was the riser.")
    with pytest.raises(FindingRefusal, match=f"ada has already {feedback} the action"):
        tell(seen, actor="amy", reason="No.", now=LATER)
    with pytest.raises(LostRace):
        tell(late, actor="amy", reason="No.", now=LATER)
    with pytest.raises(BadAct, match="Give a reason"):
        tell(late, actor="amy", reason="", now=LATER)


def test_feedback_on_an_action_that_was_written_anew_loses(finding):
    late = read(finding)
    Finding.objects.update(steps=["Do something else."])

    with pytest.raises(LostRace):
        acts.accept(late, actor="ada", reason="Yes.", now=NOON)


def test_feedback_is_kept_for_its_rule_when_the_finding_is_gone(finding):
    acts.accept(finding, actor="ada", reason="Yes.", now=NOON)

    finding.delete()

    act = FindingAct.objects.get()
    assert (act.rule, act.verb, act.said) == ("x", "accept", "It is wrong.")


def test_a_mute_silences_what_is_there_and_says_who(finding):
    other = a_finding(finding.cluster, "quarterdeck", rule="y")
    Node.objects.update(unresolved=1)

    rule_mutes.mute(
        rule_mutes.scoped(finding, "finding"), actor="ada", reason="Known.", until=NOON + timedelta(days=1), now=NOON
    )

    assert (read(finding).state, read(other).state) == (FindingState.MUTED, FindingState.OPEN)
    assert read(finding).acts.get().verb == "mute"
    assert Node.objects.get().unresolved == 0
    assert AuditEntry.objects.filter(verb="mute.mute").exists()


def test_a_mute_of_many_findings_silences_some_before_its_time_is_up(finding, monkeypatch):
    for number in range(9):
        a_finding(finding.cluster, f"GPU {number} of gpu-001", rule=finding.rule, node=finding.node)
    seconds = [0.0]
    is_muted = Openings.is_muted

    def takes_time(*given) -> bool:
        seconds[0] += 0.4
        return is_muted(*given)

    monkeypatch.setattr(Openings, "is_muted", takes_time)
    monkeypatch.setattr(rule_mutes, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(rule_mutes, "AT_ONCE", 2, raising=False)
    monkeypatch.setattr(slices, "ROWS", 2)

    rule_mutes.mute(rule_mutes.scoped(finding, "cluster"), actor="ada", reason="x", until=LATER, now=NOON)

    assert Finding.objects.muted().count() == 4
    rule_mutes.go_on(finding.cluster, now=NOON)
    assert Finding.objects.muted().count() == 10


def test_mutes_begin_and_end_without_reading_the_nodes(finding):
    with CaptureQueriesContext(connection) as queries:
        mute = rule_mutes.mute(rule_mutes.scoped(finding, "node"), actor="ada", reason="x", until=LATER, now=NOON)
        rule_mutes.lift(mute, actor="ada", reason="x", now=NOON)

    assert read(finding).state == FindingState.OPEN
    assert not [query["sql"] for query in queries if '"allocatable"' in query["sql"]]


@pytest.mark.parametrize("scope", ["finding", "node", "pool", "cluster"])
def test_the_candidates_of_a_mute_contain_all_that_it_covers(scope):
    cluster = a_cluster()
    nodes = [a_node(cluster, name) for name in ("gpu-001", "gpu-002")]
    pool = a_pool(cluster)
    pool.nodes.set(nodes[:1])
    board = "GPU-5a1b2c3d"
    muted = a_finding(cluster, "GPU 3 of gpu-001", node=nodes[0], gpu_uuid=board)
    a_finding(cluster, "GPU 3 of gpu-001", node=nodes[0])
    a_finding(cluster, "GPU 4 of gpu-001", node=nodes[0], gpu_uuid=board)
    a_finding(cluster, "GPU 3 of gpu-002", node=nodes[1], gpu_uuid="GPU-other")
    a_finding(cluster, "GPU 5 of gpu-001", node=nodes[0], gpu_uuid=board, rule="y")
    row = rule_mutes.scoped(muted, scope, pool=pool)
    pools = {nodes[0].pk: {pool.pk}}

    covered = {each for each in Finding.objects.all() if row.covers(each, each.node.name, pools.get(each.node_id, ()))}

    assert len(covered) == (4 if scope == "cluster" else 3)
    assert covered == set(row.candidates)


@pytest.mark.parametrize(
    ("until", "says"), [(timedelta(0), "in the past"), (timedelta(days=14, seconds=1), "At most 14 days")]
)
def test_a_mute_has_an_end_that_is_near(finding, until, says):
    with pytest.raises(BadAct, match=says):
        rule_mutes.mute(rule_mutes.scoped(finding, "finding"), actor="ada", reason="x", until=NOON + until, now=NOON)


@pytest.mark.parametrize("scope", ["finding", "node"])
def test_what_is_of_a_node_that_is_gone_by_now_is_not_muted(finding, scope):
    row = rule_mutes.scoped(finding, scope)
    Node.objects.all().delete()

    with pytest.raises(BadAct, match="The node left the cluster after you read the finding"):
        rule_mutes.mute(row, actor="ada", reason="x", until=LATER, now=NOON)

    assert not Mute.objects.exists()


def test_the_same_key_is_the_same_mute(finding):
    rows = [
        rule_mutes.mute(rule_mutes.scoped(finding, "node"), actor="ada", reason="x", until=LATER, now=NOON, key="k")
        for _ in range(2)
    ]

    assert rows[0].pk == rows[1].pk
    assert Mute.objects.count() == 1


def mute_with_a_key(finding, scope="node", *, until=LATER, now=NOON) -> Mute:
    return rule_mutes.mute(rule_mutes.scoped(finding, scope), actor="ada", reason="x", until=until, now=now, key="k")


def test_a_key_that_muted_something_else_is_refused(finding):
    mute_with_a_key(finding)

    for other in ({"scope": "finding"}, {"until": LATER + timedelta(hours=1)}):
        with pytest.raises(FindingRefusal, match="was already used for mute at"):
            mute_with_a_key(finding, **other)

    a_second = timedelta(seconds=1)
    assert mute_with_a_key(finding, until=LATER + a_second, now=NOON + a_second) == Mute.objects.get()


def test_a_mute_that_was_lifted_is_not_said_to_hold_again(finding):
    rule_mutes.lift(mute_with_a_key(finding), actor="amy", reason="It matters now.", now=NOON)

    with pytest.raises(FindingRefusal, match=r"no longer in effect\. amy has already lifted the mute"):
        mute_with_a_key(finding)

    assert read(finding).state == FindingState.OPEN


def test_a_key_that_named_another_act_is_refused(finding):
    acts.acknowledge(read(finding), actor="ada", key="k", now=NOON)

    with pytest.raises(FindingRefusal, match="was already used for"):
        acts.dismiss(read(finding), actor="ada", reason="It is a test rack.", key="k", now=NOON)

    assert FindingAct.objects.count() == 1


def test_who_lifts_a_mute_second_has_lifted_nothing(finding):
    row = rule_mutes.mute(rule_mutes.scoped(finding, "finding"), actor="ada", reason="x", until=LATER, now=NOON)
    late = Mute.objects.get()
    rule_mutes.lift(row, actor="amy", reason="It matters now.", now=NOON)

    assert read(finding).state == FindingState.OPEN
    with pytest.raises(FindingRefusal, match="amy has already lifted the mute"):
        rule_mutes.lift(late, actor="bob", reason="Me, too.", now=NOON)


def test_a_mute_that_has_run_out_cannot_be_lifted(finding):
    row = rule_mutes.mute(rule_mutes.scoped(finding, "finding"), actor="ada", reason="x", until=LATER, now=NOON)

    with pytest.raises(FindingRefusal, match="The mute has already ended"):
        rule_mutes.lift(row, actor="amy", reason="x", now=LATER)


def test_every_verb_says_why_it_means_nothing_in_a_state():
    for verb, its in VERBS.items():
        for state in FindingState:
            assert (why_not_now(verb, state) == "") == (state in its.states)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("ada", "amy")),
        st.sampled_from(
            ("acknowledge", "assign", "unassign", "accept", "dismiss", "mute", "lift", "resolve", "again", "look")
        ),
        st.booleans(),  # on what was read before the other's last act
    ),
    max_size=14,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=ACTS)
def test_whatever_two_people_do_it_moves_by_its_table_and_all_is_kept(finding, done):
    """Whatever they do, and on however old a picture: the row is whole, and each act that was done is written down."""
    for name in ("ada", "amy"):
        a_user(name, role="operator") if not _known(name) else None
    Finding.objects.filter(pk=finding.pk).update(
        state=FindingState.OPEN, assigned_to="", feedback="", resolved_at=None, acknowledged_by="", acknowledged_at=None
    )
    Mute.objects.all().delete()
    FindingAct.objects.all().delete()
    old, kept = read(finding), 0
    for who, verb, is_late in done:
        seen, was = old if is_late else read(finding), read(finding)
        other = "amy" if who == "ada" else "ada"
        try:
            _do(seen, verb, who, other)
        except (BadAct, FindingRefusal, IllegalMove, LostRace):
            assert FindingAct.objects.count() == kept
            assert _columns(read(finding)) == _columns(was)
        else:
            kept = FindingAct.objects.count()
        now = read(finding)
        steps = {FindingState(was.state), *FINDING_MOVES[FindingState(was.state)]}
        assert now.state in steps
        assert (now.state == FindingState.ACKNOWLEDGED) == bool(now.acknowledged_by and now.resolved_at is None)
        assert (now.state == FindingState.RESOLVED) == (now.resolved_at is not None)
        if now.state == FindingState.MUTED:
            assert Mute.objects.in_force(now=NOON).exists()
        assert not list(broken_links(AuditEntry.objects.filter(subject=f"finding:{finding.pk}")))
        old = was


def _known(name: str) -> bool:
    from people.models import User

    return User.objects.filter(username=name).exists()


def _columns(row: Finding) -> tuple[object, ...]:
    return row.state, row.assigned_to, row.acknowledged_by, row.feedback, row.resolved_at


def _do(seen: Finding, verb: str, who: str, other: str) -> None:
    if verb == "mute":
        rule_mutes.mute(rule_mutes.scoped(seen, "finding"), actor=who, reason="x", until=LATER, now=NOON)
    elif verb == "lift":
        row = Mute.objects.order_by("pk").first()
        if row is not None:
            rule_mutes.lift(row, actor=who, reason="x", now=NOON)
    elif verb == "resolve":
        seen.move(FindingState.RESOLVED, now=NOON)
    elif verb == "again":
        if seen.state == FindingState.RESOLVED:
            to = (
                FindingState.MUTED
                if Openings.of(seen.cluster, now=NOON).is_muted(seen, "gpu-001")
                else FindingState.OPEN
            )
            seen.move(to, now=NOON)
    elif verb == "look":
        Openings.of(seen.cluster, now=NOON).unmute()
    elif verb == "assign":
        acts.assign(seen, to=other, actor=who, now=NOON)
    elif verb in ("accept", "dismiss"):
        getattr(acts, verb)(seen, actor=who, reason="x", now=NOON)
    else:
        getattr(acts, verb)(seen, actor=who, now=NOON)


def test_how_often_a_rule_was_right_is_counted_over_findings_that_one_sees():
    """And over those that are gone, for who sees everything."""
    finding, other = (a_finding(a_cluster(name), rule="node-not-ready") for name in ("north", "south"))
    for one, at in ((finding, NOON), (other, LATER)):
        acts.accept(one, actor="amy", reason="Right.", now=at)
    of_the_first = a_user(role="viewer", on=finding.cluster)

    def accepted(user) -> tuple[int, int]:
        (rule,) = (row for row in on_page(user, now=NOON) if row.entry.key == finding.rule)
        return rule.accepted, detail_of(finding, user, now=NOON).precision.accepted

    assert (accepted(of_the_first), accepted(a_user(role="viewer"))) == ((1, 1), (2, 2))

    other.delete()

    assert (accepted(of_the_first), accepted(a_user(role="viewer"))) == ((1, 1), (2, 2))
