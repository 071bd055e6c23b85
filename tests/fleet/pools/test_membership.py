import pytest
from django.core.management import call_command

from fleet.models import Pool
from fleet.pools.membership import belongs
from kube.selectors import parse
from tests.make import NOON, a_cluster, a_node

pytestmark = pytest.mark.sqlite

PRODUCT = "nvidia.com/gpu.product=NVIDIA-H200"


def row(labels: dict[str, str], *, is_silent: bool):
    return {"labels": labels, "driver_unknown_since": NOON if is_silent else None}


@pytest.mark.parametrize(
    ("labels", "is_silent", "is_member", "expected"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-H200"}, False, False, True),
        ({"nvidia.com/gpu.product": "NVIDIA-H100"}, True, True, False),
        ({}, True, True, True),
        ({}, True, False, False),
        ({}, False, True, False),
    ],
)
def test_a_node_stays_while_its_labels_are_away_with_the_driver(labels, is_silent, is_member, expected):
    assert belongs(parse(PRODUCT), row(labels, is_silent=is_silent), is_member=is_member) is expected


@pytest.mark.django_db
def test_a_pool_is_suggested_for_each_product_that_is_there(capsys):
    cluster = a_cluster("north")
    a_node(cluster)
    other = "NVIDIA-A100-SXM4-80GB"
    a_node(cluster, gpu_product=other, labels={"nvidia.com/gpu.product": other})

    call_command("suggest_pools", "north")
    suggested = capsys.readouterr().out
    call_command("suggest_pools", "north", "--create")
    call_command("suggest_pools", "north", "--create")

    assert "--create adds pool a100-sxm4-80gb with selector nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB" in suggested
    assert set(Pool.objects.values_list("name", flat=True)) == {"h200", "a100-sxm4-80gb"}
