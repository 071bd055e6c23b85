from datetime import datetime

from django.db import models
from django.db.models import Q

from fleet.models.observer import GRACE
from people.rights import Permission, scope_of


class ClusterMode(models.TextChoices):
    OBSERVE_ONLY = "observe-only"  # nothing is ever written to the cluster
    FOLLOW = "follow"  # nothing either; rollouts that others drive are judged, by the gates that plans have
    OPERATE = "operate"  # plans may change the cluster


class ApprovalRule(models.TextChoices):
    """Whether a plan's stages wait for a person. Where the environment is production they always do."""

    REQUIRED = "required"
    NONE = "none"  # a stage may go unasked


class ClusterQuerySet(models.QuerySet["Cluster"]):
    def visible_to(self, user) -> "ClusterQuerySet":
        """The clusters of which the user may see at least one pool."""
        seen = scope_of(user, Permission.SEE)
        if seen.everywhere:
            return self
        return self.filter(Q(pk__in=seen.cluster_ids) | Q(pools__in=seen.pool_ids)).distinct()

    def unwatched(self, *, now: datetime) -> "ClusterQuerySet":
        """With their observers: those whose lease nobody takes, though it is due, as `ClusterSight` says it of one."""
        late = now - GRACE
        is_due = Q(observer__next_look_at=None) | Q(observer__next_look_at__lt=late)
        never_taken = Q(observer=None, added_at__lt=late)
        found = self.filter(never_taken | Q(is_due, observer__lease_until__lt=late))
        return found.select_related("observer").order_by("name")


class Cluster(models.Model):
    """One Kubernetes API server, and how to reach it. Holds no secret: those stay in the kubeconfig or the pod."""

    name = models.SlugField(max_length=63, unique=True)
    uid = models.CharField(max_length=64, unique=True)  # of its kube-system namespace: what tells clusters apart
    kubeconfig = models.CharField(max_length=1024, blank=True)  # a path on the workers; blank: in-cluster
    context = models.CharField(max_length=253, blank=True)
    mode = models.CharField(max_length=16, choices=ClusterMode.choices, default=ClusterMode.OBSERVE_ONLY)
    approval = models.CharField(max_length=16, choices=ApprovalRule.choices, default=ApprovalRule.REQUIRED)
    own_namespace = models.CharField(max_length=63, default="quarterdeck")  # our Lease and the stop switch live there
    foreign_uid = models.CharField(
        max_length=64, blank=True
    )  # a foreign cluster answers in its place: a person decides
    server_version = models.CharField(max_length=64, blank=True)
    added_at = models.DateTimeField()
    # When its last source of telemetry was removed or switched off: what it found ends. Null: a source reports.
    unheard_since = models.DateTimeField(null=True)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def batch(self) -> int:
        """The number of the newest flush when it was loaded with its observer. 0: nobody has watched it yet."""
        return self.observer.batch if hasattr(self, "observer") else 0
