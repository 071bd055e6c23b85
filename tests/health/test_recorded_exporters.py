"""What is found of GPUs whose exporters answer as somebody's did: texts of /metrics, each with its source."""

from datetime import timedelta
from pathlib import Path

import pytest

from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Bookmark, ExporterRound, ExportersState, Node, Observer
from health.evaluation import evaluation_round
from health.exporters.requests import ExporterAnswer
from health.exporters.storage import Keeper
from health.models import Finding
from health.sources import snapshots
from health.sources.node_telemetry import telemetry_of
from health.telemetry.exporter import read_devices
from health.telemetry.exposition import read_node
from tests import make
from tests.health.exporters.reporting import hear_exporters
from tests.make import NOON
from tests.reports import causes, steps

pytestmark = pytest.mark.django_db
RECORDINGS = Path(__file__).parent / "telemetry" / "recordings"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def hear(redis):
    """Play a recording of a node's exporter, for as many minutes as are asked for; what is open then, by subject."""
    cluster = make.a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=30))

    def play(recording: str, node: str, *, minutes: int = 1, vendor: str = "nvidia") -> dict[str, Finding]:
        make.a_node(cluster, node, gpu_vendor=vendor)
        text = (RECORDINGS / f"{recording}.prom").read_text()
        for minute in range(minutes + 1):
            now = NOON + minute * MINUTE
            said = read_node(text, node)
            hear_exporters(cluster, {node: said}, nodes={node}, now=now.timestamp())
            Bookmark.objects.filter(cluster=cluster).update(last_seen_at=now)
            evaluation_round.evaluate_cluster(cluster, now=now)
        return {finding.subject: finding for finding in Finding.objects.open()}

    yield play
    snapshots.forget(cluster.pk)


def test_every_recording_names_its_source():
    texts = {path.name: path.read_text() for path in RECORDINGS.glob("*.prom")}

    assert [name for name, text in texts.items() if not text.startswith("# Source: ")] == []


def test_a_recovery_action_is_found_under_both_of_its_names(hear):
    found = hear("b200-recovery-action", "b200-1")

    assert {subject: one.rule for subject, one in found.items()} == {
        "GPU 0 of b200-1": "gpu-recovery-action",
        "GPU 1 of b200-1": "gpu-recovery-action",
    }
    assert "recovery action Node Reboot" in found["GPU 0 of b200-1"].title
    assert "recovery action GPU Reset" in found["GPU 1 of b200-1"].title


@pytest.mark.parametrize(
    ("recording", "node", "action", "does"),
    [
        ("h100-79-then-154-os-reboot", "h100-1", "OS Reboot", "Reboot the node"),
        ("rtx-51-then-154-pf-flr", "rtx-1", "PF FLR", "Reset the GPU"),
    ],
)
def test_the_new_texts_of_154_are_found_and_may_hide_an_earlier_xid(hear, recording, node, action, does):
    (found,) = hear(recording, node).values()

    assert found.severity == "critical"
    assert f"Xid 154 (GPU recovery action: {action})" in found.title
    assert does in steps(found)
    assert "It may hide an earlier Xid" in causes(found)


def test_where_xids_are_counted_the_79_before_a_154_is_found(hear):
    (found,) = hear("h100-79-and-154-counted", "h100-1").values()

    assert ": Xid 79" in found.title
    assert (found.severity, set(found.facts["others"])) == ("critical", {"154"})


def test_a_fabric_that_is_not_ready_is_found_of_each_gpu(hear):
    found = hear("b200-fabric-manager-failed", "b200-2", minutes=11)

    assert {subject: one.severity for subject, one in found.items()} == {
        "GPU 0 of b200-2": "critical",
        "GPU 1 of b200-2": "warning",
        "GPU 2 of b200-2": "critical",
    }
    assert found["GPU 0 of b200-2"].summary == "Its Fabric Manager failed."
    assert "reports unhealthy route" in found["GPU 2 of b200-2"].summary


@pytest.mark.parametrize("layout", ["", "amd.com/gpu=cpx_nps4"], ids=["without its label", "labelled"])
def test_of_two_amd_gpus_one_is_whole_and_idle_and_of_the_other_a_pod_has_a_partition(hear, layout):
    recording = "amd-mi300x-whole-and-cpx"
    hear(recording, "mi300x-1", vendor="amd")
    node = Node.objects.get()
    Node.objects.update(layout=layout)
    make.a_pod(node, "batch-infer-0", namespace="team-a", gpus=1, resources={"amd.com/gpu": 1})
    read = [
        ExporterAnswer(node.name, read_devices((RECORDINGS / f"{recording}.prom").read_text())),
    ]
    epoch = ExporterRound.take(node.cluster_id, now=NOON)
    assert epoch is not None
    Keeper.of(node.cluster, epoch).keep(read, now=NOON)
    ExporterRound.objects.update(state=ExportersState.ASKED, read_at=NOON)

    (its,) = allocations_on([Node.objects.get()], now=NOON).values()
    telemetry = telemetry_of(node, now=NOON + MINUTE)

    held = {board.uuid: [(str(one.pod), one.profile, one.device) for one in board.allocations] for board in its.boards}
    assert held["690000004711"] == [("team-a/batch-infer-0", "cpx_nps4", "0")]
    assert (its.unplaced, its.disagreements) == ((), ())
    busy = {(each.uuid, each.gi_id, each.profile): each.busy.value for each in telemetry.devices if each.is_exported}
    assert busy == {("690000005408", "", ""): 0.0, ("690000004711", "0", "cpx_nps4"): pytest.approx(0.61)}


def test_an_xid_of_a_series_that_names_no_gpu_is_kept_for_its_node(hear):
    found = hear("xid-45-without-a-gpu", "dgx-1", minutes=3)

    of_node = {finding.rule: finding for finding in Finding.objects.open()}
    assert of_node["xid-of-unknown-gpu"].title == "Xid 45 (Preemptive cleanup) of an unknown GPU of dgx-1"
    assert "45 is a consequence" in causes(of_node["xid-of-unknown-gpu"])
    assert "an Xid before this one" in steps(of_node["xid-of-unknown-gpu"])
    assert "answers, but none of its series names a GPU" in of_node["exporter-silent"].summary
    assert set(of_node) == {"xid-of-unknown-gpu", "exporter-silent"}
    assert found
