from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.observer.mirror.diff import fingerprint, remember
from fleet.observer.mirror.rows.node import node_row
from gpu import labels as keys
from gpu.resources import units_missing
from tests.fleet.documents import GPU_LABELS, a_node_seen, mig_mixed, time_sliced
from tests.make import NOON

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
SILENT = {key: value for key, value in GPU_LABELS.items() if "driver-version" not in key and "gpu.product" not in key}


def test_a_heartbeat_leaves_no_mark():
    before = node_row(a_node_seen(heartbeat="2026-11-21T08:00:00Z", version="7"))
    after = node_row(a_node_seen(heartbeat="2026-11-21T08:00:10Z", version="8"))

    assert fingerprint(before) == fingerprint(after)


def test_anything_we_keep_leaves_a_mark():
    before = node_row(a_node_seen())

    for change in ({"ready": "False"}, {"gpus": 7}, {"spec": {"unschedulable": True}}, {"labels": SILENT}):
        assert fingerprint(node_row(a_node_seen(**change))) != fingerprint(before)


def test_the_driver_and_the_product_are_kept_while_nobody_names_them():
    old = remember(None, node_row(a_node_seen()), now=NOON)

    row = remember(old, node_row(a_node_seen(labels=SILENT)), now=NOON + timedelta(seconds=5))

    assert (row["driver_version"], row["gpu_product"]) == ("580.95.05", "NVIDIA-H100-80GB-HBM3")
    assert row["driver_unknown_since"] == NOON + timedelta(seconds=5)


def test_the_silence_began_when_it_began():
    first = remember(None, node_row(a_node_seen(labels=SILENT)), now=NOON)

    later = remember(first, node_row(a_node_seen(labels=SILENT)), now=NOON + timedelta(minutes=3))

    assert later["driver_unknown_since"] == NOON


def booting(*boot_ids):
    """One look a minute."""
    row = None
    for minutes, boot_id in enumerate(boot_ids):
        seen = node_row(a_node_seen(system={"bootID": boot_id}))
        row = remember(row, seen, now=NOON + timedelta(minutes=minutes))
    return row["boot_id"], row["booted_at"]


def test_a_node_booted_when_its_boot_id_was_seen_to_be_another_one():
    assert booting("a", "a") == ("a", None)
    assert booting("a", "b", "b") == ("b", NOON + timedelta(minutes=1))
    assert booting("a", "", "a") == ("a", None)
    assert booting("", "a") == ("a", None)


def test_the_silence_ends_with_the_label():
    silent = remember(None, node_row(a_node_seen(labels=SILENT)), now=NOON)

    assert remember(silent, node_row(a_node_seen()), now=NOON)["driver_unknown_since"] is None


def test_a_node_without_gpus_has_no_silence():
    row = node_row(a_node_seen(labels={})) | {"is_gpu_node": False}

    assert remember(None, row, now=NOON)["driver_unknown_since"] is None


@given(st.lists(st.none() | st.integers(0, 16), min_size=1, max_size=6))
def test_the_expected_count_is_the_most_that_was_ever_seen(counts):
    plain = {key: value for key, value in GPU_LABELS.items() if not key.endswith("gpu.count")}
    old = None
    for count in counts:
        old = remember(old, node_row(a_node_seen(resources=count and {GPU: count}, labels=plain)), now=NOON)

    assert old["gpu_expected"] == (max((count or 0 for count in counts), default=0) or None)


def test_more_than_the_labels_count_is_not_expected():
    """Time-slices that a node offered until a moment ago, when its labels already say that it shares no more."""
    before = remember(None, node_row(a_node_seen(resources={GPU: 32})), now=NOON)
    row = remember(before, node_row(a_node_seen(resources={GPU: 8})), now=NOON)

    assert before["shares_expected"] == 32  # for as long as they are there
    assert (row["gpu_expected"], row["shares_expected"]) == (8, 0)


def test_a_gpu_that_is_lost_before_boot_is_missed():
    old = remember(None, node_row(a_node_seen()), now=NOON)

    row = remember(old, node_row(a_node_seen(gpus=7, labels=GPU_LABELS | {"nvidia.com/gpu.count": "7"})), now=NOON)

    assert (row["gpu_capacity"], row["gpu_expected"], units_missing(row)) == (7, 8, 1)


@pytest.mark.parametrize("left", [7, 4])
def test_gpus_that_the_labels_count_no_more_are_lost_and_not_shared(left):
    old = remember(None, node_row(a_node_seen()), now=NOON)

    seen = a_node_seen(gpus=8, labels=GPU_LABELS | {"nvidia.com/gpu.count": str(left)})
    row = remember(old, node_row(seen), now=NOON)

    assert (row["gpu_capacity"], row["gpu_expected"], row["sharing"]) == (8, 8, "")


def test_a_plugin_that_begins_to_share_without_its_labeller_offers_shares():
    old = remember(None, node_row(a_node_seen()), now=NOON)

    row = remember(old, node_row(a_node_seen(resources={GPU: 32})), now=NOON)

    assert (row["shares_expected"], row["sharing"], row["sharing_replicas"]) == (32, "shared", 4)
    assert units_missing(row) == 0


def test_a_stopped_plugin_is_an_alarm_and_not_a_node_without_gpus():
    old = remember(None, node_row(a_node_seen()), now=NOON)

    stopped = remember(old, node_row(a_node_seen(gpus=0, labels={})), now=NOON)
    vanished = remember(stopped, node_row(a_node_seen(resources={}, labels={})), now=NOON)

    assert (stopped["is_gpu_node"], stopped["gpu_expected"], units_missing(stopped)) == (True, 8, 8)
    assert (vanished["is_gpu_node"], vanished["gpu_expected"], units_missing(vanished)) == (True, 8, 8)
    assert (vanished["gpu_vendor"], vanished["gpu_capacity"]) == ("nvidia", None)


def test_sharing_that_begins_is_no_alarm_and_no_more_gpus():
    old = remember(None, node_row(a_node_seen()), now=NOON)

    plugin_first = remember(old, node_row(a_node_seen(gpus=32)), now=NOON)
    shared = remember(plugin_first, node_row(a_node_seen(gpus=32, labels=time_sliced(4))), now=NOON)

    assert (shared["gpu_expected"], shared["gpu_capacity"], shared["shares_expected"]) == (None, None, 32)
    assert (shared["sharing"], shared["sharing_replicas"], units_missing(shared)) == ("time-slicing", 4, 0)


def test_sharing_that_ends_is_no_alarm_either():
    old = remember(None, node_row(a_node_seen(gpus=32, labels=time_sliced(4))), now=NOON)

    labels_first = remember(old, node_row(a_node_seen(gpus=32)), now=NOON)
    whole = remember(labels_first, node_row(a_node_seen()), now=NOON)

    assert (whole["gpu_expected"], whole["shares_expected"], units_missing(whole)) == (8, 0, 0)


def test_a_new_mig_layout_starts_afresh_even_while_the_kubelet_remembers_the_old_one():
    """A stopped plugin's capacity stays for five minutes, and nothing of it can be allocated."""
    old = remember(None, node_row(a_node_seen()), now=NOON)
    labels = mig_mixed({"1g.10gb": 56}, config="all-1g.10gb")
    there, to_be_had = {GPU: 8, "nvidia.com/mig-1g.10gb": 56}, {GPU: 0, "nvidia.com/mig-1g.10gb": 56}

    cut = remember(old, node_row(a_node_seen(resources=there, allocatables=to_be_had, labels=labels)), now=NOON)
    later = remember(cut, node_row(a_node_seen(resources=to_be_had, labels=labels)), now=NOON)

    assert later["expected"] == {"nvidia.com/mig-1g.10gb": 56}
    assert (units_missing(cut), units_missing(later)) == (0, 0)
    assert (later["mig_strategy"], later["slices_expected"], later["gpu_expected"]) == ("mixed", 56, None)


def test_a_layout_holds_while_it_is_being_cut_anew():
    old = remember(None, node_row(a_node_seen(resources={SLICE: 56}, labels=mig_mixed({"1g.10gb": 56}))), now=NOON)
    cutting = mig_mixed({}, config="all-disabled", state="pending")

    row = remember(old, node_row(a_node_seen(resources={SLICE: 0}, labels=cutting)), now=NOON)

    assert (row["layout"], row["slices_expected"], units_missing(row)) == (old["layout"], 56, 56)


def test_an_order_that_failed_changes_no_layout():
    old = remember(None, node_row(a_node_seen(resources={SLICE: 56}, labels=mig_mixed({"1g.10gb": 56}))), now=NOON)
    failed = mig_mixed({"1g.10gb": 56}, config="all-disabled", state="failed")

    row = remember(old, node_row(a_node_seen(resources={SLICE: 49}, labels=failed)), now=NOON)

    assert (row["layout"], row["slices_expected"], units_missing(row)) == (old["layout"], 56, 7)


def test_an_order_changes_nothing_until_it_is_carried_out():
    """The order's label is there a moment before the MIG manager says that it begins."""
    there = {"1g.10gb": 16, "3g.40gb": 8}
    amounts = {f"nvidia.com/mig-{profile}": count for profile, count in there.items()}
    cut = remember(None, node_row(a_node_seen(resources=amounts, labels=mig_mixed(there, config="a"))), now=NOON)

    ordered = remember(cut, node_row(a_node_seen(resources=amounts, labels=mig_mixed(there, config="b"))), now=NOON)
    nothing = dict.fromkeys(amounts, 0) | {GPU: 8}
    whole = remember(ordered, node_row(a_node_seen(resources=nothing, labels=mig_mixed({}, config="b"))), now=NOON)

    assert ordered["layout"] == cut["layout"]
    assert (whole["expected"], units_missing(whole)) == ({GPU: 8}, 0)


def test_the_same_profiles_in_other_numbers_are_a_new_layout_where_that_was_ordered():
    labels = mig_mixed({"1g.10gb": 28}, config="half")
    half = remember(None, node_row(a_node_seen(resources={GPU: 4, SLICE: 28}, labels=labels)), now=NOON)

    labels = mig_mixed({"1g.10gb": 56}, config="all")
    ordered = mig_mixed({"1g.10gb": 28}, config="all")
    begun = remember(half, node_row(a_node_seen(resources={GPU: 4, SLICE: 28}, labels=ordered)), now=NOON)
    plugin_first = remember(begun, node_row(a_node_seen(resources={GPU: 0, SLICE: 56}, labels=ordered)), now=NOON)
    row = remember(plugin_first, node_row(a_node_seen(resources={GPU: 0, SLICE: 56}, labels=labels)), now=NOON)

    assert (row["expected"], units_missing(row)) == ({SLICE: 56}, 0)


def test_slices_that_vanish_with_their_board_are_missed():
    both = {"1g.10gb": 49, "3g.40gb": 2}
    had = {SLICE: 49, "nvidia.com/mig-3g.40gb": 2}
    old = remember(None, node_row(a_node_seen(resources=had, labels=mig_mixed(both))), now=NOON)

    fewer = mig_mixed({"1g.10gb": 42}) | {"nvidia.com/gpu.count": "7"}
    row = remember(old, node_row(a_node_seen(resources={SLICE: 42}, labels=fewer)), now=NOON)

    assert (row["slices_expected"], units_missing(row)) == (51, 9)


def test_a_layout_is_remembered_while_its_labels_are_away():
    old = remember(None, node_row(a_node_seen(gpus=32, labels=time_sliced(4))), now=NOON)

    row = remember(old, node_row(a_node_seen(gpus=32, allocatable=0, labels=SILENT)), now=NOON)

    assert (row["sharing"], row["sharing_replicas"], row["layout"]) == ("time-slicing", 4, old["layout"])
    assert (row["gpu_capacity"], row["shares_expected"], row["shares_allocatable"]) == (None, 32, 0)


def test_the_first_labels_of_a_plain_node_change_nothing_that_is_expected():
    unlabelled = remember(None, node_row(a_node_seen(labels={})), now=NOON)

    row = remember(unlabelled, node_row(a_node_seen(gpus=7)), now=NOON)

    assert (row["gpu_expected"], units_missing(row)) == (8, 1)


def test_another_vendors_silence_about_its_driver_means_nothing():
    row = remember(None, node_row(a_node_seen(resources={"amd.com/gpu": 8}, labels={})), now=NOON)

    assert (row["driver_unknown_since"], row["gpu_vendor"], row["gpu_expected"]) == (None, "amd", 8)


def test_the_nvlink_domain_is_kept_while_the_labels_are_away_and_only_then():
    rack = GPU_LABELS | {keys.GPU_CLIQUE: "cluster-1.7"}
    old = remember(None, node_row(a_node_seen(labels=rack)), now=NOON)

    silent = remember(old, node_row(a_node_seen(labels=SILENT)), now=NOON)
    moved = remember(silent, node_row(a_node_seen()), now=NOON)

    assert (silent["nvlink_domain"], moved["nvlink_domain"]) == ("cluster-1.7", "")
