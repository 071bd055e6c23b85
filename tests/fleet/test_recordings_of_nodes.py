"""What the product answers about nodes in the words of many tools, each as somebody posted them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet import findings
from fleet.allocation.tally import tallies
from fleet.models import Finding, Node
from fleet.observe.overdue import note_overdue
from fleet.queries import lines_of
from fleet.web.states import state_of
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, units, unread
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
CLUSTERS = (Recorded("nodes"),)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def said_of(name: str) -> str:
    return page(visiting(make.a_user(role="viewer")), f"/nodes/{seen(name).pk}").text


def test_a_node_whose_mig_layout_is_changed_says_to_which_and_misses_nothing():
    node = seen("k3s-a100-pending")
    state = state_of(node)

    assert (state.word, node.gpus_missing, node.missing_in_words) == ("reconfiguring", 0, "")
    assert state.because.startswith("The MIG manager is changing its MIG layout to all-1g.5gb, seen since 20")
    assert state.since == node.mig_changing_since
    assert [line.missing for line in lines_of(node)] == [0]
    assert "4 GPUs away while the MIG manager changes the layout" in said_of("k3s-a100-pending")
    assert "Which of them" not in said_of("k3s-a100-pending")


def test_a_node_that_reboots_for_its_layout_is_not_called_silent():
    state = state_of(seen("dgx-rebooting"))

    assert state.word == "reconfiguring"
    assert state.because.startswith("The MIG manager reboots the node to change its MIG layout to all-balanced")


def test_what_is_being_cut_anew_is_in_no_sum_of_what_is_missing():
    nodes = Node.objects.filter(name__in=["k3s-a100-pending", "dgx-rebooting"])

    (tally,) = tallies(nodes, by="cluster").values()

    assert (tally.gpus_expected, tally.gpus_missing) == (12, 0)


def test_a_layout_that_is_never_done_is_found_and_its_gpus_are_missing_again():
    node = seen("k3s-a100-pending")
    late = node.mig_changing_since + timedelta(minutes=21)
    turn = node.cluster.observer.turn

    assert note_overdue(node.cluster_id, turn=turn, now=node.mig_changing_since + timedelta(minutes=19)) == 0
    assert note_overdue(node.cluster_id, turn=turn, now=late) == 2
    node.cluster.bookmarks.update(heard_at=late)
    findings.look(node.cluster, now=late)

    found = Finding.objects.get(rule="mig-change-stuck", node=node)
    assert found.opened_at == late
    assert (
        "to all-1g.5gb for 21 minutes; mig.config.state is still pending. Meanwhile it lacks 4 GPUs." in found.sentence
    )
    assert seen("k3s-a100-pending").gpus_missing == 4
    assert state_of(seen("k3s-a100-pending")).word == "4 of 4 GPUs missing"


def test_the_gpu_that_amds_exporter_labels_is_named():
    state = state_of(seen("mi300x-ecc"))

    assert state.word == "2 of 8 GPUs missing"
    assert state.because == (
        "GPU 3: AMD's metrics exporter calls it unhealthy. GPU 11: AMD's metrics exporter calls it unhealthy."
    )
    assert "nothing that is read here names it" not in said_of("mi300x-ecc")


def test_a_finding_names_the_gpu_as_well():
    node = seen("mi300x-ecc")

    findings.look(node.cluster, now=timezone.now())

    assert "GPU 3: AMD's metrics exporter" in Finding.objects.get(node=node).sentence


def test_a_board_that_is_bound_to_vfio_is_one_for_virtual_machines():
    node = seen("vm-host")

    assert (units(node), node.is_gpu_node, node.gpu_vendor) == ((None, 0, 0, 1), True, "nvidia")
    assert [(line.name, line.kind, line.requested) for line in lines_of(node)] == [
        ("gpu.nvidia.com/vfio", "virtual", 1)
    ]
    assert "Devices for virtual machines 1 of 1 taken" in said_of("vm-host")
    assert "Now nobody" not in said_of("vm-host")
    assert "still to publish" not in said_of("vm-host")


@pytest.mark.parametrize(("name", "mib"), [("ocp410-t4", 15_360), ("gke-a100-bytes", 40_536)])
def test_memory_that_is_labelled_in_bytes_is_told_in_mib(name, mib):
    assert seen(name).gpu_memory_mib == mib


def test_slices_that_no_label_explains_are_cut_under_mixed():
    node = seen("a100-no-labels")

    assert (units(node), node.mig_strategy) == ((0, 3, 0, 1), "mixed")


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
