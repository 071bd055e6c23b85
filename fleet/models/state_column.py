"""Generated columns of nodes, computed by the database on every write; mirrors `fleet.states.node`."""

from django.db.models import Case, CharField, F, IntegerField, Q, Value, When
from django.db.models.functions import Coalesce

from fleet.states.node import AT_REST, REBOOTING, RECONFIGURING, NodeState

# The MIG manager reconfigures in time: nothing counts as missing.
IS_RECONFIGURING = Q(mig_config_state__in=sorted(RECONFIGURING), mig_is_overdue=False)
LACKS_UNITS = ~IS_RECONFIGURING & (
    Q(gpu_expected__gt=Coalesce(F("gpu_allocatable"), 0))
    | Q(slices_expected__gt=F("slices_allocatable"))
    | Q(shares_expected__gt=F("shares_allocatable"))
)
# The order of `node_state`: the first true condition counts.
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
# The reported driver: a version without a label counts as unknown.
REPORTED_DRIVER = Case(
    When(driver_unknown_since=None, then=F("driver_version")), default=Value(""), output_field=CharField()
)
