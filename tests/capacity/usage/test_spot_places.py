"""The clusters with spot nodes, and the pools that consist of them."""

import pytest

from capacity.usage.spot_places import spot_places
from fleet.observer.mirror.rows.node import capacity_type
from tests import make

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
SPOT = {"eks.amazonaws.com/capacityType": "SPOT"}


def test_a_cluster_has_the_label_of_its_spot_nodes_and_a_spot_pool_needs_no_advice():
    east, west = make.a_cluster("east"), make.a_cluster("west")
    for name, labels in (("spot", SPOT), ("mixed", SPOT), ("mixed", {}), ("plain", {})):
        pool = east.pools.filter(name=name).first() or make.a_pool(east, name)
        make.a_node(east, f"{name}-{len(labels)}", pool=pool, labels=labels, capacity_type=capacity_type(labels))
    make.a_node(west, "w", pool=make.a_pool(west, "plain"))

    found = spot_places(make.a_user("bob", role="viewer"))

    label = "eks.amazonaws.com/capacityType=SPOT"
    assert [found.label_for("east", pools) for pools in ("plain", "mixed", "spot", "plain, spot")] == [
        label, label, "", label,
    ]  # fmt: skip
    assert found.label_for("west", "plain") == ""
    assert spot_places(make.a_user("eve")).label_for("east", "plain") == ""
