"""A plan whose nodes have no image of its test Job does not start: it would change them and then wait."""

from dataclasses import replace
from typing import Any

import pytest

from fleet.models import Node
from rollouts.commands.preview import preview
from tests.make import NOON, a_pool
from tests.rollouts.make import lines_of
from tests.rollouts.rows import CANARY, REST, a_draft


def blocked(cluster, owner, **test_job: Any) -> list[tuple[str, tuple[str, ...]]]:
    stages = [replace(stage, gate_options=stage.gate_options | {"test_job": test_job}) for stage in (CANARY, REST)]
    blockers = preview(a_draft(cluster, owner, stages=stages), now=NOON).blockers
    return [(check.field, lines_of(check)) for check in blockers if check.code == "no-test-image"]


def test_the_nodes_without_an_image_are_named(cluster, owner, settings):
    settings.TEST_IMAGES = {}
    pool = a_pool(cluster, "a", test_images="vectoradd=registry.example/vectoradd:13")
    pool.nodes.add(Node.objects.get(name="node-0"))

    assert blocked(cluster, owner) == [
        ("stages.0.gate_options.test_job", ("Nodes: node-1",)),
        ("stages.1.gate_options.test_job", ("Nodes: node-2",)),
    ]


@pytest.mark.parametrize("option", [{"image": "x"}, {"advisory": True, "reason": "Known."}])
def test_a_gate_with_its_own_image_or_that_delays_nothing_is_not_barred(cluster, owner, settings, option):
    settings.TEST_IMAGES = {}
    a_pool(cluster, "a", test_images="vectoradd=registry.example/vectoradd:13")

    assert blocked(cluster, owner, **option) == []
