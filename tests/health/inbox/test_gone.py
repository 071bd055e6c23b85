"""What people do to findings of nodes that are gone: it works, and says what is true."""

from datetime import timedelta

import pytest

from fleet.history.lines import FINDING, Span, lines_of
from fleet.models import GoneNode
from health.inbox import acts, rule_mutes
from health.inbox.queries import gone_node_of
from health.inbox.refusals import BadAct
from health.lifecycle import FindingState
from health.models import Finding, Mute
from tests import make
from tests.callers import ada, calling, now  # noqa: F401 (fixtures)
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db]
UNTIL = (NOON + timedelta(days=1)).isoformat()


@pytest.fixture
def finding(now):  # noqa: F811 (a fixture)
    cluster = make.a_cluster("prod")
    node = make.a_node(cluster, "gpu-001")
    row = make.a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-hot")
    GoneNode.objects.create(cluster=cluster, node_id=node.pk, uid=node.uid, name=node.name, gone_at=NOON, was={})
    node.delete()
    row.refresh_from_db()
    return row


@pytest.mark.parametrize(
    ("resource", "body", "column", "value"),
    [
        ("acknowledgements", {}, "state", "acknowledged"),
        ("assignments", {"to": "ada"}, "assigned_to", "ada"),
        ("feedback", {"feedback": "accepted", "reason": "Right."}, "feedback", "accepted"),
        ("feedback", {"feedback": "dismissed", "reason": "Not so."}, "feedback", "dismissed"),
    ],
)
def test_each_act_is_kept(finding, ada, resource, body, column, value):  # noqa: F811 (a fixture)
    answer = ada.post(f"/api/v1/findings/{finding.pk}/{resource}", body, format="json")

    assert answer.status_code == 204
    assert getattr(Finding.objects.get(), column) == value


def test_it_is_muted_by_itself_and_refused_for_a_pool_it_is_not_in(finding, ada):  # noqa: F811 (a fixture)
    body = {"reason": "Known.", "until": UNTIL}
    pool = make.a_pool(finding.cluster)

    assert ada.post("/api/v1/mutes", {"finding": finding.pk, **body}, format="json").status_code == 201

    finding.refresh_from_db()
    assert finding.state == FindingState.MUTED
    assert Mute.objects.get().place == "GPU 3 of gpu-001 in prod"
    with pytest.raises(BadAct, match="The finding has no existing node"):
        rule_mutes.scoped(finding, "node")
    with pytest.raises(BadAct, match="Name a pool"):
        rule_mutes.scoped(finding, "pool", pool=pool)


def test_the_page_says_that_its_node_is_gone_and_offers_no_scope_of_it(finding):
    amos = make.a_user("amos", role="operator")

    shown = page(visiting(amos), f"/findings?finding={finding.pk}")

    assert "Its node gpu-001 left its cluster" in shown.text
    assert f"/nodes/{GoneNode.objects.get().node_id}" in shown.links
    assert "on node gpu-001" not in shown.text
    visiting(amos).post(f"/findings/{finding.pk}/acknowledge", {"key": "k"})
    finding.refresh_from_db()
    assert finding.acknowledged_by == "amos"


def test_what_people_did_to_it_stays_on_the_timeline_of_its_node(now):  # noqa: F811 (a fixture)
    node, root = make.a_node(make.a_cluster("prod"), "gpu-001"), make.a_user("root2", role="admin")
    row = make.a_finding(node.cluster, node=node, rule="gpu-hot", title="GPU 3 hot")
    make.an_event_of(row)
    acts.acknowledge(row, actor="ada", reason="I change its fan.", now=NOON)
    there = [(line.sentence, line.who) for line in lines_of(node, root, Span(frozenset({FINDING})))]
    gone = GoneNode.objects.create(
        cluster=node.cluster, node_id=node.pk, uid=node.uid, name=node.name, gone_at=NOON, was={}
    )
    node.delete()

    left = lines_of(gone, root, Span(frozenset({FINDING})))

    assert ("Acknowledged: GPU 3 hot. I change its fan.", "ada") in there
    assert [(line.sentence, line.who) for line in left] == there


def test_a_node_that_left_before_it_began_is_another_one(finding):
    GoneNode.objects.update(gone_at=finding.since - timedelta(days=1))

    assert gone_node_of(finding, make.a_user("root2", role="admin")) is None


def test_who_sees_only_a_pool_of_another_node_may_not_act(finding):
    pat = make.a_user("pat", role="operator", on=make.a_pool(finding.cluster, "other"))

    assert calling(pat).post(f"/api/v1/findings/{finding.pk}/acknowledgements", {}).status_code == 404
