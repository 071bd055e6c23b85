"""What people do about the image of a plan: ask for its pull, end it, edit or start the draft; and with kubectl."""

import random
from collections.abc import Callable

from benchmarks.crashing import people
from benchmarks.crashing.jobs import NAMESPACE
from benchmarks.crashing.people import NO
from benchmarks.crashing.world import KUBECTL, NEW, World
from rollouts.commands import image_pulls, plan_drafts
from rollouts.models import ImagePull, Plan, PullJob
from simulator.kinds import JOB

OTHER = "580.105.08"  # to which a draft is edited
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
THEIRS = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
Act = Callable[[World, random.Random], object]


def in_force(world: World) -> ImagePull | None:
    return ImagePull.objects.in_force().filter(plan=world.plan.pk).first()


def ask(world: World, nodes_each: int) -> None:
    plan = Plan.objects.select_related("cluster").get(pk=world.plan.pk)
    try:
        image_pulls.ask(
            plan, actor=world.person("ada"), reason="Before the window.", nodes_each=nodes_each, now=world.clock()
        )
    except NO:
        return
    world.say("ada", "ask")


def cancel(world: World, _chance: random.Random) -> None:
    call_off(world)


def call_off(world: World) -> None:
    pull = in_force(world)
    try:
        if pull is not None:
            image_pulls.cancel(pull, actor=world.person("bob"), reason="Not today.", now=world.clock())
            world.say("bob", "cancel")
    except NO:
        return


def edit(world: World, _chance: random.Random) -> None:
    """The draft goes elsewhere from now on, or back to where it went."""
    plan = Plan.objects.select_related("cluster").get(pk=world.plan.pk)
    stages = plan_drafts.stages_of(plan)
    to = NEW if plan.to_version == OTHER else OTHER
    try:
        plan_drafts.edit(
            plan, title="", to_version=to, stages=stages, expected_revision=plan.revision,
            actor=world.person("bob"), now=world.clock(),
        )  # fmt: skip
    except NO:
        return
    world.say("bob", "edit")


def begin(world: World) -> bool:
    """Start the draft. Whether it is under way."""
    try:
        world.start()
    except NO:
        return False
    world.say("ada", "start")
    return True


def end(world: World, _chance: random.Random) -> None:
    """Throw the draft away, or give the plan up."""
    plan = Plan.objects.get(pk=world.plan.pk)
    if plan.state != "draft":
        people.command(world, "bob", "abort")
        return
    plan_drafts.discard(plan, actor=world.person("bob"), reason="Not needed.", now=world.clock())
    world.say("bob", "abort")


def delete_job(world: World, chance: random.Random) -> None:
    if names := [job["metadata"]["name"] for job in world.store.list(JOB, NAMESPACE)[0]]:
        _delete(world, chance.choice(names))


def take_name(world: World, chance: random.Random) -> None:
    """Somebody makes a Job with the name of one of ours, in its place where it is there."""
    rows = PullJob.objects.filter(pull__plan=world.plan.pk).select_related("pull")
    if names := sorted(row.job_name for row in rows):
        named = chance.choice(names)
        if any(job["metadata"]["name"] == named for job in world.store.list(JOB, NAMESPACE)[0]):
            _delete(world, named)
        job = {"metadata": {"name": named}, "spec": {"template": {"metadata": {}, "spec": THEIRS}}}
        world.line.notify(KUBECTL, "POST", JOBS, job)


def _delete(world: World, named: str) -> None:
    world.line.notify(KUBECTL, "DELETE", f"{JOBS}/{named}", {"propagationPolicy": "Background"})


def freeze(world: World, chance: random.Random) -> None:
    people.freeze(world, chance, "bob")


STOPPING: tuple[Act, ...] = (cancel, cancel, edit, end, freeze, freeze, people.stop, people.stop)
CHANGING: tuple[Act, ...] = (delete_job, take_name, take_name, people.take_lease, people.lead_elsewhere)
EVENTS: tuple[Act, ...] = (*STOPPING, *CHANGING, people.behind_its_back, people.anything)
