import re
import unicodedata
from collections.abc import Collection

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from fleet.models.cluster import ApprovalRule
from fleet.models.visible import Visible
from kube import selectors

MOST_WORSE_PERCENT = 90  # of a test's number; with more every number would pass


class PoolApproval(models.TextChoices):
    AS_CLUSTER = "as-cluster"  # inherits the rule of its cluster
    REQUIRED = ApprovalRule.REQUIRED.value
    NONE = ApprovalRule.NONE.value


LABEL_KEY = re.compile(selectors.KEY)
IMAGES = re.compile(r"[a-z0-9-]{1,32}=[^\s,=]{1,400}(,[a-z0-9-]{1,32}=[^\s,=]{1,400}){0,20}")
OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
PRODUCTION = frozenset({"production", "productive", "prod", "prd", "live"})


class WorkloadClass(models.TextChoices):
    TRAINING = "training"
    INFERENCE = "inference"
    DEVELOPMENT = "development"
    MIXED = "mixed"


class PlacementPolicy(models.TextChoices):
    """The wanted placement of a pool's running pods. Quarterdeck compares; the schedulers decide."""

    NONE = "none"
    PACK = "pack"  # on as few nodes as possible, so that whole nodes stay free
    SPREAD = "spread"  # over the values of a node label, so that one failure stops few pods of a workload


class ClassPlacement(models.TextChoices):
    """The wanted placement of the pods of one class in a pool."""

    AS_POOL = "as-pool"
    NONE = PlacementPolicy.NONE.value
    PACK = PlacementPolicy.PACK.value
    SPREAD = PlacementPolicy.SPREAD.value


# Classes of pods that may have a placement policy of their own in a pool, and its column.
CLASS_PLACEMENTS = {
    WorkloadClass.TRAINING: "training_placement",
    WorkloadClass.INFERENCE: "inference_placement",
    WorkloadClass.DEVELOPMENT: "development_placement",
}


def is_production(environment: str) -> bool:
    """Tells whether any word of the name means production. "pre-production" counts, to be safe."""
    words = re.split(r"[\W_]+", unicodedata.normalize("NFKC", environment).casefold())
    return not PRODUCTION.isdisjoint(words)


def validate_label_key(text: str) -> None:
    if not LABEL_KEY.fullmatch(text):
        raise ValidationError("That is not a label key. Write it as topology.example.com/rack.")


def validate_images(text: str) -> None:
    if not IMAGES.fullmatch(text):
        raise ValidationError("Write images as dcgm=registry.example.com/dcgm:4,nccl=registry.example.com/nccl:2.")


def validate_object_name(text: str) -> None:
    if not OBJECT_NAME.fullmatch(text):
        raise ValidationError("That is not the name of an object of Kubernetes.")


def validate_selector(text: str) -> None:
    try:
        selectors.parse(text)
    except selectors.BadSelector as refusal:
        raise ValidationError(str(refusal)) from refusal


def class_placement() -> models.CharField:
    """Returns the column of the policy of one class of pods."""
    as_pool = ClassPlacement.AS_POOL
    return models.CharField(max_length=8, choices=ClassPlacement.choices, default=as_pool, db_default=as_pool)


class PoolQuerySet(Visible["Pool"]):
    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pk__in=pool_ids)


class Pool(models.Model):
    """A label selector over one cluster's nodes, with its settings."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="pools")
    name = models.SlugField(max_length=63)
    selector = models.CharField(max_length=1000, validators=[validate_selector])  # as kubectl's --selector
    environment = models.CharField(max_length=63, blank=True)
    workload_class = models.CharField(max_length=16, choices=WorkloadClass.choices, default=WorkloadClass.MIXED)
    max_unavailable = models.PositiveIntegerField(default=1)  # nodes, including broken ones
    price_per_gpu_hour = models.DecimalField(max_digits=10, decimal_places=4, null=True, blank=True)  # null: unknown
    # False: a changed selector is being applied to nodes. The observer finishes it after a crash.
    is_sorted = models.BooleanField(default=True, db_default=True)

    placement_policy = models.CharField(
        max_length=8, choices=PlacementPolicy.choices, default=PlacementPolicy.NONE, db_default=PlacementPolicy.NONE
    )
    # The same for the pods of one class (`capacity.placements.pod_classes`).
    training_placement = class_placement()
    inference_placement = class_placement()
    development_placement = class_placement()
    # The node label to spread over: of hosts, racks, zones, NVLink domains. Blank: hosts.
    spread_label = models.CharField(
        max_length=317, blank=True, default="", db_default="", validators=[validate_label_key]
    )
    approval = models.CharField(max_length=16, choices=PoolApproval.choices, default=PoolApproval.AS_CLUSTER)
    # Of tests on its nodes: images, by key of QUARTERDECK_TEST_IMAGES; a ResourceClaimTemplate of all GPUs of a node,
    # where DRA offers them; and how much worse than its peers a number may be. Blank and null: as elsewhere.
    test_images = models.CharField(max_length=2000, blank=True, default="", db_default="", validators=[validate_images])
    test_claim_template = models.CharField(
        max_length=253, blank=True, default="", db_default="", validators=[validate_object_name]
    )
    test_worse_percent = models.PositiveSmallIntegerField(null=True, blank=True)

    objects = PoolQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="one_pool_per_name")]
        ordering = ["cluster_id", "name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_production(self) -> bool:
        return is_production(self.environment)
