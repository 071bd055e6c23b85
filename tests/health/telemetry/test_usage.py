"""GPU-hours of a node by use: every second once, shared GPUs charged once, silence never idle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.telemetry.usage import NOBODY, GpuUse, HourHolder, HourOfNode, MeasuredDevice, node_hours

TRAIN, CHAT = ("ml", "Job/train"), ("web", "Deployment/chat")
BUSY, QUIET, SILENT = MeasuredDevice(3600, 0.6), MeasuredDevice(3600, 0.01), MeasuredDevice(1800, 0.6)


def holder(owner=TRAIN, *boards: int, since: float = 0, until: float = 3600, **given) -> HourHolder:
    return HourHolder(owner, since, until, **{"gpus": len(boards), "boards": boards} | given)


def hours(gpus: int, *holders: HourHolder, **given):
    found: dict = {}
    for (owner, use), number in node_hours(HourOfNode(gpus, holders=holders, **given)).by_use.items():
        found.setdefault(owner, {})[use] = number
    return found


def test_allocated_hours_are_used_idle_or_not_measured():
    devices = {(0, ""): BUSY, (1, ""): QUIET, (2, ""): SILENT}

    found = hours(4, holder(TRAIN, 0, 1, 2), devices=devices)

    assert found == {
        TRAIN: {GpuUse.USED: 1, GpuUse.IDLE: 1, GpuUse.UNMEASURED: 1},
        NOBODY: {GpuUse.UNALLOCATED: 1},
    }


def test_a_short_allocation_is_judged_by_its_own_time():
    devices = {(0, ""): MeasuredDevice(3600, 0.04)}

    assert hours(1, holder(TRAIN, 0, until=360), devices=devices)[TRAIN] == {GpuUse.USED: pytest.approx(0.1)}


def test_pods_that_share_a_gpu_share_its_time():
    both = [holder(owner, 0, is_shared=True) for owner in (TRAIN, CHAT)]

    assert hours(1, *both, devices={(0, ""): BUSY}) == {TRAIN: {GpuUse.USED: 0.5}, CHAT: {GpuUse.USED: 0.5}}


def test_a_slice_is_charged_by_its_part_and_judged_by_its_own_load():
    cut = [
        holder(TRAIN, 0, gpus=3 / 7, slices=[(0, "1")]),
        holder(CHAT, 0, gpus=1 / 7, slices=[(0, "7")]),
    ]

    found = hours(1, *cut, devices={(0, "1"): BUSY, (0, "7"): QUIET})

    assert found[TRAIN] == {GpuUse.USED: pytest.approx(3 / 7)}
    assert found[CHAT] == {GpuUse.IDLE: pytest.approx(1 / 7)}
    assert found[NOBODY] == {GpuUse.UNALLOCATED: pytest.approx(3 / 7)}


def test_gpus_that_nothing_names_are_measured_only_if_all_of_the_node_are_alike():
    pod = holder(TRAIN, gpus=2)

    assert hours(2, pod, devices={(0, ""): BUSY, (1, ""): QUIET}) == {TRAIN: {GpuUse.UNMEASURED: 2}}
    assert hours(2, pod, devices={(0, ""): QUIET, (1, ""): QUIET}) == {TRAIN: {GpuUse.IDLE: 2}}
    assert hours(2, pod, devices={(0, ""): QUIET}) == {TRAIN: {GpuUse.UNMEASURED: 2}}


def test_free_gpus_of_a_cordoned_node_and_unhealthy_ones_are_quarantined_until_somebody_changes_the_node():
    assert hours(2, holder(TRAIN, 0), is_in_service=False)[NOBODY] == {GpuUse.QUARANTINED: 1}
    assert hours(4, holder(TRAIN, 0), unhealthy=1)[NOBODY] == {GpuUse.QUARANTINED: 1, GpuUse.UNALLOCATED: 2}
    assert hours(2, is_in_service=False, is_in_repair=True)[NOBODY] == {GpuUse.IN_REPAIR: 2}
    assert hours(4, is_in_repair=True, unhealthy=1)[NOBODY] == {GpuUse.IN_REPAIR: 1, GpuUse.UNALLOCATED: 3}


def under_used(*holders: HourHolder, **given) -> dict:
    return dict(node_hours(HourOfNode(4, holders=holders, **given)).under_used)


def test_used_hours_that_a_well_used_gpu_would_not_have_needed():
    fifth, half, idle = MeasuredDevice(3600, 0.2), MeasuredDevice(3600, 0.5), MeasuredDevice(3600, 0.01)
    devices = {(0, ""): fifth, (1, ""): half, (2, ""): idle}
    cut = [holder(CHAT, 0, gpus=2 / 7, slices=[(0, "1"), (0, "2")])]

    assert under_used(holder(TRAIN, 0, 1, 2), devices=devices) == {TRAIN: pytest.approx(0.6)}, "idle hours are apart"
    assert under_used(holder(TRAIN, gpus=4), devices={(board, ""): fifth for board in range(4)}) == {
        TRAIN: pytest.approx(2.4)
    }
    assert under_used(*cut, devices={(0, "1"): fifth, (0, "2"): idle}) == {CHAT: pytest.approx(2 / 7 * 0.8)}
    assert under_used(holder(TRAIN, 0)) == {}, "without telemetry nothing is estimated"


def test_what_nobody_saw_is_unknown():
    assert hours(8, is_seen=False) == {NOBODY: {GpuUse.UNKNOWN: 8}}
    assert hours(8, holder(TRAIN, gpus=2, is_seen=False))[NOBODY] == {GpuUse.UNKNOWN: 2, GpuUse.UNALLOCATED: 6}


def test_a_node_of_half_an_hour_has_half_of_its_gpu_hours():
    assert hours(8, present_s=1800) == {NOBODY: {GpuUse.UNALLOCATED: 4}}


seconds = st.tuples(st.integers(0, 3600), st.integers(0, 3600)).map(sorted)
holders = st.builds(
    lambda owner, span, boards, gpus, shared, seen: HourHolder(
        (owner, "Job/x"), *span, gpus=gpus, is_shared=shared, boards=sorted(boards), is_seen=seen
    ),
    st.sampled_from("abc"), seconds, st.sets(st.integers(0, 7)), st.floats(0, 10), st.booleans(), st.booleans(),
)  # fmt: skip
measured = st.builds(MeasuredDevice, st.floats(0, 3600), st.none() | st.floats(0, 1))
nodes = st.builds(
    HourOfNode, gpus=st.just(8), is_in_service=st.booleans(), is_in_repair=st.booleans(),
    unhealthy=st.integers(0, 9), is_seen=st.booleans(),
    holders=st.lists(holders, max_size=12),
    devices=st.dictionaries(st.tuples(st.integers(0, 7), st.sampled_from(["", "1", "2"])), measured),
)  # fmt: skip


@given(nodes)
def test_the_parts_are_the_whole(node):
    found = node_hours(node)
    parts = found.by_use.values()

    assert sum(parts) == pytest.approx(8)
    assert all(amount >= 0 for amount in parts)
    for owner, spare in found.under_used.items():
        assert 0 <= spare <= found.by_use.get((owner, GpuUse.USED), 0) + 1e-9
