"""The cards of a cluster's stack."""

import pytest

from fleet.cluster_stack import config_cards, dra_card, operand_lines, quota_card
from fleet.models import DeviceClass, LimitRange, Node, OperatorConfig, ResourceClaim, ResourceQuota, ResourceSlice
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


def a_config(cluster, purpose="sharing", **entries):
    return OperatorConfig.objects.create(
        cluster=cluster, uid=f"{purpose}-uid", namespace="gpu-operator", name=f"{purpose}-config", changed_at=NOON,
        purpose=purpose, entries=entries,
    )  # fmt: skip


def cards(cluster):
    make.counted()
    return config_cards(cluster.pk, list(cluster.driver_objects.all()))


def test_counts_the_nodes_that_pick_each_entry_and_those_that_pick_none():
    cluster = make.a_cluster()
    a_config(cluster, shared="version: v1", plain="version: v1")
    make.a_node(cluster, plugin_config="shared")
    make.a_node(cluster, plugin_config="shared")
    make.a_node(cluster)

    (card,) = cards(cluster)

    assert [(line.name, line.nodes) for line in card.lines] == [("shared", 2), ("plain", 0)]
    assert card.unpicked == 1


def test_an_entry_that_nodes_pick_and_nobody_wrote_is_named():
    cluster = make.a_cluster()
    a_config(cluster, "mig", **{"all-disabled": "- devices: all"})
    make.a_node(cluster, mig_config="all-1g.10gb")

    (card,) = cards(cluster)

    assert [(line.name, line.is_missing) for line in card.lines] == [("all-1g.10gb", True), ("all-disabled", False)]


def test_without_the_config_map_nobody_says_that_an_entry_is_missing():
    cluster = make.a_cluster()
    make.a_node(cluster, mig_config="all-1g.10gb")

    (card,) = cards(cluster)

    assert (card.config, [line.is_missing for line in card.lines]) == (None, [False])


def test_a_cluster_that_neither_shares_nor_cuts_has_no_card():
    cluster = make.a_cluster()
    make.a_node(cluster)

    assert cards(cluster) == []


def test_layouts_that_the_operator_made_and_no_node_picks_have_no_card():
    cluster = make.a_cluster()
    make.a_node(cluster)
    a_config(cluster, "mig", **{"all-disabled": "- devices: all"})
    OperatorConfig.objects.update(name="default-mig-parted-config")

    before = cards(cluster)
    Node.objects.update(mig_config="all-disabled")

    assert (before, [card.title for card in cards(cluster)]) == ([], ["MIG"])


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"desired": 4, "ready": 4, "updated": 4}, "rolled out"),
        ({"desired": 4, "ready": 3, "updated": 4}, "1 not ready"),
        ({"desired": 4, "ready": 4, "updated": 1}, "3 still with an older template"),
        ({"desired": 0}, "no node should run it"),
        (
            {"desired": 4, "generation": 2, "observed_generation": 1},
            "its controller has not processed the newest template yet",
        ),
    ],
)
def test_how_far_an_operand_has_rolled_out(given, word):
    (line,) = operand_lines([make.an_operand(make.a_cluster(), **given)], now=make.NOON)

    assert line.word.startswith(word)


def test_claims_that_wait_are_told_from_those_that_were_given_devices():
    cluster = make.a_cluster()
    for number, allocated in enumerate([[], [{"device": "gpu-0"}], [{"device": "gpu-1"}]]):
        ResourceClaim.objects.create(
            cluster=cluster, uid=str(number), namespace="a", name=str(number), created_at=NOON, changed_at=NOON,
            allocated=allocated,
        )  # fmt: skip
    ResourceSlice.objects.create(cluster=cluster, uid="s", name="s", changed_at=NOON, driver="gpu.nvidia.com",
                                 pool="n", pool_slices=2, node_name="n")  # fmt: skip
    DeviceClass.objects.create(cluster=cluster, uid="c", name="gpu.nvidia.com", changed_at=NOON, selectors=["true"])

    card = dra_card(cluster.pk)

    assert (card.claims, card.allocated, card.pending) == (3, 2, 1)
    assert card.drivers == [{"driver": "gpu.nvidia.com", "slices": 1, "nodes": 1, "incomplete_pools": 1}]
    assert not dra_card(make.a_cluster().pk)


def test_only_quotas_and_limits_that_bound_gpus_are_shown_the_full_ones_first():
    cluster = make.a_cluster()

    def a_quota(name, hard, used):
        ResourceQuota.objects.create(
            cluster=cluster, uid=name, namespace=name, name="q", changed_at=NOON, hard=hard, used=used
        )

    a_quota("a", {"requests.nvidia.com/gpu": "64", "requests.cpu": "4"}, {"requests.nvidia.com/gpu": "8"})
    a_quota("b", {"requests.nvidia.com/mig-1g.10gb": "2"}, {"requests.nvidia.com/mig-1g.10gb": "2"})
    a_quota("c", {"requests.cpu": "4"}, {"requests.cpu": "4"})
    LimitRange.objects.create(
        cluster=cluster, uid="l", namespace="a", name="l", changed_at=NOON,
        limits=[{"type": "Container", "max": {"nvidia.com/gpu": "8", "cpu": "4"}}],
    )  # fmt: skip

    card = quota_card(cluster.pk)

    assert [(line.namespace, line.is_full) for line in card.quotas] == [("b", True), ("a", False)]
    assert [text for _, text in card.limits] == ["Container max nvidia.com/gpu=8"]
