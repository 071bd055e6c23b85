import pytest

from gpu.resources import (
    Counts,
    Layout,
    Way,
    count,
    in_words,
    layout_in_words,
    missing_in_words,
    most_by_labels,
    resource_lines,
    vendor_of,
)

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
SHARED = Layout.read("gpu=whole/time-slicing*4")
SINGLE = Layout.read("gpu=1g.10gb")
MIXED = Layout.read("gpu=whole mig-1g.10gb=1g.10gb boards:2")
BLANK = Layout()


@pytest.mark.parametrize(
    ("amounts", "layout", "counts"),
    [
        ({GPU: 8}, BLANK, Counts(8)),
        ({}, BLANK, Counts(None)),
        ({GPU: 0}, BLANK, Counts(0)),
        ({GPU: 32}, SHARED, Counts(None, 0, 32)),
        ({GPU: 56}, SINGLE, Counts(None, 56)),
        ({GPU: 4, SLICE: 28}, BLANK, Counts(4, 28)),
        ({GPU: 4, "amd.com/gpu": 2}, BLANK, Counts(6)),
        ({GPU: 8, "gpu.nvidia.com": 8}, BLANK, Counts(8)),  # both offer the same boards
        ({"nvidia.com/GA102GL_A10": 2}, BLANK, Counts(None)),
        ({GPU: 2, SLICE: 7}, MIXED, Counts(1, 7)),  # its plugin was not restarted since one of two was cut
        ({GPU: 2, SLICE: 8}, MIXED, Counts(0, 8)),
        ({GPU: 1, "nvidia.com/mig-3g.40gb": 2}, MIXED, Counts(1, 2)),
        ({GPU: 2, "nvidia.com/mig-1c.3g.40gb": 6}, MIXED, Counts(1, 6)),
    ],
)
def test_the_three_kinds_are_never_added_up(amounts, layout, counts):
    assert count(amounts, layout) == counts


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("nvidia.com/gpu", "nvidia"),
        ("amd.com/gpu", "amd"),
        ("habana.ai/gaudi", "habana"),
        ("gpu.intel.com/xe", "intel"),
        ("gpu.intel.com/i915_monitoring", None),
        ("gpu.intel.com/millicores", None),
        ("nvidia.com/hostdev", None),
        ("rdma/hca", None),
        ("cpu", None),
        ("nvidia.com/gpu" + "x" * 1000, None),
    ],
)
def test_only_gpus_are_gpu_resources(name, vendor):
    assert vendor_of(name) == vendor


@pytest.mark.parametrize(
    ("expected", "allocatable", "layout", "words"),
    [
        ({GPU: 8}, {GPU: 8}, BLANK, ""),
        ({GPU: 8}, {GPU: 7}, BLANK, "1 GPU"),
        ({GPU: 8}, {}, BLANK, "8 GPUs"),
        ({GPU: 32}, {GPU: 28}, SHARED, "1 GPU (4 of its time-slices)"),
        ({GPU: 32}, {GPU: 0}, SHARED, "8 GPUs (32 of their time-slices)"),
        ({GPU: 32}, {GPU: 29}, SHARED, "3 time-slices"),
        ({GPU: 16}, {GPU: 14}, Layout.read("gpu=whole/mps*2"), "1 GPU (2 of its MPS shares)"),
        ({SLICE: 14}, {SLICE: 12}, BLANK, "2 slices 1g.10gb"),
        ({GPU: 4, SLICE: 7}, {GPU: 3, SLICE: 6}, BLANK, "1 GPU and 1 slice 1g.10gb"),
        (
            {GPU: 4, SLICE: 7, f"{SLICE}.me": 1},
            {GPU: 3, SLICE: 5},
            BLANK,
            "1 GPU, 2 slices 1g.10gb and 1 slice 1g.10gb.me",
        ),
    ],
)
def test_what_is_missing_is_said_in_what_the_node_offers(expected, allocatable, layout, words):
    assert missing_in_words(expected, allocatable, layout) == words


def test_amounts_have_their_unit():
    assert in_words(1, Way()) == "1 GPU"
    assert in_words(3, Way("1g.10gb")) == "3 slices 1g.10gb"
    assert in_words(2, Way("", "mps", 4)) == "2 MPS shares"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "their resource names say"),
        ("gpu=whole", "whole GPUs"),
        ("gpu=whole/mps*4", "MPS shares of whole GPUs, 4 each"),
        ("gpu=whole mig-1g.10gb=1g.10gb mig-3g.40gb=3g.40gb", "slices 1g.10gb and slices 3g.40gb"),
        ("gpu=1g.10gb/time-slicing*2", "time-slices of slices 1g.10gb, 2 each"),
    ],
)
def test_a_layout_can_be_said(text, words):
    assert layout_in_words(text) == words


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        (["gpu.nvidia.com"], "whole GPUs by DRA"),
        (["gpu.nvidia.com/mig-1g.10gb", "gpu.nvidia.com/mig-3g.40gb"], "slices 1g.10gb and slices 3g.40gb by DRA"),
        (["amd.com/gpu"], "whole GPUs"),
        (["nvidia.com/GH100_H100_PCIE"], "devices for virtual machines"),
        ([], "their resource names say"),
    ],
)
def test_the_names_of_resources_say_it_where_no_layout_does(offered, words):
    """DRA writes no label: a node that is cut is no canary for those that are whole."""
    assert layout_in_words("", offered) == words
    assert layout_in_words("gpu=whole", offered) == "whole GPUs"


def test_labels_bound_what_can_be_there():
    labels = {f"{GPU}.count": "8", f"{SLICE}.count": "14"}

    assert most_by_labels(labels, Layout.read("gpu=whole")) == {GPU: 8}
    assert most_by_labels(labels, SHARED) == {GPU: 32}
    assert most_by_labels(labels, Layout.read("gpu=whole/time-slicing*")) == {}


def lines(expected, capacity, allocatable, requested=None, layout=BLANK):
    return resource_lines(expected, capacity, allocatable, requested or {}, layout)


@pytest.mark.parametrize(
    ("expected", "capacity", "allocatable", "requested", "said"),
    [
        (8, 8, 8, 3, []),
        (8, 8, 7, 3, ["1 GPU in capacity, but not allocatable: the device plugin reports it as unhealthy."]),
        (8, 7, 7, 3, ["1 GPU gone from the capacity. A GPU was probably lost before the last boot."]),
        (8, 0, 0, 0, ["8 GPUs missing: the device plugin offers none. It does not run, or finds no GPU."]),
        (8, 8, 0, 0, ["None is allocatable: the device plugin is stopped, or reports every GPU as unhealthy."]),
        (
            8, 8, 7, 8,
            [
                "1 GPU in capacity, but not allocatable: the device plugin reports it as unhealthy.",
                "1 more requested than allocatable: pods still use lost GPUs or the earlier layout.",
            ],
        ),
    ],
)  # fmt: skip
def test_a_difference_is_named(expected, capacity, allocatable, requested, said):
    (line,) = lines({GPU: expected}, {GPU: capacity}, {GPU: allocatable}, {GPU: requested})

    assert line.differences == said


def test_what_a_new_cut_left_over_is_no_alarm():
    slices, left_over = lines({SLICE: 56}, {SLICE: 56, GPU: 8}, {SLICE: 56, GPU: 0})

    assert (slices.differences, left_over.missing) == ([], 0)
    assert "Left over from the earlier partitioning or sharing" in left_over.differences[0]
