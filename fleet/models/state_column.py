"""Generated columns of nodes and pods, computed by the database on every write; mirrors `fleet.states`."""

from django.db.models import Case, CharField, F, IntegerField, Q, Value, When
from django.db.models.functions import Coalesce, Substr
from django.db.models.lookups import Exact

from fleet.states.node import AT_REST, REBOOTING, RECONFIGURING, NodeState
from fleet.states.pod import CODES, OUT_OF, REFUSALS, PodState

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
# The order of `pod_state`, without states that depend on time or the node: see `PodQuerySet.with_state`.
IS_OUT_OF = Exact(Substr("status", 1, len(OUT_OF)), Value(OUT_OF))  # not LIKE, which ignores case on SQLite
POD_CONDITIONS: tuple[tuple[PodState, Q], ...] = (
    (PodState.DONE, Q(phase="Succeeded")),
    (PodState.REJECTED, Q(phase="Failed") & (Q(status__in=REFUSALS) | Q(IS_OUT_OF))),
    (PodState.FAILED, Q(phase="Failed")),
    (PodState.UNKNOWN, Q(phase="Unknown")),
    (PodState.TERMINATING, Q(deleted_at__isnull=False)),
    (PodState.FAILING, ~Q(stuck_container="") & ~Q(waiting_reason="")),
    (PodState.READY, Q(is_ready=True)),
    (PodState.NOT_READY, Q(phase="Running")),
    (PodState.PENDING, Q(node_name="")),
)
POD_STATE_CODE = Case(
    *(When(condition, then=Value(CODES[state])) for state, condition in POD_CONDITIONS),
    default=Value(CODES[PodState.STARTING]),
    output_field=IntegerField(),
)
