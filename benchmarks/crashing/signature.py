"""All that the end of a plan depends on, once nothing unforeseen happens any more: what is the same ends the same."""

from functools import lru_cache
from typing import Any

from benchmarks.crashing.jobs import NAMESPACE
from benchmarks.crashing.nodes_seen import OPT_OUTS
from benchmarks.crashing.rows import raw_rows
from benchmarks.crashing.world import World
from operations.models import Freeze
from rollouts.models import Command, Cordon, Exclusion, Hold, Plan, Stage, Target, TestJob
from simulator.actors.revisions import HASH_LABEL
from simulator.kinds import JOB, NODE


def what_follows(state: str, ending: str) -> str:
    """Of what is wanted of a plan in this state: as much as still makes a difference (`people.on_call`)."""
    if state in {"rolling-back", "aborting"}:
        return ""
    return "rollback" if state == "halted" and ending == "go on" else ending


def signature(world: World) -> Any:
    """Rows, nodes, the object, its revisions. Nodes go by name: the UID of one that joins is another each time."""
    there = {node["metadata"]["uid"]: node["metadata"]["name"] for node in world.store.list(NODE)[0]}
    (plan,), stages, targets, standing, holds, kept_off, commands, frozen, test_jobs, cordons = map(
        raw_rows, _asked_for(world.plan.pk)
    )
    state, template_change, *instants = plan
    nodes = tuple(sorted(_told_apart(node) for node in world.store.list(NODE)[0]))
    offered = tuple(sorted(world.operator.dra.offered().items()))
    pods = world.operator.pods().items()
    revisions = tuple(sorted((on, pod["metadata"]["labels"][HASH_LABEL]) for on, pod in pods))
    return (
        (state, template_change, bool(commands), bool(frozen)),
        tuple(at is not None for at in instants),
        (tuple(stages), tuple((*target[:5], target[5] in there) for target in targets)),
        tuple(standing),
        tuple((*hold[:3], hold[3] is not None, hold[4] in there) for hold in holds),
        tuple((*row[:4], row[4] is not None, row[5] in there) for row in kept_off),
        (tuple((*row[:2], row[2] is not None, row[3] is not None) for row in test_jobs), _jobs(world)),
        tuple((row[0], row[1] is not None) for row in cordons),
        (nodes, offered, revisions, world.operator.driver_spec()["version"], world.operator.newest()),
    )


@lru_cache
def _asked_for(plan_id: int) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The queries of a signature, as SQL: Django makes each once."""
    plan, stages = Plan.objects.filter(pk=plan_id).order_by(), Stage.objects.filter(plan=plan_id).order_by("index")
    targets = Target.objects.filter(stage__plan=plan_id).order_by("stage__index", "position")
    holds = Hold.objects.filter(plan=plan_id).order_by("node_name", "pk")
    off = Exclusion.objects.in_force().filter(plan=plan_id).order_by("node_name", "controller", "pk")
    test_jobs = TestJob.objects.filter(plan=plan_id).order_by("pk")
    cordons = Cordon.objects.in_force().filter(plan=plan_id).order_by("node_name", "pk")
    standing = stages.filter(approvals__isnull=False, approvals__void_at__isnull=True).order_by("index", "approvals")
    asked = (
        plan.values_list("state", "template_change", "write_intended_at", "armed_since", "put_back_at"),
        stages.values_list("index", "state"),
        targets.values_list("stage__index", "node_name", "state", "is_lost", "has_escaped", "node_uid"),
        standing.values_list("index", "approvals__is_rejection"),
        holds.values_list("node_name", "is_wanted", "is_foreign", "placed_at", "node_uid"),
        off.values_list("node_name", "controller", "was", "is_wanted", "placed_at", "node_uid"),
        Command.objects.in_force().filter(plan=plan_id).values_list("pk"),
        Freeze.objects.filter(ended_at__isnull=True).values_list("pk"),
        test_jobs.values_list("node_name", "outcome", "made_at", "gone_at"),
        cordons.values_list("node_name", "placed_at"),
    )
    return tuple(each.query.sql_with_params() for each in asked)


def _jobs(world: World) -> tuple[tuple[str, bool], ...]:
    """Those that are there, and whether each is over."""
    if not world.shape.proves:
        return ()
    there = ((job["metadata"]["name"], job.get("status") or {}) for job in world.store.list(JOB, NAMESPACE)[0])
    return tuple(sorted((name, bool(status.get("conditions"))) for name, status in there))


def _told_apart(node: dict[str, Any]) -> tuple[Any, ...]:
    metadata = node["metadata"]
    has = {**metadata.get("labels", {}), **metadata.get("annotations", {})}
    labels = sorted(item for item in metadata.get("labels", {}).items() if "driver" in item[0])
    labels += [(name, has[name]) for name in OPT_OUTS if name in has]
    annotations = sorted(key for key in metadata.get("annotations", {}) if "quarterdeck" in key or "driver" in key)
    return metadata["name"], tuple(labels), tuple(annotations), bool(node["spec"].get("unschedulable"))
