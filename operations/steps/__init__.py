"""The steps that an operation may have. To add one, add a file here and a line below."""

from collections.abc import Iterable, Mapping, Sequence

from fleet.models import Node
from operations.kinds import OperationKind
from operations.steps.base import NodeStep
from operations.steps.cancel_breakfix import CancelBreakfixStep
from operations.steps.cordon import CordonStep
from operations.steps.debug_pod import DebugPodStep
from operations.steps.delete_pod import DeletePodStep
from operations.steps.disown import DisownStep
from operations.steps.drain import DrainStep
from operations.steps.driver_hold import FreeDriverStep, HoldDriverStep
from operations.steps.eviction_trial import EvictionTrialStep
from operations.steps.image_pull import ImagePullStep
from operations.steps.label import LabelStep
from operations.steps.log_bundle import LogBundleStep
from operations.steps.note import NoteStep
from operations.steps.nvsentinel_maintenance import EndMaintenanceStep, StartMaintenanceStep
from operations.steps.options import StepOption
from operations.steps.out_of_service import OutOfServiceStep
from operations.steps.test_job import TestJobStep
from operations.steps.uncordon import UncordonStep

STEPS: dict[str, NodeStep] = {
    step.key: step
    for step in (
        CordonStep(),
        DrainStep(),
        TestJobStep(),
        UncordonStep(),
        DisownStep(),
        HoldDriverStep(),
        FreeDriverStep(),
        LabelStep(),
        NoteStep(),
        DebugPodStep(),
        LogBundleStep(),
        ImagePullStep(),
        EvictionTrialStep(),
        DeletePodStep(),
        OutOfServiceStep(),
        StartMaintenanceStep(),
        EndMaintenanceStep(),
        CancelBreakfixStep(),
    )
}
# By name. Steps that take the same option share it.
OPTIONS: Mapping[str, StepOption] = {option.name: option for step in STEPS.values() for option in step.options}


def offers_on(nodes: Sequence[Node], kinds: Iterable[OperationKind]) -> dict[str, dict[str, str]]:
    """Returns why the pages of nodes do not offer kinds of operations, by UID and kind. Blank: they offer it.

    One query at most, for the nodes of all kinds.
    """
    reasons = {kind.key: STEPS[kind.steps[-1]].why_not_offered(nodes) for kind in kinds}
    return {node.uid: {kind: why.get(node.uid, "") for kind, why in reasons.items()} for node in nodes}
