"""What is wrong with a node, a cluster, or our sight of it: one pure file a rule. To add one, add its line here."""

from fleet.rules.allocatable_below_expected import AllocatableBelowExpected
from fleet.rules.base import ClusterRule, NodeRule
from fleet.rules.inference_on_time_slices import InferenceOnTimeSlices
from fleet.rules.mig_change_stuck import MigChangeStuck
from fleet.rules.observer_behind import ObserverBehind
from fleet.rules.operator_down import OperatorDown

NODE_RULES: tuple[NodeRule, ...] = (AllocatableBelowExpected(), InferenceOnTimeSlices(), MigChangeStuck())
CLUSTER_RULES: tuple[ClusterRule, ...] = (ObserverBehind(), OperatorDown())
