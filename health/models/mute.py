from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from django.db import models
from django.db.models import Q

from fleet.models import Cluster, Pool
from fleet.models.node import members_of
from fleet.models.visible import Visible
from health.models.finding import Finding, FindingQuerySet
from health.subjects import identity_of


class MuteQuerySet(Visible["Mute"]):
    """Mutes. A mute is visible with its cluster; one of a pool, or of a node in a pool, with that pool."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pool__in=pool_ids) | Q(node__in=members_of(pool_ids))

    def in_force(self, *, now: datetime) -> "MuteQuerySet":
        return self.filter(ended_at=None, until__gt=now)


class Mute(models.Model):
    """Suppresses notifications of a rule's findings in its scope until it ends, with its author, time and reason."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="mutes")
    rule = models.CharField(max_length=63)
    # At most one of the next three scopes; with none it is of the rule in all of the cluster.
    subject = models.CharField(max_length=300, blank=True)  # this very finding, also when it comes back
    gpu_uuid = models.CharField(max_length=64, blank=True, default="")  # of that finding's board; blank: it has none
    node_name = models.CharField(max_length=253, blank=True)
    pool = models.ForeignKey(Pool, models.CASCADE, null=True, related_name="mutes")
    # Of a finding about a node, or of a node: who sees that sees this. Not its scope: a mute outlives the row.
    node = models.ForeignKey("fleet.Node", models.SET_NULL, null=True, related_name="mutes")
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    until = models.DateTimeField()
    key = models.CharField(max_length=100, blank=True)  # the caller's: the same key again is the same mute
    ended_at = models.DateTimeField(null=True)  # when somebody lifted it
    ended_by = models.CharField(max_length=150, blank=True)
    ended_reason = models.CharField(max_length=1000, blank=True)

    objects = MuteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["by", "key"], condition=~Q(key=""), name="one_mute_per_key"),
            models.CheckConstraint(
                condition=Q(subject="", node_name="") | Q(subject="", pool=None) | Q(node_name="", pool=None),
                name="a_mute_has_one_scope",
            ),
        ]
        indexes = [models.Index(fields=["cluster", "until"])]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.rule} of {self.place}"

    @property
    def place(self) -> str:
        if self.subject:
            return f"{self.subject} in {self.cluster.name}"
        if self.node_name:
            return f"node {self.node_name} in {self.cluster.name}"
        return f"pool {self.cluster.name}/{self.pool.name}" if self.pool else f"cluster {self.cluster.name}"

    @property
    def mark(self) -> str:
        return f"mute:{self.pk}"

    def is_in_force(self, *, now: datetime) -> bool:
        """Returns the same as `in_force` for rows."""
        return self.ended_at is None and now < self.until

    @property
    def candidates(self) -> FindingQuerySet:
        """Returns all findings that `covers` may accept, and few others."""
        found = Finding.objects.filter(cluster=self.cluster_id, rule=self.rule)
        if self.subject:
            is_same_board = Q(gpu_uuid=self.gpu_uuid) if self.gpu_uuid else Q()
            return found.filter(Q(subject=self.subject) | is_same_board)
        if self.node_name:
            return found.filter(node__name=self.node_name)
        return found.filter(node__in=members_of([self.pool_id])) if self.pool_id is not None else found

    def covers(self, finding: Finding, node_name: str, pools: Collection[int]) -> bool:
        """Returns whether it covers a finding. `node_name` and `pools` are its node's; empty if it has no node."""
        if (finding.cluster_id, finding.rule) != (self.cluster_id, self.rule):
            return False
        if self.subject and self.gpu_uuid and finding.gpu_uuid:
            return finding.identity == identity_of(self.subject, self.gpu_uuid)
        if self.subject:
            return finding.subject == self.subject
        if self.node_name:
            return node_name == self.node_name
        return self.pool_id is None or self.pool_id in pools


def pools_of(mutes: Iterable[Mute]) -> Mapping[int, frozenset[int]]:
    """Returns the relevant pools of each node. One query if any mute is of a pool, else none."""
    wanted = {mute.pool_id for mute in mutes if mute.pool_id is not None}
    if not wanted:
        return {}
    found: dict[int, frozenset[int]] = {}
    members = Pool.nodes.through.objects.filter(pool__in=wanted)
    for node_id, pool_id in members.values_list("node_id", "pool_id"):
        found[node_id] = found.get(node_id, frozenset()) | {pool_id}
    return found
