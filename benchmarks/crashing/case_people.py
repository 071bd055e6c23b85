"""What people do to cases, operations and their nodes, on the pages and with kubectl. Each notes what was answered."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from benchmarks.crashing import people
from benchmarks.crashing.case_actors import Answers, provider_id
from benchmarks.crashing.case_neighbours import EVENT, has_no_service, is_silent
from benchmarks.crashing.case_world import CaseWorld
from benchmarks.crashing.jobs import NAMESPACE, Fate
from benchmarks.crashing.nodes_seen import CORDONED_BY, OUT_OF_SERVICE_BY
from benchmarks.crashing.tenants import REPLICAS, TEAM, TRAINING
from benchmarks.crashing.world import KUBECTL, NEW
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Node
from gpu.cordons import is_in_breakfix
from maintenance import automatic, commands
from maintenance.actors.base import UNCLEAR
from maintenance.acts import acts_of
from maintenance.automatic_cases import set_switches
from maintenance.lifecycle import FINAL, CaseState, RepairAnswer
from maintenance.models import AutomaticQuarantine, NodeCase, Repair
from maintenance.new_node_settings import GateSettings, set_gate
from maintenance.queries import facts_of
from maintenance.refusals import CaseRefused
from maintenance.repair_round import ANNOTATION_UNCLEAR
from maintenance.triggers import Mode
from operations import commands as operations
from operations.external_work import record_work
from operations.lifecycle import UNFINISHED, OperationState
from operations.models import NodeTestJob, Operation, OperationNode, Quarantine
from operations.refusals import BadOperation, OperationRefused
from people.rights import NotAllowed
from rollouts.commands import image_pulls, plan_drafts
from rollouts.commands.refusals import Refusal
from rollouts.models import Plan
from simulator.actors.objects import Obj, annotations, is_unschedulable, labels, name, spec, uid
from simulator.kinds import DISRUPTION_BUDGET, JOB, NODE

NO = (Refusal, CaseRefused, OperationRefused, BadOperation, NotAllowed, LostRace, IllegalMove)
WHY = "A schedule wants it."
FOCUSED = 0.8  # of what happens to a node: to the one that is about to be written
OTHER = "580.105.08"  # to which a draft is edited
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
BACKGROUND = {"propagationPolicy": "Background"}
OURS = "operation-"  # how a cordon of an operation is marked
ASKING = {"ask_owners": True, "jobs_wait_s": 60, "deadline_s": 1200}  # options of a drain


@dataclass(frozen=True)
class CaseCourse:
    """What happens to nodes that nobody disturbs, and what people do about it."""

    cases: int = 0  # nodes that a person suspects
    first: str = "drain"  # the operation that a suspect gets first
    drained: int = 0  # nodes that are drained without a case
    faults: int = 0  # nodes whose fault a trigger reads
    by: str = "person"  # who reboots them; blank: nobody has to
    is_overridden: bool = False  # people return them without a validation
    is_tested: bool = False  # a test Job validates them, and not the word of a person
    is_automatic: bool = False  # drain, repair, test and release are automatic, too
    new: int = 0  # nodes that join a pool whose new nodes are held
    pulled: int = 0  # nodes that pull an image
    of_plan: bool = False  # it is the image of a plan's draft
    fate: Fate = Fate.PULLED
    off: int = 0  # nodes without power, which are marked out of service
    breakfix: int = 0  # nodes whose break-fix by NVSentinel is cancelled
    asked: int = 0  # nodes that are drained once the owners of jobs were asked

    @property
    def between_s(self) -> int:
        """Returns the seconds between two ticks: automatic steps wait for minutes."""
        return 60 if self.is_automatic else 15


def begin(ground: CaseWorld, course: CaseCourse) -> None:
    nodes = ground.nodes
    for called in nodes[: course.cases]:
        open_case(ground, called)
    if course.drained:
        start(ground, "drain", nodes[: course.drained])
    _begin_pull(ground, course)
    _begin_beside_others(ground, course)
    if course.is_automatic:
        set_steps(ground, is_on=True)
    if course.new:
        set_gate(ground.pool, GateSettings(is_on=True, test="dcgm-3"), **given(ground))
        ground.world.clock.move(60)
    for called in nodes[: course.new]:
        for pod in ground.tenants.pods():
            if spec(pod)["nodeName"] == called:
                ground.tenants.end(name(pod))
        old = leave(ground, called)
        ground.tenants.step()  # its pods start elsewhere
        join(ground, old)
    for called in nodes[: course.faults]:
        ground.break_node(called)


def _begin_beside_others(ground: CaseWorld, course: CaseCourse) -> None:
    """A power cut, NVSentinel's break-fix, or a job whose owners a drain asks."""
    off, broken, asked = (ground.nodes[:number] for number in (course.off, course.breakfix, course.asked))
    for called in off:
        ground.neighbours.silence(called)
    if off:
        start(ground, "quarantine", off)
    for called in broken:
        ground.neighbours.break_in(ground.world.store.get(NODE, called))
    if asked:
        ground.tenants.begin_job()
        ground.tenants.step()
        start(ground, "drain", asked, options=ASKING)


def set_steps(ground: CaseWorld, *, is_on: bool) -> None:
    """Somebody switches the automatic drains and repairs of the pool."""
    switched = {"drain": is_on, "repair": "nvsentinel-reboot" if is_on else "", **given(ground)}
    attempt(ground, "ada", "switch steps", lambda: set_switches(ground.pool, **switched))


def _begin_pull(ground: CaseWorld, course: CaseCourse) -> None:
    ground.world.jobs.fate = course.fate
    if course.of_plan:
        ask_image(ground, course.pulled)
    elif course.pulled:
        start(ground, "pull-image", ground.nodes[: course.pulled], options={"pulled_image": "registry.example/llm:1"})


def draft_of(ground: CaseWorld) -> Plan:
    return Plan.objects.select_related("cluster").get(pk=ground.world.plan.pk)


def ask_image(ground: CaseWorld, nodes_each: int = 2) -> None:
    asked = {"reason": WHY, "actor": ground.world.person("ada"), "now": ground.world.clock()}
    act = partial(image_pulls.ask, draft_of(ground), nodes_each=nodes_each, **asked)
    attempt(ground, "ada", "draft asks", act)


def open_case(ground: CaseWorld, called: str) -> None:
    node = Node.objects.filter(cluster=ground.world.cluster, name=called).first()
    if node is not None:
        attempt(ground, "ada", f"case {node.uid}", lambda: commands.open_case(node, **given(ground)))


def given(ground: CaseWorld, actor: str = "ada") -> dict[str, Any]:
    return {"actor": actor, "reason": WHY, "now": ground.world.clock()}


def attempt(ground: CaseWorld, who: str, verb: str, act: Callable[[], object]) -> bool:
    """Returns whether it was answered. A person's word counts from then on."""
    try:
        act()
    except NO:
        return False
    ground.world.say(who, verb)
    return True


def start(
    ground: CaseWorld, kind: str, names: Collection[str], *, actor: str = "ada",
    options: Mapping[str, Any] = MappingProxyType({}),
) -> None:  # fmt: skip
    nodes = list(Node.objects.filter(cluster=ground.world.cluster, name__in=list(names)).order_by("name"))
    if nodes:
        asked: dict[str, Any] = {"typed_count": len(nodes), "options": dict(options), **given(ground, actor)}
        attempt(ground, actor, kind, lambda: operations.start(ground.world.cluster, kind, nodes, **asked))


def cancel_breakfix(ground: CaseWorld, names: Collection[str], *, actor: str = "ada") -> None:
    """Somebody cancels NVSentinel's break-fix, and has read the events that the rows had then."""
    cluster = ground.world.cluster
    nodes = list(Node.objects.filter(cluster=cluster, name__in=list(names)).order_by("name"))
    asked = {"actor": actor, "now": ground.world.clock()}
    started: list[Operation] = []

    def cancel() -> None:
        seen = operations.preview(cluster, "cancel-breakfix", nodes, **asked).sentence
        given = {"typed_count": len(nodes), "seen": seen, "reason": WHY, **asked}
        started.append(operations.start(cluster, "cancel-breakfix", nodes, **given))

    if nodes and attempt(ground, actor, "cancel-breakfix", cancel):
        for node in nodes:
            ground.world.say(actor, f"saw {started[0].mark} {node.name} {node.annotations.get(EVENT, '')}")


# Towards the end of every case


def look_after(ground: CaseWorld, course: CaseCourse) -> None:
    """Does what the pages offer next, for every node, until it is back in service."""
    _go_on_with_operations(ground)
    wanted: dict[str, list[str]] = defaultdict(list)
    cases = list(NodeCase.objects.open().select_related("cluster", "finding").order_by("pk"))
    facts = facts_of(cases)
    busy = _busy()
    for case in cases:
        if case.is_automatic and not (case.waits_for and facts[case.pk].is_unschedulable):
            continue
        if case.is_automatic:
            _take_case_over(ground, case)
        elif case.node_uid in busy:
            _let_it_return(ground, course, case, facts[case.pk])
        elif kind := _help(ground, course, case, facts[case.pk]):
            wanted[kind].append(case.node_name)
    for row in Quarantine.objects.in_force().exclude(node_uid__in=[case.node_uid for case in cases]):
        if row.node_uid not in busy:
            is_off = course.off and is_silent(ground.world.store.get(NODE, row.node_name))
            wanted["out-of-service" if is_off else "release"].append(row.node_name)
    if course.breakfix:
        wanted["cancel-breakfix"] = _in_breakfix(ground, busy)
    _start_wanted(ground, wanted)


def _start_wanted(ground: CaseWorld, wanted: dict[str, list[str]]) -> None:
    cancel_breakfix(ground, wanted.pop("cancel-breakfix", ()))
    for called in wanted.pop("out-of-service", ()):
        start(ground, "out-of-service", [called], options={"powered_off": called})
    for kind, names in wanted.items():
        start(ground, kind, names, options={"test": "dcgm-3"} if kind == "test" else {})


def _go_on_with_operations(ground: CaseWorld) -> None:
    for operation in Operation.objects.in_progress():
        if operation.state == OperationState.PAUSED:
            command(ground, "resume", operation)
        elif operation.state == OperationState.PROPOSED and not command(ground, "approve", operation):
            command(ground, "cancel", operation)  # as the refusal says: a node left, or the proposal is old
    given_up = OperationNode.objects.filter(state="cancelled").values_list("operation", flat=True)
    for node in ground.neighbours.marked():
        mark = annotations(node)[OUT_OF_SERVICE_BY].partition(" ")[0]
        if mark not in {f"{OURS}{key}" for key in given_up}:
            ground.boot(name(node))  # the power is back


def _in_breakfix(ground: CaseWorld, busy: Collection[str]) -> list[str]:
    nodes = Node.objects.filter(cluster=ground.world.cluster).exclude(uid__in=busy).order_by("name")
    return [node.name for node in nodes if is_in_breakfix(node.annotations, is_unschedulable=node.is_unschedulable)]


def _busy() -> set[str]:
    """Returns the UIDs of nodes that an operation waits for or works on."""
    rows = OperationNode.objects.filter(state__in=UNFINISHED, operation__in=Operation.objects.in_progress())
    return set(rows.values_list("node_uid", flat=True))


def _help(ground: CaseWorld, course: CaseCourse, case: NodeCase, facts: Any) -> str:
    """Takes the next step of a case. Returns the kind of operation that it needs; blank: none."""
    if facts.is_uncordoned:
        return "quarantine"
    match CaseState(case.state):
        case CaseState.SUSPECT:
            return course.first
        case CaseState.QUARANTINED | CaseState.DRAIN_BLOCKED if not course.is_overridden:
            return "drain"
        case CaseState.IN_REPAIR:
            _reboot(ground, case)
            return ""
        case CaseState.DRAINED if course.by and (case.repaired_at is None or case.repaired_at < case.fault_at):
            if repair(ground, case, by=course.by):
                return ""
        case CaseState.PROBATION:
            ground.mend(case.node_name)
            if facts.lacks_validation:
                validate(ground, case, "passed")
            return "release" if facts.has_quarantine else ""
        case state if state in FINAL or state == CaseState.DRAINING:
            return ""
    return _validate_and_release(ground, course, case, facts)


def _validate_and_release(ground: CaseWorld, course: CaseCourse, case: NodeCase, facts: Any) -> str:
    if course.is_tested and facts.why_no_return and any(act.key == "test" for act in acts_of(facts)):
        return "test"
    _let_it_return(ground, course, case, facts)
    return "" if facts.why_no_return else "release"


def _let_it_return(ground: CaseWorld, course: CaseCourse, case: NodeCase, facts: Any) -> None:
    """Does what a release waits for, where the page of the case offers it."""
    offered = {act.key for act in acts_of(facts)}
    if "override" in offered and (course.is_overridden or ("validate" not in offered and facts.is_busy)):
        override(ground, case)
    elif "validate" in offered and facts.why_no_return:
        validate(ground, case, "passed")


def _reboot(ground: CaseWorld, case: NodeCase) -> None:
    """Whoever is asked in person, or by a request that was read back, reboots the node and answers.

    A person answers for a program of which nobody knows whether it has the request.
    """
    repair = Repair.objects.open().filter(case=case).first()
    if repair is None or (repair.by != "person" and repair.sent_at is None and not repair.answer):
        return
    if repair.answer and repair.by != "person":  # somebody said that it is done, and no reboot is proven
        answer(ground, case, RepairAnswer.UNCLEAR)
    elif repair.by == "person" or (repair.by == "webhook" and repair.accepted_at):
        ground.boot(case.node_name)
        answer(ground, case, RepairAnswer.DONE, request=repair.request if repair.by == "webhook" else "")
    elif repair.accepted_at is None and repair.says.startswith((UNCLEAR, ANNOTATION_UNCLEAR)):
        answer(ground, case, RepairAnswer.UNCLEAR)


def repair(ground: CaseWorld, case: NodeCase, *, by: str) -> bool:
    """Asks for a reboot; where two did not help, nobody asks for a third."""
    asked = {"kind": "reboot", "by": by, **given(ground)}
    return attempt(ground, "ada", f"repair {case.node_uid}", lambda: commands.ask_repair(case, **asked))


def answer(ground: CaseWorld, case: NodeCase, answer: str, *, request: str = "") -> None:
    said = {"answer": answer, "request": request, **given(ground, "bob")}
    attempt(ground, "bob", f"{answer} {case.node_uid}", lambda: commands.answer_repair(case, **said))


def validate(ground: CaseWorld, case: NodeCase, result: str) -> None:
    ground.world.clock.move(0.001)  # newer than what came before
    tested = {"result": result, "test": "dcgmi diag -r 3", **given(ground)}
    verb = f"{result} {case.node_uid}"
    attempt(ground, "ada", verb, lambda: commands.record_validation(case, **tested))


def override(ground: CaseWorld, case: NodeCase) -> None:
    verb = f"override {case.node_uid}"
    attempt(ground, "bob", verb, lambda: commands.override(case, **given(ground, "bob")))


def command(ground: CaseWorld, verb: str, operation: Operation) -> bool:
    acts = {
        "pause": operations.pause, "resume": operations.resume, "retry": operations.retry,
        "cancel": operations.cancel, "approve": operations.approve,
    }  # fmt: skip
    return attempt(ground, "bob", f"{verb} {operation.mark}", lambda: acts[verb](operation, **given(ground, "bob")))


def tidy(ground: CaseWorld) -> None:
    """Undoes what somebody did with kubectl, and ends every stop."""
    world = ground.world
    people.lift_all(world, "ada")
    people.tidy_cluster(world)
    world.jobs.fate = Fate.PULLED
    world.line.arrive()
    ground.neighbours.end_remediations()
    ground.neighbours.recover()
    ground.tenants.end_job()
    for node in world.store.list(NODE)[0]:
        if has_no_service(node) and OUT_OF_SERVICE_BY not in annotations(node):
            _patch(ground, name(node), {"spec": {"taints": None}})
        owner = annotations(node).get(CORDONED_BY, "")
        body: dict[str, Any] = {}
        if is_unschedulable(node) and not owner.startswith(OURS):
            body = {"spec": {"unschedulable": None}, "metadata": {"annotations": {CORDONED_BY: None}}}
        elif owner and not is_unschedulable(node) and not Quarantine.objects.of_nodes([uid(node)]).exists():
            body = {"metadata": {"annotations": {CORDONED_BY: None}}}  # whose note somebody else's uncordon left
        if body:
            _patch(ground, name(node), body)
        if not any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"]):
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
            world.line.notify("kubelet", "PATCH", f"/api/v1/nodes/{name(node)}/status", ready)
    for app, replicas in REPLICAS.items():
        _allow(ground, app, replicas - 1)


# What comes in between


def _some(ground: CaseWorld, chance: random.Random) -> str:
    return ground.focus if ground.focus and chance.random() < FOCUSED else chance.choice(ground.nodes)


def _patch(ground: CaseWorld, called: str, body: dict[str, Any]) -> None:
    ground.world.line.notify(KUBECTL, "PATCH", f"/api/v1/nodes/{called}", body)


def _steer(verb: str) -> Event:
    def act(ground: CaseWorld, chance: random.Random) -> None:
        if there := list(Operation.objects.in_progress()):
            command(ground, verb, chance.choice(there))

    return act


def _freeze(ground: CaseWorld, chance: random.Random) -> None:
    people.freeze(ground.world, chance, "bob")


def _switch(ground: CaseWorld, chance: random.Random) -> None:
    people.stop(ground.world, chance)


def _lease(ground: CaseWorld, chance: random.Random) -> None:
    people.take_lease(ground.world, chance)


def _begin_another(ground: CaseWorld, chance: random.Random) -> None:
    """A second person acts on the same nodes, in bulk."""
    kind = chance.choice(["quarantine", "drain", "release"])
    start(ground, kind, chance.sample(ground.nodes, chance.randint(1, len(ground.nodes))), actor="bob")


def _suspect(ground: CaseWorld, chance: random.Random) -> None:
    open_case(ground, _some(ground, chance))


def _of_a_case(act: Callable[[CaseWorld, NodeCase], object]) -> Event:
    def do(ground: CaseWorld, chance: random.Random) -> None:
        if there := list(NodeCase.objects.open().select_related("cluster", "finding").order_by("pk")):
            act(ground, chance.choice(there))

    return do


def _close(ground: CaseWorld, case: NodeCase) -> None:
    attempt(ground, "bob", f"close {case.node_uid}", lambda: commands.close(case, **given(ground, "bob")))


def _fault(ground: CaseWorld, chance: random.Random) -> None:
    ground.break_node(_some(ground, chance))


def _storm(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    for called in ground.nodes:
        ground.break_node(called)


def reset_breaker(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    row = AutomaticQuarantine.objects.select_related("pool__cluster").get()
    attempt(ground, "ada", "reset", lambda: automatic.reset_breaker(row, **given(ground)))


def _cordon(ground: CaseWorld, chance: random.Random) -> None:
    _patch(ground, _some(ground, chance), {"spec": {"unschedulable": True}})


def _uncordon(ground: CaseWorld, chance: random.Random) -> None:
    _patch(ground, _some(ground, chance), {"spec": {"unschedulable": None}})


def _take_case_over(ground: CaseWorld, case: NodeCase) -> None:
    attempt(ground, "bob", f"take-over {case.node_uid}", lambda: commands.take_over(case, **given(ground, "bob")))


def _end_steps(ground: CaseWorld, chance: random.Random) -> None:
    """Somebody switches automatic steps off, or the mode in which there are any."""
    if chance.random() < 0.5:
        set_steps(ground, is_on=False)
    else:
        change = {"mode": Mode.SUGGEST, **given(ground)}
        attempt(ground, "ada", "mode suggest", lambda: automatic.change_mode(ground.pool, **change))


def _spoil_tests(ground: CaseWorld, chance: random.Random) -> None:
    ground.world.jobs.fate = chance.choice([Fate.CRASHED, Fate.CRASHED, Fate.NO_POD, Fate.NO_ANSWER, Fate.NO_ROOM])


def _ask_image(ground: CaseWorld, chance: random.Random) -> None:
    ask_image(ground, chance.randint(1, 3))


def _edit_draft(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    """The draft goes elsewhere from now on. An image that was asked for before is not needed any more."""
    plan = draft_of(ground)
    change = {"title": "", "to_version": OTHER if plan.to_version == NEW else NEW, "expected_revision": plan.revision}
    change |= {"stages": plan_drafts.stages_of(plan), "actor": ground.world.person("bob"), "now": ground.world.clock()}
    attempt(ground, "bob", "draft edited", lambda: plan_drafts.edit(plan, **change))


def _discard_draft(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    gone = {"actor": ground.world.person("bob"), "reason": WHY, "now": ground.world.clock()}
    attempt(ground, "bob", "draft discarded", lambda: plan_drafts.discard(draft_of(ground), **gone))


def _delete_job(ground: CaseWorld, chance: random.Random) -> None:
    if there := [name(job) for job in ground.world.store.list(JOB, NAMESPACE)[0]]:
        ground.world.line.notify(KUBECTL, "DELETE", f"{JOBS}/{chance.choice(there)}", BACKGROUND)


def _take_job_name(ground: CaseWorld, chance: random.Random) -> None:
    """Somebody makes a Job with the name of one of ours, in its place where it is there."""
    world, names = ground.world, sorted(row.job_name for row in NodeTestJob.objects.all())
    if not names:
        return
    named = chance.choice(names)
    if any(name(job) == named for job in world.store.list(JOB, NAMESPACE)[0]):
        world.line.notify(KUBECTL, "DELETE", f"{JOBS}/{named}", BACKGROUND)
    spec_of_pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    theirs = {"metadata": {"name": named}, "spec": {"template": {"metadata": {}, "spec": spec_of_pod}}}
    world.line.notify(KUBECTL, "POST", JOBS, theirs)


def _spoil_answers(ground: CaseWorld, chance: random.Random) -> None:
    ground.actors.answers = chance.choice([each for each in Answers if each is not Answers.TAKES])


def _answer_again(ground: CaseWorld, chance: random.Random) -> None:
    """An answer comes twice, late, or with the id of another case's request."""
    cases = list(NodeCase.objects.select_related("cluster", "finding").order_by("pk"))
    asked = list(Repair.objects.exclude(request="").order_by("pk").values_list("request", flat=True))
    if cases and asked:
        said = chance.choice([RepairAnswer.DONE, RepairAnswer.REFUSED])
        answer(ground, chance.choice(cases), said, request=chance.choice(asked))


def _take_over(ground: CaseWorld, chance: random.Random) -> None:
    """The cordon is somebody else's from now on, whoever wrote it."""
    owner = chance.choice([None, "somebody"])
    body = {"spec": {"unschedulable": True}, "metadata": {"annotations": {CORDONED_BY: owner}}}
    _patch(ground, _some(ground, chance), body)


def _silence(ground: CaseWorld, chance: random.Random) -> None:
    ground.neighbours.silence(_some(ground, chance))


def _answer_once_more(ground: CaseWorld, chance: random.Random) -> None:
    """The power was not off: the kubelet reports again, with the boot ID of before."""
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
    ground.world.line.notify("kubelet", "PATCH", f"/api/v1/nodes/{_some(ground, chance)}/status", ready)


def _boot(ground: CaseWorld, chance: random.Random) -> None:
    ground.boot(_some(ground, chance))


def _untaint(ground: CaseWorld, chance: random.Random) -> None:
    """Somebody removes the taint, our mark of it, or both."""
    body = chance.choice([
        {"spec": {"taints": None}},
        {"metadata": {"annotations": {OUT_OF_SERVICE_BY: None}}},
        {"spec": {"taints": None}, "metadata": {"annotations": {OUT_OF_SERVICE_BY: None}}},
    ])  # fmt: skip
    _patch(ground, _some(ground, chance), body)


def _mark_off(ground: CaseWorld, chance: random.Random) -> None:
    """Somebody cordons a node without power, and marks it out of service."""
    called = _some(ground, chance)
    ground.neighbours.silence(called)
    _patch(ground, called, {"spec": {"unschedulable": True}})
    ground.look()
    start(ground, "out-of-service", [called], options={"powered_off": called}, actor="bob")
    for operation in Operation.objects.filter(state=OperationState.PROPOSED, asked_by="bob"):
        act = partial(operations.approve, operation, **given(ground))
        attempt(ground, "ada", f"approve {operation.mark}", act)


def _break_in(ground: CaseWorld, chance: random.Random) -> None:
    ground.neighbours.break_in(ground.world.store.get(NODE, _some(ground, chance)))


def _end_session(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    ground.neighbours.recover()


def _cancel_session(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    if its := _in_breakfix(ground, _busy()):
        cancel_breakfix(ground, its, actor="bob")


def remediate(ground: CaseWorld, called: str) -> None:
    """A remediator begins on a node, and is seen at work."""
    ground.neighbours.remediate(called)
    record_work(ground.world.cluster.pk, now=ground.world.clock())


def _remediate(ground: CaseWorld, chance: random.Random) -> None:
    remediate(ground, _some(ground, chance))


def _end_job(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    ground.tenants.end_job()


def _remake(ground: CaseWorld, chance: random.Random) -> None:
    """A node is deleted, and another one joins under its name."""
    world, called = ground.world, _some(ground, chance)
    old = world.store.get(NODE, called)
    if is_unschedulable(old) and chance.random() < 0.5:
        return  # seldom in a case: it ends by it
    join(ground, leave(ground, called))


def leave(ground: CaseWorld, called: str) -> Obj:
    """Deletes a node, and returns it."""
    old = ground.world.store.get(NODE, called)
    ground.world.line.notify(KUBECTL, "DELETE", f"/api/v1/nodes/{called}")
    return old


def join(ground: CaseWorld, old: Obj) -> None:
    """Another node joins under the name of an old one, with its labels and status."""
    world, called = ground.world, name(old)
    metadata = {"name": called, "labels": old["metadata"]["labels"]}
    body = {"metadata": metadata, "spec": {"providerID": provider_id(called)}}
    world.line.notify("kubelet", "POST", "/api/v1/nodes", body)
    world.store.patch(NODE, called, {"status": old["status"]}, how="merge", subresource="status")
    world.store.patch(NODE, called, {"spec": {"taints": None}}, how="merge")


def _move_pod(ground: CaseWorld, chance: random.Random) -> None:
    """A pod ends, and starts again elsewhere: of a StatefulSet under its name."""
    pods = ground.tenants.pods()
    if pods:
        ground.tenants.end(name(chance.choice(pods)))
        ground.tenants.step()


def _move_named_pods(ground: CaseWorld, chance: random.Random) -> None:  # noqa: ARG001
    for pod in ground.tenants.pods():
        if name(pod).startswith("db-"):
            ground.tenants.end(name(pod))
    ground.tenants.step()


def _tighten(ground: CaseWorld, chance: random.Random) -> None:
    """A budget allows no eviction any more."""
    app = chance.choice(list(REPLICAS))
    _allow(ground, app, REPLICAS[app])


def _allow(ground: CaseWorld, app: str, least: int) -> None:
    store = ground.world.store
    if store.get(DISRUPTION_BUDGET, app, TEAM)["spec"]["minAvailable"] != least:
        store.patch(DISRUPTION_BUDGET, app, {"spec": {"minAvailable": least}}, TEAM, how="merge")
        ground.world.say("owner", f"budget {app} {least}")
    ground.tenants.count_budgets()


def _past_budget(ground: CaseWorld, chance: random.Random) -> None:
    """A budget allows nothing any more, and somebody asks for one pod past it. Another person may approve that."""
    pods = [pod for pod in ground.tenants.pods() if labels(pod)["app"] != TRAINING]
    if not pods:
        return
    store = ground.world.store
    cordoned = {name(node) for node in store.list(NODE)[0] if is_unschedulable(node)}
    pod = chance.choice([each for each in pods if spec(each)["nodeName"] in cordoned] or pods)
    app = labels(pod)["app"]
    _allow(ground, app, REPLICAS[app])
    node = Node.objects.filter(cluster=ground.world.cluster, name=spec(pod)["nodeName"]).first()
    if node is None:
        return
    options = {"pod": f"{TEAM}/{name(pod)}", "pod_uid": uid(pod), "budget": app}
    asked = {"typed_count": 1, "options": options, **given(ground)}
    attempt(ground, "ada", "delete-pod", lambda: operations.start(ground.world.cluster, "delete-pod", [node], **asked))
    if chance.random() < 0.7:
        for operation in Operation.objects.filter(state=OperationState.PROPOSED):
            command(ground, "approve", operation)


Event = Callable[[CaseWorld, random.Random], object]
STOPPING: tuple[Event, ...] = (_steer("cancel"), _steer("cancel"), _steer("pause"), _freeze, _switch, _lease)
EVICTED: tuple[Event, ...] = (_move_named_pods, _move_named_pods, _move_pod, _tighten, _uncordon, _past_budget)
CHANGED: tuple[Event, ...] = (_take_over, _take_over, _cordon, _uncordon, _remake, _fault, _fault)
REPAIRED: tuple[Event, ...] = (_spoil_answers, _answer_again, _uncordon, _remake, _of_a_case(_take_case_over))
STEPPED: tuple[Event, ...] = (_end_steps, _of_a_case(_take_case_over))
PURPOSE_ENDED: tuple[Event, ...] = (_edit_draft, _discard_draft)
PULLED: tuple[Event, ...] = (
    *STOPPING, _steer("cancel"), _freeze, _edit_draft, _edit_draft, _discard_draft, _spoil_tests, _delete_job,
    _take_job_name, _take_job_name, _begin_another, _remake, _ask_image,
)  # fmt: skip
OFF: tuple[Event, ...] = (_answer_once_more, _answer_once_more, _boot, _untaint, _uncordon, _mark_off, _remake)
BROKEN: tuple[Event, ...] = (*[_break_in] * 4, *[_take_over] * 2, _end_session, _cordon, _uncordon, _cancel_session)
ASKED: tuple[Event, ...] = (_steer("retry"), _end_job, _move_pod, _tighten, _silence)
TESTED: tuple[Event, ...] = (_spoil_tests, _fault, _uncordon, _remake, _end_steps)
ANYTHING: tuple[Event, ...] = (
    *STOPPING, *EVICTED, *CHANGED, *REPAIRED, *TESTED, _steer("retry"), _begin_another, _suspect, _storm, _silence,
    reset_breaker, _remediate, *[_past_budget] * 6,
    _of_a_case(override), _of_a_case(_close),
    _of_a_case(lambda ground, case: validate(ground, case, "failed")),
    _of_a_case(lambda ground, case: validate(ground, case, "passed")),
    _of_a_case(lambda ground, case: answer(ground, case, RepairAnswer.UNCLEAR)),
)  # fmt: skip
