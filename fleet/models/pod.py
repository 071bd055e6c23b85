from collections.abc import Collection
from datetime import datetime

from django.db import models
from django.db.models import BooleanField, Case, ExpressionWrapper, F, IntegerField, Q, Value, When

from fleet.models.mirrored import Mirrored, Namespaced, one_per_uid
from fleet.models.node import members_of
from fleet.models.state_column import POD_STATE_CODE
from fleet.models.visible import Visible
from fleet.states.pod import CODES, ENDED, OFTEN, SETTLED_AFTER, PodState, pod_state

LASTING = [CODES[state] for state in (PodState.DONE, PodState.FAILED, PodState.REJECTED)]
# Pods of these states are shown as failing while they crash. Named, so that an index finds them.
MAY_CRASH = [CODES[each] for each in (PodState.PENDING, PodState.NOT_READY, PodState.STARTING, PodState.READY)]
COMPLETED = ("Completed", "Succeeded")  # how a placement ended whose pod ran to its end


class PodQuerySet(Visible["Pod"]):
    """A pod is visible with its node; an unscheduled one with its cluster."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(node__in=members_of(pool_ids))

    def not_done(self) -> "PodQuerySet":
        return self.exclude(phase__in=ENDED)

    def tenants(self) -> "PodQuerySet":
        """Filters to pods that have or want GPUs of any kind and belong to no operand."""
        return self.filter(is_tenant=True)

    def with_state(self, *, now: datetime, silent_nodes: Collection[int]) -> "PodQuerySet":
        """Adds `shown_state`, the code of `Pod.state` (`fleet.states.pod.CODES`).

        `silent_nodes` are the keys of nodes whose kubelets are silent. Read before, since a join would read every node.
        """
        is_crashing = Q(restarts__gte=OFTEN, crashed_at__gt=now - SETTLED_AFTER, state_code__in=MAY_CRASH)
        is_silent = Q(node__in=silent_nodes) & ~Q(state_code__in=LASTING)
        return self.annotate(
            shown_state=Case(
                When(is_silent, then=Value(CODES[PodState.UNKNOWN])),
                When(is_crashing, then=Value(CODES[PodState.FAILING])),
                default=F("state_code"),
                output_field=IntegerField(),
            )
        ).alias(is_shown_otherwise=ExpressionWrapper(is_silent | is_crashing, output_field=BooleanField()))


class Pod(Namespaced):
    """A pod that has or wants GPUs, or belongs to the GPU stack, as last observed."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="pods", db_index=False)
    node = models.ForeignKey("fleet.Node", models.SET_NULL, null=True, related_name="pods")
    node_name = models.CharField(max_length=253, blank=True)  # blank: not scheduled
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)  # when its node accepted it; null: not yet
    deleted_at = models.DateTimeField(null=True)  # when its deletion started; null: not deleted

    phase = models.CharField(max_length=16, blank=True)  # Pending, Running, Succeeded, Failed, Unknown
    is_ready = models.BooleanField(default=False)
    ready_since = models.DateTimeField(null=True)  # when the Ready condition last turned, either way
    status = models.CharField(max_length=128, blank=True, default="")  # as kubectl's column STATUS spells it
    crashed_at = models.DateTimeField(
        null=True
    )  # when a container of it last ended otherwise than well; null: none did
    restarts = models.PositiveIntegerField(default=0)
    waiting_reason = models.CharField(max_length=500, blank=True)  # CrashLoopBackOff: …, or why it is not scheduled
    stuck_container = models.CharField(max_length=253, blank=True)  # which of its containers waits or crashed
    last_words = models.CharField(max_length=500, blank=True)  # the last line of its termination message
    # Further telling lines of that message, the best first. They explain it where the last line is a consequence.
    more_words = models.CharField(max_length=700, blank=True, default="", db_default="")
    cpu_m = models.PositiveBigIntegerField(default=0)  # requested, in millicores; 0 once it is done
    memory_bytes = models.PositiveBigIntegerField(default=0)  # requested; 0 once it is done

    resources = models.JSONField(default=dict)  # extended resources requested, by name: {"nvidia.com/gpu": 8}
    gpus = models.PositiveIntegerField(default=0)  # whole GPUs requested
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    owner_uid = models.CharField(max_length=64, blank=True)
    claims = models.JSONField(default=list)  # names of its ResourceClaims
    devices = models.JSONField(default=dict)  # reported by its kubelet: {"nvidia.com/gpu": ["GPU-…"]}
    unhealthy_devices = models.JSONField(default=list)  # devices that its kubelet reports as unhealthy
    runtime_class = models.CharField(max_length=253, blank=True)
    priority_class = models.CharField(max_length=253, blank=True)
    labels = models.JSONField(default=dict)  # of tenants that have or want GPUs: PodDisruptionBudgets select by them
    has_empty_dir = models.BooleanField(default=False)  # a drain loses its content

    is_tenant = models.BooleanField(default=False)  # has or wants GPUs of any kind, and is no operand's
    operand = models.CharField(
        max_length=63, blank=True
    )  # driver, device-plugin, … (`gpu.operands`); blank: a tenant's
    revision_hash = models.CharField(max_length=63, blank=True)  # of the DaemonSet template it was made from
    image = models.CharField(max_length=500, blank=True)  # of its first container
    # From the pod's spec, not from its image; blank if unspecified.
    visible_devices = models.CharField(max_length=253, blank=True, default="")  # GPUs that it uses without a request
    required_cuda = models.CharField(max_length=253, blank=True, default="")  # cuda>=12.8, by NVIDIA_REQUIRE_CUDA
    # Requirements on its node, and its conditions (`fleet.observer.mirror.rows.placement`). Empty once it has a node.
    placement = models.JSONField(default=dict)
    # Once it has a node: host ports, anti-affinity and volume claims, which keep other pods away. Null: none or unread.
    exclusions = models.JSONField(null=True)
    # How its containers get GPUs, and the last failed end of one (`fleet.observer.mirror.rows.container_settings`).
    container_settings = models.JSONField(default=dict)
    state_code = models.GeneratedField(expression=POD_STATE_CODE, output_field=models.IntegerField(), db_persist=True)

    objects = PodQuerySet.as_manager()

    class Meta(Namespaced.Meta):
        constraints = [one_per_uid("pod")]
        indexes = [
            models.Index(fields=["cluster", "node_name"]),
            models.Index(fields=["cluster", "namespace", "name"]),
            models.Index(fields=["cluster", "owner_uid"]),
            models.Index(fields=["cluster"], condition=Q(exclusions__isnull=False), name="pods_with_exclusions"),
            # For the list of GPU pods: it counts and sorts them without reading their rows.
            models.Index(
                fields=[
                    "cluster",
                    "state_code",
                    "restarts",
                    "crashed_at",
                    "node",
                    "gpus",
                    "created_at",
                    "namespace",
                    "name",
                ],
                condition=Q(is_tenant=True),
                name="gpu_pods_of_lists",
            ),
            # For GPU pods by workload, likewise.
            models.Index(
                fields=[
                    "cluster",
                    "namespace",
                    "owner_kind",
                    "owner_name",
                    "owner_uid",
                    "state_code",
                    "restarts",
                    "crashed_at",
                    "node",
                    "gpus",
                    "created_at",
                ],
                condition=Q(is_tenant=True),
                name="gpu_pods_by_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def state(self, *, now: datetime) -> PodState:
        """Returns the state. Needs the loaded node: a silent kubelet reports nothing about its pods."""
        return pod_state(
            phase=self.phase,
            status=self.status,
            is_bound=bool(self.node_name),
            is_ready=self.is_ready,
            is_leaving=self.deleted_at is not None,
            is_stuck=bool(self.stuck_container and self.waiting_reason),
            restarts=self.restarts,
            crashed_at=self.crashed_at,
            is_node_silent=self.node is not None and self.node.is_ready is None,
            now=now,
        )


class OtherPod(Mirrored):
    """A pod unrelated to GPUs, reduced to its CPU and memory requests.

    Pods without a node and finished pods have no row.
    """

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="other_pods", db_index=False)
    node_name = models.CharField(max_length=253)
    cpu_m = models.PositiveBigIntegerField(default=0)  # requested, in millicores
    memory_bytes = models.PositiveBigIntegerField(default=0)  # requested

    class Meta:
        constraints = [one_per_uid("other_pod")]
        indexes = [models.Index(fields=["cluster", "node_name"])]

    def __str__(self) -> str:
        return self.uid


class PodPlacement(models.Model):
    """The time of a pod with GPUs of a node. Outlives both, as the timeline does, and may be pruned."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="pod_placements", db_index=False)
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    # `JobSet/train`: the topmost owner, as long as both were there. Blank: the direct one, or no other is known.
    top_owner = models.CharField(max_length=320, blank=True, default="", db_default="")
    resources = models.JSONField(default=dict)  # as `Pod.resources`
    since = models.DateTimeField()  # when its node started it, else when it was first observed there
    until = models.DateTimeField(null=True)  # when its end or absence was observed; null: still there
    seen_until = models.DateTimeField(null=True)  # last observation, if the end was not observed
    ended = models.CharField(max_length=128, blank=True)  # Completed, Error, Evicted; blank: it is there, or gone
    boards = models.JSONField(default=list)  # indices of its GPUs at its end; empty: not reported
    # For MIG slices: index of the GPU and number of the slice, at its end, if reported.
    slices = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "pod_uid", "node_uid"], name="one_placement_per_pod_and_node")
        ]
        indexes = [models.Index(fields=["cluster", "node_uid", "-since"]), models.Index(fields=["until"])]
        ordering = ["-since", "-pk"]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def workload(self) -> str:
        """Returns the topmost owner as `JobSet/train`. Blank: nothing controls the pod."""
        return self.top_owner or (f"{self.owner_kind}/{self.owner_name}" if self.owner_name else "")
