"""Pods that a DCGM exporter names: on which board, since when, and what is believed instead."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.allocation.allocations import AllocationSource
from fleet.allocation.exporter_status import exporter_note_of, jobs_in_words
from fleet.allocation.gpu_holders import allocated_gpus, allocations_on
from fleet.models import Pod, ResourceClaim, ResourceSlice
from tests.make import NOON, a_cluster, a_device_told, a_node, a_pod, a_reading, a_user, an_exporter_round
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


def allocated(node):
    return allocations_on([node], now=NOON)[node.pk]


def who(node) -> list[list[str]]:
    return [[one.pod.name for one in board.allocations] for board in allocated(node).boards]


def said(node) -> str:
    return exporter_note_of(node, allocated(node), an_exporter_round(node.cluster))


def by_claim(node, pod, device: str, uuid: str) -> None:
    ResourceSlice.objects.create(
        cluster=node.cluster, uid=f"slice-{device}", name="s", changed_at=NOON, driver="gpu.nvidia.com", pool=node.name,
        node_name=node.name, devices=[{"name": device, "type": "gpu", "uuid": uuid}],
    )  # fmt: skip
    ResourceClaim.objects.create(
        cluster=node.cluster, uid=f"claim-{device}", namespace=pod.namespace, name=device, created_at=NOON,
        changed_at=NOON,
        allocated=[{"request": "gpu", "driver": "gpu.nvidia.com", "pool": node.name, "device": device, "admin": False}],
    )  # fmt: skip
    Pod.objects.filter(pk=pod.pk).update(claims=[device])


def test_a_gpu_that_nothing_else_names_is_held_by_the_pod_in_its_labels():
    node = a_node(a_cluster(), gpus=3)
    pod = a_pod(node, "train", gpus=2)
    a_reading(node, a_device_told(0), a_device_told(1, pod), a_device_told(2, pod))

    found = allocated(node)

    assert who(node) == [[], ["train"], ["train"]]
    assert [(board.index, board.uuid) for board in found.boards] == [(0, "GPU-0"), (1, "GPU-1"), (2, "GPU-2")]
    assert found.unplaced == ()
    allocation = found.boards[1].allocations[0]
    assert (allocation.source, allocation.resource, allocation.seen_at, allocation.is_current) == (
        AllocationSource.METRICS,
        GPU,
        NOON,
        True,
    )


def test_a_gpu_beside_is_free_once_all_are_placed():
    node = a_node(a_cluster(), gpus=2)
    a_reading(node, a_device_told(0), a_device_told(1, a_pod(node, "train")))

    free, taken = allocated_gpus(list(node.gpus.select_related("node")), now=NOON)

    assert (free.allocations, free.uuid) == ((), "GPU-0")
    assert [one.pod.name for one in taken.allocations] == ["train"]


def test_after_two_minutes_it_was_last_seen_there():
    node = a_node(a_cluster(), gpus=1)
    read_at = NOON - timedelta(minutes=2, seconds=1)
    a_reading(node, a_device_told(0, a_pod(node, "train")), read_at=read_at, refused="No pod of it is seen.")

    allocation = allocated(node).boards[0].allocations[0]

    assert (allocation.is_current, allocation.seen_at) == (False, read_at)
    assert "was last read at 2026-11-21 11:57:59 UTC. Its values are from that time. No pod of it" in said(node)


@pytest.mark.parametrize("change", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"uid": "of the one after it"}])
def test_a_pod_that_is_done_or_gone_has_nothing(change):
    node = a_node(a_cluster(), gpus=2)
    pod = a_pod(node, "train")
    a_reading(node, a_device_told(0, pod))
    Pod.objects.filter(pk=pod.pk).update(**change)

    assert who(node) == [[], []]


def test_slices_are_allocated_on_the_board_they_are_cut_from():
    mig = "nvidia.com/mig-1g.10gb"
    node = a_node(a_cluster(), gpus=1)
    pods = [a_pod(node, f"small-{number}", gpus=0, resources={mig: 1}) for number in range(2)]
    slices = [a_device_told(0, pod, gi_id=str(7 + n), profile="1g.10gb") for n, pod in enumerate(pods)]
    a_reading(node, *slices)

    (board,) = allocated(node).boards

    assert [(one.pod.name, one.profile, one.device) for one in board.allocations] == [
        ("small-0", "1g.10gb", "7"),
        ("small-1", "1g.10gb", "8"),
    ]


def test_of_pods_that_share_a_gpu_one_is_named_and_the_others_are_counted():
    node = a_node(a_cluster(), gpus=1, layout="gpu=whole/time-slicing*4")
    named, other = a_pod(node, "infer-a"), a_pod(node, "infer-b")
    a_reading(node, a_device_told(0, named))

    found = allocated(node)

    assert who(node) == [["infer-a"]]
    assert [(one.pod.name, one.number) for one in found.unplaced] == [("infer-b", 1)]
    assert found.of(node.gpus.get()).may_have_more
    assert "names at most one of the pods that share a GPU" in said(node)
    assert other.pk != named.pk


def test_with_virtual_gpus_all_who_share_one_are_on_it():
    node = a_node(a_cluster(), gpus=1, layout="gpu=whole/time-slicing*4")
    pods = [a_pod(node, f"infer-{name}") for name in "ab"]
    a_reading(node, a_device_told(0, *pods))

    assert who(node) == [["infer-a", "infer-b"]]
    assert not allocated(node).of(node.gpus.get()).may_have_more
    assert said(node) == ""


def test_a_claim_wins_and_the_disagreement_is_told():
    node = a_node(a_cluster(), gpus=2)
    node.gpus.filter(index=0).update(uuid="GPU-0")
    pod = a_pod(node, "train", gpus=0)
    by_claim(node, pod, "gpu-0", "GPU-0")
    a_reading(node, a_device_told(0), a_device_told(1, pod))

    found = allocated(node)

    assert who(node) == [["train"], []]
    assert found.disagreements == (
        "The DCGM exporter names team-a/train on GPU-1, but its claim names GPU-0. The exporter's name is ignored.",
    )


def test_a_claim_keeps_another_pod_off_its_gpu():
    node = a_node(a_cluster(), gpus=1)
    node.gpus.update(uuid="GPU-0")
    by_claim(node, a_pod(node, "claimed", gpus=0), "gpu-0", "GPU-0")
    a_reading(node, a_device_told(0, a_pod(node, "named")))

    found = allocated(node)

    assert who(node) == [["claimed"]]
    assert "names team-a/named on GPU-0; its claim reports that team-a/claimed has it" in found.disagreements[0]
    assert [one.pod.name for one in found.unplaced] == ["named"]


def test_the_kubelet_wins_and_what_it_confirms_is_told_once():
    node = a_node(a_cluster(), gpus=2)
    pod = a_pod(node, "train", gpus=2, devices={GPU: ["GPU-0"]})
    a_reading(node, a_device_told(0, pod), a_device_told(1, pod))

    found = allocated(node)

    assert [[one.source for one in board.allocations] for board in found.boards] == [
        [AllocationSource.KUBELET],
        [AllocationSource.METRICS],
    ]
    assert found.disagreements == ()


def test_more_devices_than_a_pod_asks_for_are_believed_of_none():
    node = a_node(a_cluster(), gpus=2)
    pod = a_pod(node, "train", gpus=1)
    a_reading(node, a_device_told(0, pod), a_device_told(1, pod))

    found = allocated(node)

    assert who(node) == [[], []]
    assert "on 2 devices, but the pod requests 1 of nvidia.com/gpu" in found.disagreements[0]
    assert [one.number for one in found.unplaced] == [1]


def test_a_device_of_another_kind_than_asked_for_is_not_believed():
    node = a_node(a_cluster(), gpus=1)
    a_reading(node, a_device_told(0, a_pod(node, "train"), gi_id="7", profile="1g.10gb"))

    assert "the pod requests no such device" in allocated(node).disagreements[0]


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        ([a_device_told(0)], "The DCGM exporter names no pod"),
        ([], "answers and names no GPU"),
    ],
)
def test_an_exporter_that_names_nobody_is_told(devices, sentence):
    node = a_node(a_cluster(), gpus=2)
    a_pod(node, "train")
    a_reading(node, *devices)

    assert sentence in said(node)


def a_node_of_which_one_pod_is_not_named(missing: int = 0, **given):
    """Of its four GPUs the exporter names so many fewer."""
    node = a_node(a_cluster(), gpus=4, gpu_allocatable=4 - missing)
    named, _ = a_pod(node, "named"), a_pod(node, "unnamed", **given)
    a_reading(node, a_device_told(0, named), *(a_device_told(at) for at in range(1, 4 - missing)))
    return node


def test_a_pod_that_is_new_is_named_within_a_minute():
    node = a_node_of_which_one_pod_is_not_named(started_at=NOON - timedelta(seconds=40))

    assert said(node) == "Its DCGM exporter does not name these: a new pod is named within a minute."


def test_a_pod_that_waited_for_its_node_is_new_when_that_took_it():
    node = a_node_of_which_one_pod_is_not_named(created_at=NOON - timedelta(hours=3), started_at=NOON)

    assert "within a minute" in said(node)


def test_of_a_pod_that_has_run_for_long_it_says_only_that_nothing_names_it():
    assert said(a_node_of_which_one_pod_is_not_named()) == "Its DCGM exporter does not name these."


@pytest.mark.parametrize(
    ("missing", "gpus", "sentence"),
    [
        (1, 1, "these: probably it is the GPU that no source reports any more."),
        (2, 2, "these: probably they are among the 2 GPUs that no source reports any more."),
        (1, 2, "does not name these."),
    ],
)
def test_what_is_not_named_is_likely_on_the_gpu_that_nothing_reports_any_more(missing, gpus, sentence):
    node = a_node_of_which_one_pod_is_not_named(missing, gpus=gpus)

    assert sentence in said(node)


def test_an_exporter_that_is_not_allowed_or_silent_is_told_with_since_when():
    node = a_node(a_cluster(), gpus=2)
    a_pod(node, "train")
    a_reading(node, read_at=None, refused="It may not be asked: …", refused_since=NOON - timedelta(hours=1))

    assert said(node) == "Its DCGM exporter was never read. It may not be asked: … Since 2026-11-21 11:00:00 UTC."


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("too-many", "300 exporters are too many"),
        ("none", "No pod of a DCGM exporter is seen in this cluster"),
        ("asked", "No pod of a DCGM exporter is seen on this node"),
    ],
)
def test_a_node_whose_exporter_was_never_asked_says_why(state, sentence):
    node = a_node(a_cluster(), gpus=2)
    a_pod(node, "train")
    asked = an_exporter_round(node.cluster, state=state, message="300 exporters are too many …")

    assert sentence in exporter_note_of(node, allocated(node), asked)


def test_where_everything_is_known_nothing_is_said():
    node = a_node(a_cluster(), gpus=1)

    assert said(node) == ""


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        (["4711"], "Job 4711 of a batch system runs on GPU 1, as its DCGM exporter says (hpc_job)."),
        (["1", "2"], "Jobs 1, 2 of a batch system run on GPU 1, as its DCGM exporter says (hpc_job)."),
    ],
)
def test_jobs_that_kubernetes_knows_nothing_of_are_told_with_what_to_do(jobs, words):
    node = a_node(a_cluster(), gpus=2)
    a_reading(node, a_device_told(0), a_device_told(1) | {"jobs": jobs})

    (sentence,) = jobs_in_words(allocated(node))

    assert sentence.startswith(words)
    assert "taint the node" in sentence


def test_jobs_that_were_seen_long_ago_are_none():
    node = a_node(a_cluster(), gpus=1)
    a_reading(node, a_device_told(0) | {"jobs": ["4711"]}, read_at=NOON - timedelta(hours=1))

    assert jobs_in_words(allocated(node)) == []


def test_the_page_of_a_node_tells_of_such_jobs():
    node = a_node(a_cluster(), gpus=1)
    a_reading(node, a_device_told(0) | {"jobs": ["4711"]}, read_at=timezone.now())

    assert "Job 4711 of a batch system runs on GPU 0" in page(visiting(a_user(role="viewer")), f"/nodes/{node.pk}").text
