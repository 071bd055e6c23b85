"""What people do to a plan, as `rollouts.commands.plan_control` lets them; a refusal does nothing."""

from rollouts.lifecycle import PLAN_MOVES, PlanState, StageState, TargetState
from tests.rollouts.engine.decide.model.worker import Worker

OPEN = (StageState.OPENING, StageState.PROMOTING, StageState.SOAKING)
CLOSED = (StageState.PASSED, StageState.ABANDONED)


def halt(worker: Worker) -> None:
    if worker.state is not PlanState.ROLLING_BACK and PlanState.HALTED in PLAN_MOVES[worker.state]:
        worker.state = PlanState.HALTED
        for stage in worker.stages[:-1]:
            if stage.state in OPEN:
                stage.state = StageState.HALTED


def pause(worker: Worker) -> None:
    worker.is_paused = True


def resume(worker: Worker) -> None:
    worker.is_paused = False
    worker.accept_template_change()
    for stage in worker.stages:
        stage.failures.clear()
    if worker.state is PlanState.HALTED:
        worker.state = PlanState.PROMOTING if worker.is_armed else PlanState.HOLDING
        for stage in worker.stages:
            if stage.state is StageState.HALTED:
                goes_on = stage.has_waves and stage.is_approved
                stage.state = StageState.PROMOTING if goes_on else StageState.OPENING


def roll_back(worker: Worker) -> None:
    if worker.is_write_intended and PlanState.ROLLING_BACK in PLAN_MOVES[worker.state]:
        _close(worker)
        worker.state = PlanState.ROLLING_BACK


def abort(worker: Worker) -> None:
    if PlanState.ABORTING in PLAN_MOVES[worker.state]:
        _close(worker)
        worker.state = PlanState.ABORTING


def hand_over(worker: Worker) -> None:
    if worker.state is PlanState.ABORTING:
        worker.accept_template_change()
        worker.handed_to = worker.world.version


def hand_over_where_asked(worker: Worker) -> None:
    """And put back into the operator's queue what it gave up on after that."""
    if "A person decides: hand over the nodes, or restore" in worker.waiting_for:
        hand_over(worker)
    for node in worker.world.nodes.values():
        if worker.handed_to and node.state == "upgrade-failed":
            node.state = "upgrade-required"


def _close(worker: Worker) -> None:
    worker.is_paused = False
    for stage in worker.stages[:-1]:
        if stage.state not in CLOSED:
            stage.state = StageState.ABANDONED


def freeze(worker: Worker, name: str, *, whole: bool) -> None:
    """The fleet, or the pool of a node."""
    worker.is_frozen = worker.is_frozen or whole
    worker.frozen.add(name)


def lift(worker: Worker) -> None:
    worker.is_frozen = False
    worker.frozen.clear()


def approve(worker: Worker) -> None:
    for stage in worker.stages[:-1]:
        stage.is_approved = stage.is_approved or stage.state is StageState.OPENING


def exclude_a_failed_node(worker: Worker) -> None:
    for stage in worker.stages:
        for row in stage.targets.values():
            if row.state is TargetState.FAILED:
                row.state = TargetState.EXCLUDED
                return


def try_a_failed_node_again(worker: Worker) -> None:
    """One whose driver pod was never made anew: any other is refused."""
    goes_on = (StageState.PROMOTING, StageState.SOAKING, StageState.HALTED)
    if worker.state not in (PlanState.PROMOTING, PlanState.HALTED):
        return
    for stage in worker.stages[:-1]:
        for name, row in stage.targets.items():
            node = worker.world.nodes.get(name)
            if stage.state not in goes_on or row.state is not TargetState.FAILED or node is None:
                continue
            if node.is_selected and node.state == "upgrade-failed" and node.template != worker.world.template:
                row.state, row.is_retried = TargetState.HELD, True
                worker.holds[name].is_wanted = True
                return
