from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleet.observe.diff import fingerprint, remember
from fleet.observe.rows.node import node_row
from tests.fleet.documents import GPU_LABELS, a_node_seen
from tests.make import NOON

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


def test_the_silence_ends_with_the_label():
    silent = remember(None, node_row(a_node_seen(labels=SILENT)), now=NOON)

    assert remember(silent, node_row(a_node_seen()), now=NOON)["driver_unknown_since"] is None


def test_a_node_without_gpus_has_no_silence():
    row = node_row(a_node_seen(labels={})) | {"is_gpu_node": False}

    assert remember(None, row, now=NOON)["driver_unknown_since"] is None


@given(st.lists(st.none() | st.integers(0, 16), min_size=1, max_size=6))
def test_the_expected_count_is_the_most_that_was_ever_seen(counts):
    old = None
    for count in counts:
        old = remember(old, node_row(a_node_seen()) | {"gpu_capacity": count}, now=NOON)

    assert old["gpu_expected"] == (max((count or 0 for count in counts), default=0) or None)
