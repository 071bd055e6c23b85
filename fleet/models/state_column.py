"""What of a node the database computes itself: columns that it keeps with every write, `fleet.states.node` first."""

from django.db.models import Case, CharField, F, IntegerField, Q, Value, When
from django.db.models.functions import Coalesce

from fleet.states.node import AT_REST, REBOOTING, RECONFIGURING, NodeState

# The MIG manager is at work, in its time: nothing is missing.
IS_RECONFIGURING = Q(mig_config_state__in=sorted(RECONFIGURING), mig_is_overdue=False)
LACKS_UNITS = ~IS_RECONFIGURING & (
    Q(gpu_expected__gt=Coalesce(F("gpu_allocatable"), 0))
    | Q(slices_expected__gt=F("slices_allocatable"))
    | Q(shares_expected__gt=F("shares_allocatable"))
)
# The same order of precedence as `node_state`: the first that is true names the node.
CONDITIONS: tuple[tuple[NodeState, Q], ...] = (
    (NodeState.UPGRADE_FAILED, Q(upgrade_state="upgrade-failed")),
    (NodeState.RECONFIGURING, IS_RECONFIGURING & Q(mig_config_state=REBOOTING)),
    (NodeState.UNKNOWN, Q(is_ready__isnull=True)),
    (NodeState.NOT_READY, Q(is_ready=False)),
    (NodeState.UPGRADING, ~Q(upgrade_state__in=sorted(AT_REST))),
    (NodeState.RECONFIGURING, IS_RECONFIGURING),
    (NodeState.GPUS_MISSING, LACKS_UNITS),
    (NodeState.HAS_FINDINGS, Q(unresolved__gt=0)),
    (NodeState.CORDONED, Q(is_unschedulable=True)),
    (NodeState.HELD, Q(is_held=True)),
)
STATE_CODE = Case(
    *(When(condition, then=Value(int(state))) for state, condition in CONDITIONS),
    default=Value(int(NodeState.READY)),
    output_field=IntegerField(),
)
GPUS_FREE = Coalesce(F("gpu_allocatable"), 0) - F("gpu_allocated")
# What a node says of its driver now: a version whose label is gone counts as unknown, however well it is remembered.
SAID_DRIVER = Case(
    When(driver_unknown_since=None, then=F("driver_version")), default=Value(""), output_field=CharField()
)
