from datetime import datetime

from django.db import models
from django.db.models import Q

from fleet.models.observer import GRACE
from people.rights import Permission, scope_of


class ClusterMode(models.TextChoices):
    OBSERVE_ONLY = "observe-only"  # nothing is ever written to the cluster
    FOLLOW = "follow"  # read-only, too; gates evaluate rollouts of external controllers
    OPERATE = "operate"  # plans may change the cluster


class ApprovalRule(models.TextChoices):
    """The rule whether a plan's stages need approval. Production environments always do."""

    REQUIRED = "required"
    NONE = "none"  # a stage may start without approval


class ClusterQuerySet(models.QuerySet["Cluster"]):
    def visible_to(self, user) -> "ClusterQuerySet":
        """Filters to clusters with at least one pool that the user may see."""
        seen = scope_of(user, Permission.SEE)
        if seen.everywhere:
            return self
        return self.filter(Q(pk__in=seen.cluster_ids) | Q(pools__in=seen.pool_ids)).distinct()

    def unwatched(self, *, now: datetime) -> "ClusterQuerySet":
        """Filters to clusters whose lease is due but unclaimed, with their observers; like `ClusterObservation`."""
        late = now - GRACE
        is_due = Q(observer__next_look_at=None) | Q(observer__next_look_at__lt=late)
        never_taken = Q(observer=None, added_at__lt=late)
        found = self.filter(never_taken | Q(is_due, observer__lease_until__lt=late))
        return found.select_related("observer").order_by("name")


class Cluster(models.Model):
    """One Kubernetes API server and its kubeconfig reference. Holds no secret; those stay in the kubeconfig or the
    pod."""

    name = models.SlugField(max_length=63, unique=True)
    uid = models.CharField(max_length=64, unique=True)  # of its kube-system namespace; identifies the cluster
    kubeconfig = models.CharField(max_length=1024, blank=True)  # a path on the workers; blank: in-cluster
    context = models.CharField(max_length=253, blank=True)
    mode = models.CharField(max_length=16, choices=ClusterMode.choices, default=ClusterMode.OBSERVE_ONLY)
    approval = models.CharField(max_length=16, choices=ApprovalRule.choices, default=ApprovalRule.REQUIRED)
    own_namespace = models.CharField(max_length=63, default="quarterdeck")  # of our Lease and the stop switch
    foreign_uid = models.CharField(
        max_length=64, blank=True
    )  # a foreign cluster answers in its place: a person decides
    server_version = models.CharField(max_length=64, blank=True)
    added_at = models.DateTimeField()
    # Set when its last telemetry source is removed or switched off; its findings then end. Null: a source reports.
    telemetry_lost_since = models.DateTimeField(null=True)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def batch(self) -> int:
        """Returns the number of the newest flush, from the loaded observer. 0: never observed."""
        return self.observer.batch if hasattr(self, "observer") else 0
