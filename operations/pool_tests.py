"""The settings of tests by pool: images, the claim template of DRA, and how much worse than its peers a node may be.

A node in several pools has each setting of the first of them, by name, that sets it, and the strictest percentage.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q

from fleet.models import Node, Pool
from wording.lists import names


@dataclass(frozen=True)
class PoolTests:
    images: Mapping[str, str]  # by key of QUARTERDECK_TEST_IMAGES, which it replaces
    claim_template: str = ""  # of the namespace of the GPU stack; blank: none
    worse_percent: int = 0  # 0: as each test has it

    def image(self, *keys: str) -> str:
        """Returns the image of the first key that has one. Blank: none has."""
        found = (self.images.get(key) or settings.TEST_IMAGES.get(key, "") for key in keys)
        return next(filter(None, found), "")


def tests_of(nodes: Sequence[Node]) -> Mapping[int, PoolTests]:
    """Returns the settings by key of the node. One query."""
    columns = ("node_id", "pool__test_images", "pool__test_claim_template", "pool__test_worse_percent")
    members = Pool.nodes.through.objects.filter(node__in=[node.pk for node in nodes]).order_by("pool__name")
    images: dict[int, dict[str, str]] = defaultdict(dict)
    templates: dict[int, str] = {}
    percents: dict[int, int] = {}
    for node, named, template, percent in members.values_list(*columns):
        images[node] = images_in(named) | images[node]
        templates[node] = templates.get(node) or template
        if percent:
            percents[node] = min(percent, percents.get(node, percent))
    return {node.pk: PoolTests(images[node.pk], templates.get(node.pk, ""), percents.get(node.pk, 0)) for node in nodes}


def has_image(key: str, *, cluster_id: int, pool_id: int | None = None) -> bool:
    """Returns whether the settings or a pool name the image of a test. One query at most.

    The pools are those with nodes of the given pool; None: all of the cluster.
    """
    if settings.TEST_IMAGES.get(key):
        return True
    pools = Pool.objects.filter(cluster=cluster_id).exclude(test_images="").order_by()
    if pool_id is not None:
        pools = pools.filter(Q(pk=pool_id) | Q(nodes__pools=pool_id))
    return any(images_in(text).get(key) for text in pools.values_list("test_images", flat=True).distinct())


def images_in(text: str) -> dict[str, str]:
    """Returns the images of `dcgm=IMAGE,nccl=IMAGE` by key."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {key.strip(): image.strip() for key, _, image in pairs}


def common_image(nodes: Sequence[Node], *keys: str) -> str | None:
    """Returns the image of a test on these nodes. Blank: each takes its own. None: no node has one."""
    found = {tests.image(*keys) for tests in tests_of(nodes).values()} or {PoolTests({}).image(*keys)}
    if found == {""}:
        return None
    return found.pop() if len(found) == 1 else ""


def no_image_warnings(nodes: Sequence[Node], *keys: str) -> Iterator[str]:
    """Yields the warning of a preview about nodes on which no key has an image. One query."""
    its = tests_of(nodes)
    if without := [node.name for node in nodes if not its[node.pk].image(*keys)]:
        yield f"No image for {names(without)}: it fails there. {why_no_image(' or '.join(keys))}"


def why_no_image(key: str) -> str:
    """Returns the reason of a node on which a test has no image."""
    return f"Neither the pool's images of tests nor QUARTERDECK_TEST_IMAGES names {key}. Set one."
