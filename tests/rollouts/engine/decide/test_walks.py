"""The real decisions against a model of the operator, while people, nodes and workers do what they like.

Each walk is a seed: the same one walks the same way again.
"""

import random
from datetime import timedelta

import pytest

from rollouts.lifecycle import PLAN_FINAL, PlanState, StageState, TargetState
from tests.rollouts.engine.decide.model import person
from tests.rollouts.engine.decide.model.worker import StageRow, TargetRow, Worker
from tests.rollouts.engine.decide.model.world import BAD_KERNEL, NEW, OLD, Node, World, version_of

WILD_TICKS, CALM_TICKS = 60, 400
OTHER = "999.9.9"  # what somebody else writes into the object
GIVE_UP_AFTER = 200  # a stage whose every node was taken out passes for nobody: somebody goes back in the end
TICK = timedelta(seconds=30)
WALKS = 40
FOUND = (341, 347, 1245)  # walks that once had no end: the template was changed again in the rollback
PEOPLE = [person.halt, person.pause, *[person.resume] * 4, person.roll_back, person.abort, person.hand_over]


def a_worker(chance: random.Random, *, has_bad_kernel: bool, may_die: bool) -> Worker:
    kernels = ["5.15", "5.15", BAD_KERNEL] if has_bad_kernel and chance.random() < 0.6 else ["5.15"]
    names = [f"n{number}" for number in range(chance.randint(4, 7))]
    world = World({name: Node(name, chance.choice(kernels)) for name in names}, max_parallel=chance.randint(1, 3))
    canary = chance.randint(1, 2)
    stages = [
        StageRow(0, targets={name: TargetRow() for name in names[:canary]}),
        StageRow(1, targets={name: TargetRow() for name in names[canary:-1]}),  # the last one is in no stage
        StageRow(2, is_rollback=True),
    ]
    worker = Worker(world, stages, max_unavailable=chance.randint(1, 2), may_die=lambda: False)
    if may_die:
        worker.may_die = lambda: chance.random() < 0.05
        worker.is_late = lambda: chance.random() < 0.3
    return worker


def disturb(worker: Worker, chance: random.Random, number: int) -> None:
    """Something happens that nobody asked us about."""
    world, name = worker.world, chance.choice(list(worker.world.nodes))
    match chance.randint(0, 94):
        case 0 | 1:
            node = world.nodes[name]
            node.cordoned_by_others = not node.cordoned_by_others
        case 2:
            world.recreate_driver_pod(name)
        case 3:
            world.join(f"joined-{number}", "5.15")
        case 4:
            world.nodes[name].has_label = False
        case 5:
            person.exclude_a_failed_node(worker)
        case 6 | 7 | 8:
            world.nodes[name].evictions_to_fail = chance.randint(1, 5)
        case 9:
            world.nodes[name].crashes_for = chance.randint(3, 30)
        case 10 | 11 | 12 | 13:
            change_the_object(world, name, chance, number)
        case how if how > 13:
            steer(worker, name, how, number)


def steer(worker: Worker, name: str, how: int, number: int) -> None:
    """Somebody freezes, lifts, approves, or wants another try."""
    if how <= 16:
        person.freeze(worker, name, whole=number % 3 == 0)
    elif how <= 20:
        person.lift(worker)
    elif how <= 30:
        person.try_a_failed_node_again(worker)
    elif how <= 32:
        worker.world.version = OTHER
    elif how > 62:
        person.approve(worker)


def change_the_object(world: World, name: str, chance: random.Random, number: int) -> None:
    """What it selects, or what it makes driver pods of."""
    if chance.random() < 0.5:
        world.env = chance.choice([0, number])
    else:
        go_away(world, name, chance)


def go_away(world: World, name: str, chance: random.Random) -> None:
    """Out of the object's selection, back into it, or deleted."""
    if not world.nodes[name].is_selected:
        world.come_back(name)
    elif chance.random() < 0.5 or len(world.nodes) <= 2:
        world.leave(name)
    else:
        world.delete(name)


def step(worker: Worker) -> None:
    releases_before = {name for name, node in worker.world.nodes.items() if node.released_by_us}
    is_released = worker.state in (PlanState.PROMOTING, PlanState.ROLLING_BACK) and not worker.is_paused
    may_release = is_released or (worker.state is PlanState.ABORTING and worker.handed_to)
    frozen = {name for name in worker.world.nodes if worker.holds_back(name)}
    is_forward = worker.state is PlanState.PROMOTING
    worker.round()
    assert worker.waiting_for, "nothing is said of why it waits"
    fresh = {name for name, node in worker.world.nodes.items() if node.released_by_us} - releases_before
    assert may_release or not fresh, f"{fresh} let go while {worker.state}, paused: {worker.is_paused}"
    assert not (is_forward and fresh & frozen), f"{fresh & frozen} let go though frozen"
    worker.world.tick()
    worker.now += TICK
    at_work = [node.name for node in worker.world.nodes.values() if node.released_by_us and node.is_at_work]
    assert len(at_work) <= worker.max_unavailable, f"{at_work} at once, where {worker.max_unavailable} may be"


def calm_down(worker: Worker, chance: random.Random) -> None:
    """Nothing unforeseen happens any more, and somebody looks after the plan, until it is over."""
    worker.may_die, worker.interrupt, worker.is_late = (lambda: False), (lambda: None), (lambda: False)
    for tick in range(CALM_TICKS):
        if worker.state in PLAN_FINAL:
            return
        for node in worker.world.nodes.values():
            node.cordoned_by_others = False
        person.approve(worker)
        person.lift(worker)
        if worker.is_paused:
            person.resume(worker)
        if worker.state is PlanState.ABORTING:
            person.hand_over_where_asked(worker)
        elif worker.world.version == OTHER:
            goes_forward = worker.is_write_intended and worker.state is not PlanState.ROLLING_BACK
            worker.world.version = NEW if goes_forward else OLD
        if worker.state is PlanState.HALTED or tick == GIVE_UP_AFTER:
            (person.roll_back if worker.is_write_intended else person.abort)(worker)
        step(worker)
    pytest.fail(f"never ends: {worker.state}: {worker.waiting_for}\n{worker.world}\n{worker.stages}")


def check_the_end(worker: Worker) -> None:
    nodes = worker.world.nodes
    if worker.state is PlanState.PROMOTED:
        wanted = [
            name
            for stage in worker.stages[:-1]
            for name, row in stage.targets.items()
            if row.state is not TargetState.EXCLUDED
        ]
        assert not [node.name for node in nodes.values() if node.has_label and not node.is_selected], "a label is left"
        assert all(version_of(nodes[name].template) == worker.seen[name].loaded == NEW for name in wanted), (
            "promoted with a bad node"
        )
        assert all(stage.state is StageState.PASSED for stage in worker.stages[:-1])
    elif worker.state is PlanState.ROLLED_BACK:
        back = worker.rollback_stage.targets
        left_out = {name for name, row in back.items() if row.state is TargetState.EXCLUDED}
        assert not [node.name for node in nodes.values() if node.has_label and not node.is_selected], "a label is left"
        returned = [node for node in nodes.values() if node.name not in left_out and node.is_selected]
        assert all(version_of(node.template) == worker.seen.get(node.name, node).loaded == OLD for node in returned), (
            "rolled back, and not every node is back"
        )
        assert not [node.name for node in returned if node.has_label], "a label is left"
    else:
        assert worker.state is PlanState.ABORTED
        is_of_others = worker.world.version != OLD
        for node in nodes.values():  # one that joined while the version went back is the operator's, as any new node is
            seen = worker.seen.get(node.name, node)  # a driver pod may crash or come up after the last look
            is_as_it_was = seen.loaded == OLD and seen.template in (OLD, worker.world.template)
            is_astray = worker.is_write_intended and not is_as_it_was and node.is_selected
            if is_of_others:  # handed over to it, or held by nobody when it came
                assert not node.has_label or node.state == "upgrade-failed", f"{node} after the end"
                continue
            assert node.has_label == is_astray, f"{node} after the end"


def racks_of(worker: Worker, chance: random.Random) -> None:
    """Three racks, with a budget that another plan takes from as well."""
    worker.racks = {name: f"r{number % 3}" for number, name in enumerate(sorted(worker.world.nodes))}
    worker.most_per_rack = chance.randint(1, 2)


def another_plan(worker: Worker, chance: random.Random) -> None:
    """It takes a place where there is one, and gives one back, between two rounds and within one."""
    if worker.out_by_others and chance.random() < 0.5:
        worker.out_by_others.pop(next(iter(worker.out_by_others)))
        return
    rack = chance.choice(["r0", "r1", "r2"])
    mine = [name for name in worker.disruptions if worker.racks.get(name) == rack]
    others = [name for name, where in worker.out_by_others.items() if where == rack]
    if len(mine) + len(others) < worker.most_per_rack:
        worker.out_by_others[f"other-{rack}-{len(others)}"] = rack


def check_racks(worker: Worker) -> None:
    for rack in set(worker.racks.values()):
        on_their_way = [
            node.name
            for node in worker.world.nodes.values()
            if node.released_by_us and node.is_at_work and worker.racks.get(node.name) == rack
        ]
        others = [name for name, where in worker.out_by_others.items() if where == rack]
        assert len(on_their_way) + len(others) <= worker.most_per_rack, f"{on_their_way}, {others} of {rack} at once"


def walk(seed: int, *, has_bad_kernel: bool = True, may_die: bool = True, is_wild: bool = True) -> Worker:
    chance = random.Random(seed)
    worker = a_worker(chance, has_bad_kernel=has_bad_kernel, may_die=may_die)
    if is_wild:
        worker.interrupt = lambda: chance.choice(PEOPLE)(worker) if chance.random() < 0.02 else None
        for number in range(WILD_TICKS):
            disturb(worker, chance, number)
            step(worker)
            if worker.state in PLAN_FINAL:
                break
    calm_down(worker, chance)
    check_the_end(worker)
    return worker


@pytest.mark.parametrize("seed", [*range(WALKS), *FOUND])
def test_whatever_happens_nothing_is_released_unbidden_and_everything_ends(seed: int):
    """Z1, Z3, Z4, Z5, Z6."""
    walk(seed)


@pytest.mark.parametrize("seed", range(40))
def test_no_rack_has_more_on_their_way_than_its_budget_whatever_two_plans_do(seed: int):
    """Z15."""
    chance, other = random.Random(seed), random.Random(-1 - seed)
    worker = a_worker(chance, has_bad_kernel=True, may_die=True)
    racks_of(worker, other)
    worker.interrupt = lambda: another_plan(worker, other)
    for number in range(WILD_TICKS):
        disturb(worker, chance, number)
        another_plan(worker, other)
        step(worker)
        check_racks(worker)
        if worker.state in PLAN_FINAL:
            break
    worker.out_by_others.clear()
    calm_down(worker, chance)
    check_the_end(worker)


@pytest.mark.parametrize("seed", range(8))
def test_a_good_driver_that_nobody_disturbs_arrives_everywhere(seed: int):
    worker = walk(seed, has_bad_kernel=False, may_die=False, is_wild=False)

    assert worker.state is PlanState.PROMOTED


@pytest.mark.parametrize("seed", range(8))
def test_killed_workers_alone_change_nothing_about_the_end(seed: int):
    chance = random.Random(seed)
    worker = a_worker(chance, has_bad_kernel=False, may_die=True)

    for _ in range(CALM_TICKS):
        person.approve(worker)
        step(worker)
        if worker.state in PLAN_FINAL:
            break

    assert worker.state is PlanState.PROMOTED
    check_the_end(worker)


@pytest.mark.parametrize("seed", range(8))
def test_a_driver_that_fails_on_one_kernel_gets_no_further_than_its_first_wave(seed: int):
    """The budget bounds what a bad driver can break, and all of it goes back."""
    chance = random.Random(seed)
    worker = a_worker(chance, has_bad_kernel=False, may_die=False)
    for node in worker.world.nodes.values():
        node.kernel = BAD_KERNEL
    broken: set[str] = set()

    for _ in range(CALM_TICKS):
        person.approve(worker)
        step(worker)
        broken |= {node.name for node in worker.world.nodes.values() if node.is_broken}
        if worker.state is PlanState.HALTED:
            person.roll_back(worker)
        if worker.state in PLAN_FINAL:
            break

    assert 0 < len(broken) <= worker.max_unavailable
    assert broken <= set(worker.stages[0].targets)
    assert worker.state is PlanState.ROLLED_BACK
    check_the_end(worker)


@pytest.mark.parametrize("seed", range(12))
def test_nodes_that_could_not_be_emptied_arrive_once_somebody_tries_them_again(seed: int):
    """Z5: held, queued, let go within the budget; with workers that die on the way in every other walk."""
    chance = random.Random(seed)
    worker = a_worker(chance, has_bad_kernel=False, may_die=seed % 2 == 1)
    for name in chance.sample([*worker.stages[0].targets, *worker.stages[1].targets], 2):
        worker.world.nodes[name].evictions_to_fail = chance.randint(1, 3)
    tried = 0

    for _ in range(CALM_TICKS):
        person.approve(worker)
        step(worker)
        if worker.state is PlanState.HALTED:
            tried += any(row.state is TargetState.FAILED for stage in worker.stages for row in stage.targets.values())
            person.try_a_failed_node_again(worker)
            person.resume(worker)
        elif worker.is_paused:
            person.resume(worker)
        if worker.state in PLAN_FINAL:
            break

    assert tried >= 2
    assert worker.state is PlanState.PROMOTED, f"{worker.waiting_for}\n{worker.world}\n{worker.stages}"
    check_the_end(worker)
