"""What two people, an approver and somebody with kubectl do to a plan and its cluster. Each says what came of it."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.crashing import glances, taking_back
from benchmarks.crashing.jobs import NAMESPACE, Fate
from benchmarks.crashing.nodes_seen import CORDONED_BY, HELD_BY, HELD_SINCE, OPT_OUTS
from benchmarks.crashing.oracle import version_in as _version_in
from benchmarks.crashing.seams import Kind
from benchmarks.crashing.world import KUBECTL, NEW, OLD, SENTINEL, World
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Pool
from operations.models import Freeze
from rollouts.approvals.bundles import bundle_for
from rollouts.commands import fleet_freezes, maintenance_windows, plan_approvals, plan_control
from rollouts.commands.refusals import Refusal
from rollouts.models import MaintenanceWindow, Plan
from simulator.actors.gpu_operator import keys
from simulator.clock import micro_stamp
from simulator.kinds import JOB, NODE
from simulator.refusals import Refused

NO = (Refusal, LostRace, IllegalMove)  # as a page or REST would answer 403 or 409
COMMANDS: dict[str, Callable[..., None]] = {
    "halt": plan_control.halt,
    "pause": plan_control.pause,
    "resume": plan_control.resume,
    "rollback": plan_control.roll_back,
    "abort": plan_control.abort,
}
CLOSED = 0.3  # of what holds nodes back: a window that closes
OPEN_FOR, CLOSES_IN = timedelta(minutes=5), timedelta(seconds=30)
APPROVED_AFTER_S = 3  # a stage that opens is looked at without an approval first
OTHERS_LEASE = "/apis/coordination.k8s.io/v1/namespaces/quarterdeck/leases/quarterdeck"


def command(world: World, who: str, verb: str) -> bool:
    """Whether it was answered. A person's word counts from that instant."""
    try:
        COMMANDS[verb](_plan(world), actor=world.person(who), reason="A schedule wants it.", now=world.clock())
    except NO:
        return False
    world.say(who, verb)
    return True


def approve(world: World, *, after_s: float = 0) -> None:
    """`after_s`: only what has waited for so long."""
    if not glances.is_opening(world.plan.pk):
        return
    since = world.clock() - timedelta(seconds=after_s)
    for stage in _plan(world).stages.filter(state="opening", state_since__lte=since):
        seen = bundle_for(stage).hash
        try:
            plan_approvals.approve(
                stage, actor=world.person("carol"), bundle_hash=seen, reason="Seen.", now=world.clock()
            )
        except NO:
            continue
        world.say("carol", "approve")


def reject(world: World) -> None:
    """Another approver says no, whoever has said yes."""
    for stage in _plan(world).stages.filter(state="opening"):
        try:
            plan_approvals.reject(
                stage, actor=world.person("dave"), bundle_hash="", reason="Not now.", now=world.clock()
            )
        except NO:
            continue
        world.say("dave", "reject")


def freeze(world: World, chance: random.Random, who: str) -> None:
    cluster, pool = world.cluster, Pool.objects.get(cluster=world.cluster, name="h100")
    where = chance.choice(
        [fleet_freezes.Where(), fleet_freezes.Where(cluster=cluster), fleet_freezes.Where(cluster=cluster, pool=pool)]
    )
    try:
        if chance.random() < 0.25:
            fleet_freezes.stop(actor=who, reason="A schedule wants it.", now=world.clock())
            world.say(who, "freeze", binds_rollbacks=True, is_stop=True)
            return
        holds = chance.random() < 0.3
        fleet_freezes.freeze(where, actor=who, reason="A schedule wants it.", now=world.clock(), binds_rollbacks=holds)
    except NO:
        return
    world.say(who, "freeze", binds_rollbacks=holds)


def close_window(world: World, chance: random.Random, who: str) -> None:
    """Cluster or pool have a maintenance window, and it comes to its end."""
    now = world.clock()
    opened = now - OPEN_FOR + CLOSES_IN
    pool = Pool.objects.get(cluster=world.cluster, name="h100") if chance.random() < 0.5 else None
    window = MaintenanceWindow(
        cluster=world.cluster, pool=pool, rule="FREQ=DAILY", first_day=opened.date(), opens_at=opened.time(),
        zone="UTC", duration_s=int(OPEN_FOR.total_seconds()), by=who, at=now,
    )  # fmt: skip
    try:
        maintenance_windows.make_window(window, now=now)
    except NO:
        return
    world.clock.move(CLOSES_IN.total_seconds())
    world.say(who, "close")


def hold_back(world: World, chance: random.Random, who: str) -> None:
    """What holds nodes back beside the plan's own commands."""
    (close_window if chance.random() < CLOSED else freeze)(world, chance, who)


def lift_all(world: World, who: str) -> None:
    now = world.clock()
    for one in Freeze.objects.in_force(now=now):
        fleet_freezes.lift(one, actor=who, reason="It is over.", now=now + timedelta())
    for window in MaintenanceWindow.objects.select_related("cluster", "pool"):
        maintenance_windows.remove_window(window, actor=who, reason="It is over.", now=now)
    world.say(who, "lift")


def anything(world: World, chance: random.Random) -> None:
    """One act of one of them."""
    who = chance.choice(["ada", "bob"])
    act = chance.choices(
        ["halt", "pause", "resume", "rollback", "abort", "approve", "reject", "freeze", "lift"],
        [5, 5, 4, 2, 2, 3, 2, 4, 1],
    )[0]
    if act == "approve":
        approve(world)
    elif act == "reject":
        reject(world)
    elif act == "freeze":
        hold_back(world, chance, who)
    elif act == "lift":
        lift_all(world, who)
    else:
        command(world, who, act)


def say_stop(world: World, chance: random.Random) -> None:
    verb = chance.choice(["halt", "pause", "abort", "rollback", "freeze"])
    if verb == "freeze":
        hold_back(world, chance, "ada")
    else:
        command(world, "ada", verb)


def _plan(world: World) -> Plan:
    """As an edge loads it."""
    return Plan.objects.select_related("cluster").get(pk=world.plan.pk)


# With kubectl


def behind_its_back(world: World, chance: random.Random) -> None:
    """One act of somebody who does not ask Quarterdeck."""
    acts = [
        _unlabel,
        _label,
        _cordon,
        _ready,
        _leave,
        _delete,
        _join,
        _version,
        take_lease,
        stop,
        _sicken,
        _lose_state,
        _opt_out,
        *([_try_jobs, _uncordon] if world.shape.proves else []),
    ]
    chance.choices(acts, [10, 2, 3, 3, 1, 2, 3, 2, 2, 2, 2, 1, 3, 4, 3][: len(acts)])[0](world, chance)


def _try_jobs(world: World, chance: random.Random) -> None:
    """What becomes of Jobs from now on is another thing, or somebody deletes those that are there."""
    world.jobs.fate = chance.choice(list(Fate))
    if chance.random() < 0.3:
        for job in world.store.list(JOB, NAMESPACE)[0]:
            world.store.delete(JOB, job["metadata"]["name"], NAMESPACE, grace_s=0)


def _node(world: World, chance: random.Random) -> str:
    return chance.choice(sorted(world.operator.nodes()) or [""])


def _patch(world: World, called: str, body: dict[str, Any]) -> None:
    if called:
        world.line.notify(KUBECTL, "PATCH", f"/api/v1/nodes/{called}", body)


def _unlabel(world: World, chance: random.Random) -> None:
    _patch(world, _node(world, chance), {"metadata": {"labels": {keys.SKIP: None}}})


def _label(world: World, chance: random.Random) -> None:
    """Somebody else's hold: without our annotation it is theirs."""
    ours = {HELD_BY: None, HELD_SINCE: None}
    _patch(world, _node(world, chance), {"metadata": {"labels": {keys.SKIP: "true"}, "annotations": ours}})


def _opt_out(world: World, chance: random.Random) -> None:
    """Somebody keeps a controller off a node, or lets it come back, whatever we have done there."""
    mark = chance.choice(list(OPT_OUTS))
    part = "labels" if mark == SENTINEL else "annotations"
    _patch(world, _node(world, chance), {"metadata": {part: {mark: chance.choice(["true", "false", None])}}})


def _cordon(world: World, chance: random.Random) -> None:
    cordon(world, _node(world, chance))


def _uncordon(world: World, chance: random.Random) -> None:
    _patch(world, _node(world, chance), {"spec": {"unschedulable": None}})


def cordon(world: World, called: str) -> None:
    _patch(world, called, {"spec": {"unschedulable": True}})


def _ready(world: World, chance: random.Random) -> None:
    """A node goes NotReady: its kubelet is silent."""
    called = _node(world, chance)
    if called:
        ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        body = {"status": {"conditions": [ready]}}
        world.line.notify("kube-controller-manager", "PATCH", f"/api/v1/nodes/{called}/status", body)


def _leave(world: World, chance: random.Random) -> None:
    _patch(world, _node(world, chance), {"metadata": {"labels": {keys.DEPLOY_DRIVER: "false"}}})


def _delete(world: World, chance: random.Random) -> None:
    if len(world.operator.nodes()) > 2:
        called = _node(world, chance)
        world.line.notify(KUBECTL, "DELETE", f"/api/v1/nodes/{called}")


def _join(world: World, chance: random.Random) -> None:
    like = next(iter(world.operator.nodes().values()), None)
    if like is None or len(world.operator.nodes()) > world.shape.nodes:
        return
    called = f"gpu-late-{chance.randrange(3)}"
    skipped = {keys.SKIP, keys.STATE, *OPT_OUTS}
    labels = {
        key: value for key, value in like["metadata"]["labels"].items() if key not in skipped and "cuda" not in key
    }
    metadata = {"name": called, "labels": labels | {"kubernetes.io/hostname": called}}
    answer = world.line.notify("kubelet", "POST", "/api/v1/nodes", {"metadata": metadata, "spec": {}})
    if answer.status < 300:
        ready = list(like["status"]["conditions"])
        status = {**like["status"], "conditions": ready}
        world.store.patch(NODE, called, {"status": status}, how="merge", subresource="status")
        world.store.patch(NODE, called, {"spec": {"taints": None}}, how="merge")


def _version(world: World, chance: random.Random) -> None:
    write_version(world, chance.choice([OLD, NEW, "580.105.08"]))


def write_version(world: World, version: str) -> None:
    spec = {"driver": {"version": version}} if world.shape.by_policy else {"version": version}
    world.line.notify(KUBECTL, "PATCH", world.object_path, {"spec": spec})


def take_lease(world: World, _chance: random.Random) -> None:
    """Another Quarterdeck: it does not wait for its turn."""
    spec = {"holderIdentity": "another", "renewTime": micro_stamp(world.clock())}
    world.line.notify("quarterdeck-of-others", "PATCH", OTHERS_LEASE, {"spec": spec})


def stop(world: World, _chance: random.Random) -> None:
    switch = {"metadata": {"name": "quarterdeck-stop"}, "data": {"reason": "A schedule wants it."}}
    if world.line.notify(KUBECTL, "POST", "/api/v1/namespaces/quarterdeck/configmaps", switch).status < 300:
        world.say("kubectl", "stop")


def lead_elsewhere(world: World, _chance: random.Random) -> None:
    """The address leads to another cluster now, with nodes of the same names."""
    if world.own_uid() == world.cluster.uid:
        world.name_cluster("another")
        world.say("kubectl", "elsewhere")


def _sicken(world: World, chance: random.Random) -> None:
    world.operator.sick.add(_node(world, chance))


def _lose_state(world: World, chance: random.Random) -> None:
    _patch(world, _node(world, chance), {"metadata": {"labels": {keys.STATE: None}}})


# Any of the things that can come between a decision and the write that it leads to


Event = Callable[[World, random.Random], object]
STOPPING: tuple[Event, ...] = (
    *(lambda world, _, verb=verb: command(world, "bob", verb) for verb in ("halt", "pause", "abort", "rollback")),
    lambda world, chance: hold_back(world, chance, "bob"),
    lambda world, _: reject(world),
    stop,
    stop,
)
EVENTS: tuple[Event, ...] = (
    *STOPPING,
    take_lease,
    lead_elsewhere,
    _unlabel,
    _label,
    _cordon,
    _join,
    _leave,
    _version,
)
RESTS_ON: dict[Kind, tuple[Event, ...]] = {  # what a write of this kind has looked at before
    Kind.VERSION: (_unlabel, _unlabel, _version, _join),
    Kind.ROLLBACK: (_unlabel, _version),
    Kind.LEASE: (take_lease, lead_elsewhere),
    Kind.HOLD: (_unlabel, _label),
    Kind.RELEASE: (_unlabel, _label, _cordon, _opt_out),
}


# On call, when the faults have ceased


def tidy(world: World) -> None:
    """What somebody did behind the plan's back is taken back, as far as it still stands."""
    world.operator.sick.clear()
    world.jobs.fate = Fate.PULLED
    world.line.arrive()
    for node in world.store.list(NODE)[0]:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
        foreign = keys.SKIP in labels and HELD_BY not in node["metadata"].get("annotations", {})
        body: dict[str, Any] = {}
        state = labels.get(keys.STATE, "")
        is_a_plans = CORDONED_BY in node["metadata"].get("annotations", {})  # who tidies up reads whose it is
        if node["spec"].get("unschedulable") and not is_a_plans and state in {"", "upgrade-done", "upgrade-required"}:
            body["spec"] = {"unschedulable": None}
        if foreign:
            body["metadata"] = {"labels": {keys.SKIP: None}}
        was = keys.WAS_CORDONED
        if not is_a_plans and was in node["metadata"].get("annotations", {}):
            body.setdefault("metadata", {})["annotations"] = {was: None}
        if body:
            _patch(world, name, body)
        if any(one["type"] == "Ready" and one["status"] != "True" for one in node["status"].get("conditions", ())):
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            status = {"status": {"conditions": [ready]}}
            world.line.notify("kube-controller-manager", "PATCH", f"/api/v1/nodes/{name}/status", status)
    tidy_cluster(world)


def tidy_cluster(world: World) -> None:
    if world.own_uid() != world.cluster.uid:
        world.name_cluster(world.cluster.uid)
        world.say("kubectl", "here again")
    taking_back.give_back(world)
    if world.line.notify(KUBECTL, "DELETE", "/api/v1/namespaces/quarterdeck/configmaps/quarterdeck-stop").status < 300:
        world.say("kubectl", "unstop")
    try:
        lease = world.store.get(
            world.store.find_kind("coordination.k8s.io", "v1", "leases"), "quarterdeck", "quarterdeck"
        )
    except Refused:
        return
    if lease["spec"].get("holderIdentity") == "another" or world.is_old_copy:
        world.line.notify(KUBECTL, "DELETE", OTHERS_LEASE)


def put_version_right(world: World) -> None:
    """Whoever set another version sets back what the plan wrote last."""
    written = [(one["user_agent"], _version_in(one["body"])) for one in world.entries() if _writes_object(world, one)]
    if written and not written[-1][0].startswith("quarterdeck/"):
        ours = [version for who, version in written if who.startswith("quarterdeck/")]
        if world.operator.driver_spec()["version"] != (wanted := ours[-1] if ours else OLD):
            write_version(world, wanted)


def _writes_object(world: World, entry: dict[str, Any]) -> bool:
    return entry["method"] == "PATCH" and entry["path"] == world.object_path and entry["code"] < 300


def on_call(world: World, ending: str, *, tired: bool) -> None:
    """What somebody does who wants it over: go on, back, or give it up. What can only go back does."""
    state = world.plan_state
    if glances.is_anything_frozen():
        lift_all(world, "ada")
    if tired:
        if state != "aborting":
            command(world, "bob", "abort")
        return
    is_wanted_back = ending == "rollback" or glances.is_without_nodes(world.plan.pk)
    goes_back = is_wanted_back and state in {"promoting", "holding"}
    if ending == "abort" and state not in {"aborting", "rolling-back"}:
        command(world, "ada", "abort")
    elif goes_back or state == "halted":
        _ = command(world, "ada", "rollback") or command(world, "ada", "abort")
    elif glances.is_paused(world.plan.pk):
        command(world, "ada", "resume")
    approve(world, after_s=APPROVED_AFTER_S)
