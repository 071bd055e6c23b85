"""Lines of a version whose findings and cases wrote no events about their node remain on timelines, each once."""

from datetime import timedelta

import pytest

from fleet.history.lines import Span, lines_of
from fleet.models import DomainEvent, GoneNode
from health.inbox import acts
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return make.a_cluster()


@pytest.fixture
def node(cluster):
    return make.a_node(cluster, "gpu-1", gpus=4)


@pytest.fixture
def ada():
    return make.a_user("ada", role="admin")


def sentences(node, ada, **span) -> list[str]:
    return [line.sentence for line in lines_of(node, ada, Span(**span))]


def test_each_entry_of_a_case_is_one_line(node, ada):
    case = make.a_case(node)
    for hour, what in enumerate(("opened", "drained")):
        case.record(what, actor="ada", reason=f"{what} before.", now=NOON + timedelta(hours=hour))
    DomainEvent.objects.filter(at=NOON).delete()  # it had none
    DomainEvent.objects.update(node_uid="", node_name="")
    case.record("in-repair", actor="ada", reason="Since then.", now=NOON + timedelta(hours=2))

    assert sentences(node, ada) == [
        f"Case {case.pk}: in repair. Since then.",
        f"Case {case.pk}: drained. drained before.",
        f"Case {case.pk}: opened. opened before.",
    ]


def test_each_act_is_one_line_also_of_a_departed_node(cluster, node, ada):
    row = make.a_finding(cluster, node=node)
    make.a_node_event(node, "It is wrong.", kind="finding", detail={"finding": row.pk, "rule": "x"})
    acts.acknowledge(row, actor="ada", reason="Mine.", now=NOON + timedelta(hours=1))
    DomainEvent.objects.update(node_uid="", node_name="")
    acts.unassign(row, actor="ada", reason="Yours.", now=NOON + timedelta(hours=2))
    expected = ["Unassigned: It is wrong.", "Acknowledge: It is wrong. Mine.", "It is wrong."]
    there = sentences(node, ada)
    gone = GoneNode.objects.create(cluster=cluster, node_id=node.pk, uid=node.uid, name=node.name, gone_at=NOON, was={})
    node.delete()

    assert there == sentences(gone, ada)
    assert [line.split(":")[0] for line in there] == [line.split(":")[0] for line in expected]


def test_a_gpu_has_the_lines_of_its_findings_and_of_its_node(cluster, node, ada):
    for subject in ("GPU 3 of gpu-1", "GPU 2 of gpu-1", "node gpu-1"):
        row = make.a_finding(cluster, subject, node=node)
        make.a_node_event(node, f"Opened: {subject}.", kind="finding", detail={"finding": row.pk, "rule": "x"})

    assert sentences(node, ada, gpu=node.gpus.get(index=3)) == ["Opened: node gpu-1.", "Opened: GPU 3 of gpu-1."]
