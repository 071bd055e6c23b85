"""What is wrong with a node, a cluster, or our sight of it: one pure file a rule. To add one, add its line here."""

from typing import Any

from health.rules.allocatable_below_expected import AllocatableBelowExpected
from health.rules.base import Rule
from health.rules.cluster_not_seen import ClusterNotSeen
from health.rules.cluster_unwatched import ClusterUnwatched
from health.rules.inference_on_time_slices import InferenceOnTimeSlices
from health.rules.mig_change_stuck import MigChangeStuck
from health.rules.observer_behind import ObserverBehind
from health.rules.operator_down import OperatorDown
from health.rules.pods_failing import PodsFailing

RULES: tuple[Rule[Any], ...] = (
    AllocatableBelowExpected(),
    InferenceOnTimeSlices(),
    MigChangeStuck(),
    PodsFailing(),
    ObserverBehind(),
    OperatorDown(),
    ClusterNotSeen(),
    ClusterUnwatched(),
)
