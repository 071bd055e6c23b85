"""How GPUs are cut and shared, out of labels as gpu-feature-discovery and others really write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.resources import Layout, ResourceKind, Way, layout_of, product_of

GPU = "nvidia.com/gpu"
H100 = "NVIDIA-H100-80GB-HBM3"
PROFILE = "nvidia.com/mig-1g.10gb"


def gfd(name: str = GPU, product: str = H100, *, count: int = 8, replicas: int = 1, how: str | None = "none"):
    labels = {f"{name}.product": product, f"{name}.count": str(count), f"{name}.replicas": str(replicas)}
    return labels | ({} if how is None else {f"{name}.sharing-strategy": how})


WHOLE = Way()


@pytest.mark.parametrize(
    ("labels", "ways"),
    [
        (gfd(), {GPU: WHOLE}),
        (gfd() | {"nvidia.com/mig.strategy": "single"}, {GPU: WHOLE}),  # the operator sets it on every node
        (gfd(product=f"{H100}-SHARED", replicas=4, how="time-slicing"), {GPU: Way("", "time-slicing", 4)}),
        (gfd(product=f"{H100}-SHARED", replicas=4, how="mps"), {GPU: Way("", "mps", 4)}),
        (gfd(product=f"{H100}-SHARED", replicas=4, how=None), {GPU: Way("", "time-slicing", 4)}),  # before MPS
        (gfd(replicas=4, how="time-slicing"), {f"{GPU}.shared": Way("", "time-slicing", 4)}),  # renameByDefault
        (gfd(product=f"{H100}-MIG-1g.10gb", count=56), {GPU: Way("1g.10gb")}),  # single
        (
            gfd(product=f"{H100}-MIG-1g.10gb-SHARED", count=56, replicas=2, how="time-slicing"),
            {GPU: Way("1g.10gb", "time-slicing", 2)},
        ),
        (gfd(product=f"{H100}-MIG-INVALID", count=0, replicas=0), {GPU: Way("invalid")}),
        (
            gfd(replicas=0) | gfd(PROFILE, f"{H100}-MIG-1g.10gb", count=28),
            {GPU: WHOLE, PROFILE: Way("1g.10gb")},
        ),
        (
            gfd() | gfd(PROFILE, f"{H100}-MIG-1g.10gb", count=28, replicas=3, how="mps"),
            {GPU: WHOLE, f"{PROFILE}.shared": Way("1g.10gb", "mps", 3)},
        ),
        ({"nvidia.com/gpu.present": "true"}, {}),  # gpu-feature-discovery is away
    ],
)
def test_labels_tell_what_each_resource_is(labels, ways):
    assert layout_of(labels, {}).ways == ways


@pytest.mark.parametrize(
    ("labels", "capacity", "kind", "replicas"),
    [
        ({}, {"amd.com/gpu": 8}, ResourceKind.WHOLE, None),
        ({"amd.com/compute-memory-partition": "spx_nps1"}, {"amd.com/gpu": 8}, ResourceKind.WHOLE, None),
        ({"amd.com/compute-memory-partition": "cpx_nps4"}, {"amd.com/gpu": 64}, ResourceKind.SLICE, None),
        ({}, {"amd.com/cpx_nps4": 64}, ResourceKind.SLICE, None),
        ({}, {"amd.com/spx_nps1": 8}, ResourceKind.WHOLE, None),
        ({"gpu.intel.com/device.count": "4"}, {"gpu.intel.com/i915": 4}, ResourceKind.WHOLE, None),
        ({"gpu.intel.com/device.count": "4"}, {"gpu.intel.com/i915": 40}, ResourceKind.SHARE, 10),
        ({}, {"gpu.intel.com/xe": 4}, ResourceKind.WHOLE, None),
        ({}, {"habana.ai/gaudi": 8}, ResourceKind.WHOLE, None),
        ({}, {"nvidia.com/gpu": 8}, ResourceKind.WHOLE, None),
        ({}, {"nvidia.com/gpu.shared": 32}, ResourceKind.SHARE, None),
        ({}, {"nvidia.com/mig-3g.40gb": 2}, ResourceKind.SLICE, None),
        ({}, {"nvidia.com/mig-3g.40gb.shared": 8}, ResourceKind.SHARE, None),
        ({}, {"nvidia.com/GA102GL_A10": 2}, ResourceKind.VIRTUAL, None),
        ({}, {"gpu.nvidia.com": 8}, ResourceKind.WHOLE, None),
        ({}, {"gpu.nvidia.com/mig-1g.10gb": 7}, ResourceKind.SLICE, None),
    ],
)
def test_each_vendors_resource_is_what_it_is(labels, capacity, kind, replicas):
    (name,) = capacity

    way = layout_of(labels, capacity).way(name)

    assert (way.kind, way.replicas) == (kind, replicas)


@pytest.mark.parametrize(
    ("labels", "strategy", "sharing"),
    [
        (gfd(), "", ""),
        (gfd(product=f"{H100}-MIG-1g.10gb-SHARED", replicas=2, how="mps"), "single", "mps"),
        (gfd(replicas=0) | gfd(PROFILE, f"{H100}-MIG-1g.10gb"), "mixed", ""),
    ],
)
def test_a_node_is_of_a_strategy_only_where_something_is_cut(labels, strategy, sharing):
    layout = layout_of(labels | {"nvidia.com/mig.strategy": "mixed"}, {})

    assert (layout.mig_strategy, layout.sharing) == (strategy, sharing)


def test_resources_that_are_shared_differently_have_no_number_of_users_in_common():
    labels = gfd(product=f"{H100}-SHARED", replicas=4, how="time-slicing")
    labels |= gfd(PROFILE, f"{H100}-MIG-1g.10gb-SHARED", replicas=2, how="time-slicing")

    assert layout_of(labels, {}).replicas is None


def test_the_managers_order_is_part_of_a_layout_only_where_it_cut_something():
    order = {"nvidia.com/mig.config": "all-disabled"}

    assert str(layout_of(gfd() | order, {})) == "gpu=whole"
    assert str(layout_of(gfd(product=f"{H100}-MIG-1g.10gb") | order, {})) == "gpu=1g.10gb @all-disabled"


ways = st.builds(
    Way,
    profile=st.sampled_from(["", "1g.10gb", "3g.40gb", "1g.10gb.me"]),
    sharing=st.sampled_from(["", "time-slicing", "mps", "shared"]),
).map(lambda way: way if not way.sharing else Way(way.profile, way.sharing, 4))
names = st.sampled_from([GPU, f"{GPU}.shared", PROFILE, "nvidia.com/mig-3g.40gb", "amd.com/gpu", "gpu.intel.com/i915"])


@given(st.dictionaries(names, ways, max_size=4), st.sampled_from(["", "all-balanced"]), st.none() | st.integers(0, 16))
def test_a_layout_is_read_back_as_it_was_written(by_name, config, boards):
    layout = Layout(by_name, config, boards)

    assert Layout.read(str(layout)) == layout


def test_a_layout_too_long_for_its_column_is_still_told_from_others():
    def of(number: int) -> Layout:
        return Layout({f"nvidia.com/mig-{each}g.{each}0gb": Way(f"{each}g.{each}0gb") for each in range(number)})

    assert len(str(of(30))) <= 200
    assert str(of(30)) != str(of(31))
    assert Layout.read(str(of(30))).way("nvidia.com/mig-29g.290gb").kind is ResourceKind.SLICE


@pytest.mark.parametrize("suffix", ["", "-SHARED", "-MIG-1g.10gb", "-MIG-1g.10gb-SHARED", "-MIG-INVALID"])
def test_a_board_is_the_same_product_however_it_is_cut_and_shared(suffix):
    assert product_of(H100 + suffix) == H100
