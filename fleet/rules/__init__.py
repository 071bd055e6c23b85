"""What is wrong with a node, a cluster, or our sight of it: one pure file a rule. To add one, add its line here."""

from datetime import timedelta

from fleet.rules.allocatable_below_expected import AllocatableBelowExpected
from fleet.rules.base import ClusterRule, NodeRule
from fleet.rules.cluster_not_seen import ClusterNotSeen
from fleet.rules.cluster_unwatched import ClusterUnwatched
from fleet.rules.inference_on_time_slices import InferenceOnTimeSlices
from fleet.rules.mig_change_stuck import MigChangeStuck
from fleet.rules.observer_behind import ObserverBehind
from fleet.rules.operator_down import OperatorDown
from fleet.rules.pods_failing import PodsFailing

NODE_RULES: tuple[NodeRule, ...] = (
    AllocatableBelowExpected(),
    InferenceOnTimeSlices(),
    MigChangeStuck(),
    PodsFailing(),
)
CLUSTER_RULES: tuple[ClusterRule, ...] = (ObserverBehind(), OperatorDown(), ClusterNotSeen(), ClusterUnwatched())
CONFIRMED_AFTER: dict[str, timedelta] = {rule.key: rule.after for rule in NODE_RULES} | {
    rule.key: rule.after for rule in CLUSTER_RULES
}
