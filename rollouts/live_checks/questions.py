"""The questions of a live check, asked one after another while the cluster answers. Nothing that is sent is stored."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from fleet.models import DriverObject
from gpu.labels import HELD_BY, HELD_SINCE
from kube import client
from kube.redaction import redacted
from operations.writer_lease import LEASE_NAME, why_not_ours
from rollouts.components.base import version_in
from rollouts.engine.live_state import has_slices
from rollouts.engine.templates import digests_of
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import TargetState
from rollouts.live_checks.required_rights import needed, spared
from rollouts.models import Plan, Target
from rollouts.preflight.live_checks.facts import (
    LiveFacts,
    NamespaceState,
    NoAnswer,
    ObjectFacts,
    PlanFacts,
    Right,
    Tried,
)
from rollouts.preflight.picks import forward, pick
from rollouts.queries.driver_nodes import driver_daemonsets, nodes_of
from wording.sentences import with_period

ASKED_FOR = timedelta(seconds=30)  # a slow API server has each question, and not a worker for minutes
MOST_NODES = 5  # the first of each stage: pools may have policies of their own
LONGEST = 500  # characters of a foreign message
T = TypeVar("T")


@dataclass
class Questions:
    """Asks a cluster until a deadline, and remembers that it stopped answering."""

    plan: Plan
    connection: client.Connection
    clock: Callable[[], datetime]
    spec: dict[str, str] = field(default_factory=dict)  # digests of the object's that was seen
    ends_at: datetime = field(init=False)
    silence: str = ""

    def __post_init__(self) -> None:
        self.ends_at = self.clock() + ASKED_FOR

    def put(self, question: Callable[[], T]) -> T | NoAnswer:
        """Asks one question.

        After one without answer the others are not asked, since each would take its whole timeout.
        """
        if not self.silence and self.clock() >= self.ends_at:
            self.silence = f"The earlier questions took more than {ASKED_FOR.seconds} s."
        if self.silence:
            return NoAnswer(self.silence)
        try:
            return question()
        except client.Unreachable as error:
            self.silence = redacted_error(error)
            return NoAnswer(self.silence)
        except client.ClusterError as error:
            return NoAnswer(redacted_error(error), is_for_good=error.retry_after_s is None)


def facts_of(questions: Questions) -> LiveFacts:
    """Returns the cluster's answers. About twenty requests, and one more per stage's first node."""
    plan, connection = questions.plan, questions.connection
    its = _facts_of_plan(plan)
    uid = questions.put(lambda: client.kube_system_uid(connection))
    if uid != its.cluster_uid:
        return LiveFacts(its, silence=questions.silence, cluster_uid=uid)
    seen = questions.put(lambda: _driver_object(questions))
    return LiveFacts(
        plan=its,
        cluster_uid=uid,
        namespace=questions.put(lambda: _namespace(plan, connection)),
        lease=questions.put(lambda: _lease(plan, connection, now=questions.clock())),
        rights=list(_rights(questions)),
        driver_object=seen,
        version_patch=None if its.is_written else _version_patch(questions, seen),
        node_patches=[(name, _node_patch(questions, name)) for name in _first_nodes(plan, now=questions.clock())],
    )


def redacted_error(error: Exception) -> str:
    """Returns the error in one line, redacted."""
    return with_period(redacted(" ".join(str(error)[: 4 * LONGEST].split()))[:LONGEST])


def _facts_of_plan(plan: Plan) -> PlanFacts:
    cluster = plan.cluster
    row = DriverObject.objects.filter(cluster=cluster, uid=plan.object_uid).only("generation").first()
    return PlanFacts(
        cluster=cluster.name,
        cluster_uid=cluster.uid,
        own_namespace=cluster.own_namespace,
        object_title=f"{plan.object_kind} {plan.object_name}",
        object_uid=plan.object_uid,
        generation=row.generation if row else None,
        from_version=plan.from_version,
        to_version=plan.to_version,
        command=f"kubectl -n {cluster.own_namespace} get lease {LEASE_NAME} -o yaml",
        is_written=plan.is_armed,
    )


def _namespace(plan: Plan, connection: client.Connection) -> NamespaceState:
    seen = client.get_namespace(connection, plan.cluster.own_namespace)
    if seen is None:
        return NamespaceState.ABSENT
    return NamespaceState.GOING if seen.metadata.deletion_timestamp else NamespaceState.THERE


def _lease(plan: Plan, connection: client.Connection, *, now: datetime) -> str:
    lease = client.get_lease(connection, plan.cluster.own_namespace, LEASE_NAME)
    return why_not_ours(plan.cluster, lease, now=now) if lease else ""


def _driver_object(questions: Questions) -> ObjectFacts:
    plan = questions.plan
    try:
        seen, spec = client.get_driver_object_whole(questions.connection, plan.object_kind, plan.object_name)
    except client.Absent:
        return ObjectFacts("", "", 0)
    questions.spec = digests_of(plan, spec)
    return ObjectFacts(seen.uid, version_in(plan.its_component, spec), seen.metadata.generation)


def _rights(questions: Questions) -> Iterator[Right]:
    plan = questions.plan
    namespaces = sorted({daemonset.namespace for daemonset in driver_daemonsets(plan)})
    with_jobs = any(TestJobGate.key in stage.gate_options for stage in plan.stages.all())
    for access in needed(plan, namespaces, with_slices=has_slices(plan), with_jobs=with_jobs):
        yield _ask_right(questions, access, is_needed=True)
    for access in spared(namespaces):
        yield _ask_right(questions, access, is_needed=False)


def _ask_right(questions: Questions, access: client.AccessAsked, *, is_needed: bool) -> Right:
    allowed = questions.put(lambda: client.is_access_allowed(questions.connection, access).allowed)
    return Right(access.verb, access.resource.name, access.namespace, is_needed, allowed)


def _version_patch(questions: Questions, seen: ObjectFacts | NoAnswer) -> Tried | NoAnswer:
    """Tries the version's patch. A replaced object is covered by its own answer."""
    plan = questions.plan
    if isinstance(seen, NoAnswer):
        return seen
    if seen.uid != plan.object_uid or seen.version != plan.from_version:
        return NoAnswer(f"This was not tried: {plan.object_kind} {plan.object_name} is not the object of the plan.")
    return _try_patch(questions, lambda: _patch_version(plan, questions.connection))


def _patch_version(plan: Plan, connection: client.Connection) -> None:
    seen = client.get_driver_object(connection, plan.object_kind, plan.object_name)
    change = plan.its_component.patch(plan.from_version, plan.to_version)
    patch = client.field_patch(seen, change.path, old=change.old or None, new=change.new)
    client.patch_driver_object(connection, plan.object_kind, plan.object_name, patch, is_dry_run=True)


def _first_nodes(plan: Plan, *, now: datetime) -> list[str]:
    """Returns the first node of each stage; in a plan in progress, the first remaining one."""
    if plan.is_under_way:
        held = Target.objects.filter(stage__plan=plan, state=TargetState.HELD).forward().order_by("-position")
        first = dict(held.values_list("stage__index", "node_name"))
        return [name for _, name in sorted(first.items())][:MOST_NODES]
    nodes = list(nodes_of(plan).prefetch_related("pools"))
    chosen = pick(forward(plan), nodes, now=now).by_stage
    return [stage[0].name for _, stage in sorted(chosen.items()) if stage][:MOST_NODES]


def _node_patch(questions: Questions, name: str) -> Tried | NoAnswer:
    return _try_patch(questions, lambda: _patch_node(questions, name))


def _patch_node(questions: Questions, name: str) -> None:
    """Tries the patch of a hold. On a node with a foreign hold only the annotations are tried."""
    plan, hold = questions.plan, questions.plan.its_component.hold
    labels: dict[str, str | None] = {hold.key: hold.value} if hold else {}
    node = client.get_node(questions.connection, name)
    since = questions.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    patch = client.metadata_patch(node, labels=labels, annotations={HELD_BY: plan.mark, HELD_SINCE: since})
    client.patch_node(questions.connection, name, patch, is_dry_run=True)


def _try_patch(questions: Questions, patch: Callable[[], None]) -> Tried | NoAnswer:
    """Tries a patch. A refusal is an answer. A webhook that does not support dry run gives none."""

    def put() -> Tried | NoAnswer:
        try:
            patch()
        except (client.Forbidden, client.Refused) as refusal:
            if client.NO_DRY_RUN in str(refusal):
                reason = f"A dry run is not possible: {redacted_error(refusal)}"
                return NoAnswer(reason, is_for_good=True, may_be_overridden=True)
            return Tried(redacted_error(refusal))
        return Tried()

    return questions.put(put)
