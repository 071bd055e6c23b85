"""The settings of tests by pool: images, the claim template of DRA, and how much worse than its peers a node may be.

A node in several pools has each setting of the first of them, by name, that sets it, and the strictest percentage.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from fleet.models import Node, Pool


@dataclass(frozen=True)
class PoolTests:
    images: Mapping[str, str]  # by key of QUARTERDECK_TEST_IMAGES, which it replaces
    claim_template: str = ""  # of the namespace of the GPU stack; blank: none
    worse_percent: int = 0  # 0: as each test has it

    def image(self, key: str) -> str:
        return self.images.get(key) or settings.TEST_IMAGES.get(key, "")


def tests_of(nodes: Sequence[Node]) -> Mapping[int, PoolTests]:
    """Returns the settings by key of the node. One query."""
    names = ("node_id", "pool__test_images", "pool__test_claim_template", "pool__test_worse_percent")
    members = Pool.nodes.through.objects.filter(node__in=[node.pk for node in nodes]).order_by("pool__name")
    images: dict[int, dict[str, str]] = defaultdict(dict)
    templates: dict[int, str] = {}
    percents: dict[int, int] = {}
    for node, named, template, percent in members.values_list(*names):
        images[node] = images_in(named) | images[node]
        templates[node] = templates.get(node) or template
        if percent:
            percents[node] = min(percent, percents.get(node, percent))
    return {node.pk: PoolTests(images[node.pk], templates.get(node.pk, ""), percents.get(node.pk, 0)) for node in nodes}


def images_in(text: str) -> dict[str, str]:
    """Returns the images of `dcgm=IMAGE,nccl=IMAGE` by key."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {key.strip(): image.strip() for key, _, image in pairs}


def common_image(nodes: Sequence[Node], key: str) -> str | None:
    """Returns the image of a test on these nodes. Blank: their pools name different ones. None: a node has none."""
    found = {tests.image(key) for tests in tests_of(nodes).values()} or {PoolTests({}).image(key)}
    if "" in found:
        return None
    return found.pop() if len(found) == 1 else ""
