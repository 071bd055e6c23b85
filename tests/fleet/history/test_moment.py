from datetime import timedelta

import pytest

from fleet.history.moment import NoSuchMoment, moment_of
from fleet.models import Bookmark, GoneNode, NodeEvent
from fleet.observer.mirror.timeline import entries
from rollouts.models import Target
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
EARLY = NOON - timedelta(days=2)


@pytest.fixture
def node():
    node = make.a_node(make.a_cluster(), driver_version="580.95.05")
    make.a_node_event(node, "Seen for the first time.", at=EARLY, detail={"ready": True})
    return node


@pytest.fixture
def ada():
    return make.a_user("ada", role="viewer")


def test_it_is_put_together_from_what_the_timeline_was_told(node, ada):
    """The entries that the observer writes are those that are read back."""
    old = {**vars(node), "driver_version": "570.172.08", "is_unschedulable": True}
    for entry in entries(old, vars(node)):
        make.a_node_event(node, entry.sentence, at=NOON - timedelta(hours=1), kind=entry.kind, detail=entry.detail)

    then = moment_of(node, ada, NOON - timedelta(hours=2), now=NOON)

    words = {fact.title: fact.words for fact in then.facts}
    assert (words["Driver"], words["Cordoned"], words["Ready"]) == ("570.172.08", "yes", "yes")
    assert moment_of(node, ada, NOON, now=NOON).facts[3].words == "580.95.05"


@pytest.mark.parametrize(("after", "before", "told", "is_cut"), [(120, 3, 103, True), (99, 3, 102, False)])
def test_what_led_to_a_moment_is_not_what_is_left_out(node, ada, after, before, told, is_cut):
    at = NOON - timedelta(hours=1)
    for second in range(after):
        make.a_node_event(node, "It flapped.", at=at + timedelta(seconds=second))
    for second in range(before):
        make.a_node_event(node, "It rebooted.", at=at - timedelta(seconds=1 + second))

    then = moment_of(node, ada, at, now=NOON)

    assert [line.sentence for line in then.around].count("It rebooted.") == before
    assert [line.at for line in then.around] == sorted({line.at for line in then.around}, reverse=True)
    assert (len(then.around), then.around_is_cut) == (told, is_cut)
    text = page(visiting(ada), f"/nodes/{node.pk}/history?at={at:%Y-%m-%dT%H:%M:%S}").text
    assert ("Not all events are shown" in text) == is_cut


def test_findings_and_plans_of_then_and_what_happened_around_it(ada):
    plan = make.a_plan()
    target = Target.objects.filter(stage__plan=plan).first()
    node = plan.cluster.nodes.get(uid=target.node_uid)
    make.a_node_event(node, "Seen for the first time.", at=EARLY, detail={"ready": True})
    at = NOON - timedelta(hours=1)
    over = {"opened_at": EARLY, "resolved_at": at - timedelta(hours=1)}
    make.a_finding(plan.cluster, node=node, rule="a", title="It was hot.", **over)
    make.a_finding(plan.cluster, node=node, rule="b", title="It is hot.", opened_at=EARLY)
    make.a_finding(plan.cluster, node=node, rule="c", title="Hot since.", opened_at=NOON)
    make.a_finding(plan.cluster, "API server", rule="cluster-not-seen", title="Not seen.", opened_at=EARLY)
    make.a_node_event(node, "Cordoned.", at=at - timedelta(minutes=10), kind="cordon")

    then = moment_of(node, ada, at, now=NOON)

    assert {one.sentence for one in then.true_then if one.kind == "finding"} == {"It is hot.", "Not seen."}
    assert [line.sentence for line in then.around] == ["Cordoned."]


def test_what_came_after_its_cluster_was_last_heard_of_is_not_known(node, ada):
    Bookmark.objects.filter(cluster=node.cluster).update(last_seen_at=NOON - timedelta(hours=6))

    after, before = (moment_of(node, ada, NOON - timedelta(hours=hours), now=NOON) for hours in (1, 7))

    assert after.unseen == "The cluster was last observed at 2026-11-21 06:00:00 UTC. Later states are unknown."
    assert (before.unseen, after.facts) == ("", ())


@pytest.mark.parametrize("rule", ["cluster-not-seen", "cluster-unwatched"])
def test_what_nobody_saw_then_is_not_told_as_if_somebody_had(node, ada, rule):
    """From the first second on, and not only since people were told of it."""
    began, over = NOON - timedelta(hours=6), NOON - timedelta(hours=4)
    told = {"since": began, "opened_at": began + timedelta(minutes=1), "resolved_at": over}
    make.a_finding(node.cluster, "API server", rule=rule, title="Not seen.", **told)

    before, at_once, later, after = (
        moment_of(node, ada, at, now=NOON).not_seen
        for at in (began - timedelta(seconds=1), began, over - timedelta(seconds=1), over)
    )

    assert (before, after) == ("", "")
    assert at_once == later
    assert later.startswith("The cluster was not observed at that time, since 2026-11-21 06:00:00 UTC")


def test_page_and_rest_say_that_nobody_saw_it_then(node, ada):
    make.a_finding(node.cluster, "API server", rule="cluster-not-seen", title="Not seen.", since=EARLY, opened_at=EARLY)
    viewer, asked = visiting(ada), {"at": "2026-11-20T12:00:00Z"}

    said = viewer.get(f"/api/v1/nodes/{node.pk}/moment", asked).json()["not_seen"]

    assert said
    assert said in page(viewer, f"/nodes/{node.pk}/history?at=2026-11-20T12:00:00Z").text


def test_a_node_that_left_had_its_findings(node, ada):
    finding = make.a_finding(node.cluster, node=node, title="Xid 79.", opened_at=EARLY)
    make.an_event_of(finding, at=EARLY)
    gone = GoneNode.objects.create(
        cluster=node.cluster, node_id=node.pk, uid=node.uid, name=node.name, gone_at=NOON - timedelta(hours=1)
    )
    node.delete()

    then = moment_of(gone, ada, NOON - timedelta(hours=3), now=NOON)

    assert [one.sentence for one in then.true_then if one.kind == "finding"] == ["Xid 79."]


def test_who_sees_only_a_pool_is_told_that_nobody_saw_the_cluster(node):
    pool = make.a_pool(node.cluster, "h200")
    pool.nodes.add(node)
    make.a_finding(node.cluster, "API server", rule="cluster-not-seen", title="Not seen.", opened_at=EARLY)
    bob = make.a_user("bob", role="viewer", on=pool)

    (said,) = moment_of(node, bob, NOON - timedelta(hours=1), now=NOON).true_then

    assert (said.sentence, said.href) == ("Not seen.", "")


def test_gpus_that_were_cut_were_whole_before(node, ada):
    old = {**vars(node), "gpu_capacity": 8, "layout": ""}
    new = vars(node) | {"gpu_capacity": 0, "layout": "mig-1g.10gb=1g.10gb"}
    for entry in entries(old, new):
        make.a_node_event(node, entry.sentence, at=NOON - timedelta(hours=1), kind=entry.kind, detail=entry.detail)
    node.gpu_capacity = 0

    then = moment_of(node, ada, NOON - timedelta(hours=2), now=NOON)

    assert next(fact.value for fact in then.facts if fact.column == "gpu_capacity") == 8


def test_the_driver_of_a_node_whose_label_is_gone_is_not_known(node, ada):
    at = NOON - timedelta(hours=1)
    for entry in entries(vars(node), vars(node) | {"driver_unknown_since": at}):
        make.a_node_event(node, entry.sentence, at=at, kind=entry.kind, detail=entry.detail)
    node.driver_unknown_since = at

    found = [moment_of(node, ada, then, now=NOON).facts[3] for then in (at - timedelta(minutes=1), at)]

    assert [(fact.title, fact.is_known, fact.value) for fact in found] == [
        ("Driver", True, "580.95.05"),
        ("Driver", False, None),
    ]


def test_before_it_was_seen_nobody_knows(node, ada):
    then = moment_of(node, ada, EARLY - timedelta(hours=1), now=NOON)

    assert then.unseen.startswith("The node was first observed at 2026-")
    assert then.facts == ()


def test_older_than_what_is_kept_nobody_knows(node, ada, settings):
    settings.KEEP_HISTORY_DAYS = 30

    assert "stored for 30 days" in moment_of(node, ada, NOON - timedelta(days=31), now=NOON).unseen


def test_what_is_still_to_come_is_refused(node, ada):
    with pytest.raises(NoSuchMoment):
        moment_of(node, ada, NOON + timedelta(seconds=1), now=NOON)


def test_a_node_that_had_left_was_nowhere(node, ada):
    row = {"node_id": node.pk, "cluster": node.cluster, "uid": node.uid, "name": node.name}
    gone = GoneNode.objects.create(**row, gone_at=NOON - timedelta(hours=1))
    node.delete()

    assert moment_of(gone, ada, NOON, now=NOON).unseen.startswith("The node had already left its cluster, at")
    assert moment_of(gone, ada, NOON - timedelta(hours=2), now=NOON).unseen == ""
    NodeEvent.objects.all().delete()
    assert moment_of(gone, ada, NOON - timedelta(hours=2), now=NOON).unseen == "Its timeline is no longer stored."


def test_before_it_was_seen_the_machine_that_had_its_name_is_named(node, ada):
    """Who asks how gpu-7 was at 02:40 means what was called so then, and not what was made under its name at three."""
    old = a_gone(node, seen_at=EARLY - timedelta(days=2), gone_at=EARLY - timedelta(hours=1))
    at, viewer = "2026-11-18T12:00:00Z", visiting(ada)

    said = viewer.get(f"/api/v1/nodes/{node.pk}/moment", {"at": at}).json()

    assert (said["had_its_name"], said["facts"]) == (old.node_id, [])
    text = viewer.get(f"/nodes/{node.pk}/history", {"at": at}).content.decode()
    assert f'href="/nodes/{old.node_id}/history?at=2026-11-18T12%3A00%3A00%2B00%3A00"' in text


def test_after_a_node_left_the_machine_that_has_its_name_is_named(node, ada):
    old = a_gone(node, seen_at=EARLY - timedelta(days=2), gone_at=EARLY - timedelta(hours=1))

    assert moment_of(old, ada, NOON, now=NOON).had_its_name == node.pk


def test_between_two_machines_nobody_had_the_name(node, ada):
    between = EARLY - timedelta(minutes=30)
    old = a_gone(node, seen_at=EARLY - timedelta(days=2), gone_at=EARLY - timedelta(hours=1))

    assert [moment_of(one, ada, between, now=NOON).had_its_name for one in (node, old)] == [None, None]


def test_of_several_machines_of_a_name_the_one_of_that_moment_is_named(node, ada):
    days = [EARLY - timedelta(days=number) for number in (1, 2, 3)]
    second, first = (a_gone(node, seen_at=days[at + 1], gone_at=days[at]) for at in (0, 1))

    named = [moment_of(node, ada, day + timedelta(hours=1), now=NOON).had_its_name for day in days]

    assert named == [None, second.node_id, first.node_id]


def test_a_machine_that_somebody_does_not_see_is_not_named(node):
    a_gone(node, seen_at=EARLY - timedelta(days=2), gone_at=EARLY - timedelta(hours=1))
    pool = make.a_pool(node.cluster, "h200")
    pool.nodes.add(node)
    bob = make.a_user("bob", role="viewer", on=pool)

    assert moment_of(node, bob, EARLY - timedelta(days=1), now=NOON).had_its_name is None


def a_gone(node, *, seen_at, gone_at):
    """One that had its name before."""
    number = GoneNode.objects.count()
    gone = GoneNode.objects.create(
        cluster=node.cluster, node_id=node.pk + 100 + number, uid=f"gone-{number}", name=node.name, gone_at=gone_at
    )
    seen = {"kind": "ready", "sentence": "Seen for the first time.", "detail": {"ready": True}}
    NodeEvent.objects.create(cluster=node.cluster, node_uid=gone.uid, node_name=gone.name, at=seen_at, **seen)
    return gone
