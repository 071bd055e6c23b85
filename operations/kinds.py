"""The kinds of operations: what a person may ask for, its steps, and its words. Pure. To add one, add an entry."""

from collections.abc import Mapping
from dataclasses import dataclass

MOST_NODES = 1000


@dataclass(frozen=True)
class OperationKind:
    key: str
    title: str  # a verb, for buttons
    steps: tuple[str, ...]  # keys of `operations.steps`, in order
    explanation: str  # beside the title of its preview
    of: str = "of"  # between its title and the number of its nodes
    undone_by: tuple[str, ...] = ()  # kinds of later operations that undo it
    leaves_service: bool = False  # its first step takes a node out of service
    moves_case: bool = False  # it decides whether pods start or run on a node, so the node's case follows it
    shows_case: bool = False  # whoever starts it from a case returns there
    ends_quarantine: bool = False
    most_nodes: int = MOST_NODES
    why_fewer: str = ""  # why it takes fewer nodes than others
    trial: str = ""  # kind that tries it first; blank: none
    follow_up: str = ""  # kind that its page offers once it is finished; blank: none
    caution: str = ""  # on its page
    is_bulk: bool = False  # the fleet page offers it for selected nodes
    icon: str = ""  # of its button on the pages of nodes where its last step is offered; blank: no button of its own
    is_case_act: bool = False  # a case offers it, too


ALL = (
    OperationKind(
        "quarantine", "Quarantine", ("cordon",), "New pods do not start on these nodes. Running pods stay.",
        undone_by=("release", "accept-uncordon"), leaves_service=True, moves_case=True, shows_case=True, is_bulk=True,
    ),
    # It keeps new pods off first. The page of a node offers it beside the quarantine.
    OperationKind(
        "drain", "Drain", ("cordon", "drain"), "Cordons the nodes, then evicts their pods within their budgets.",
        undone_by=("release", "accept-uncordon"), leaves_service=True, moves_case=True, shows_case=True, is_bulk=True,
        trial="try-drain",
    ),
    OperationKind(
        "test", "Test", ("test_job",), "Runs a test Job on all GPUs of cordoned nodes.", shows_case=True, is_bulk=True
    ),
    OperationKind(
        "release", "Release", ("uncordon",), "Removes Quarterdeck's cordon. Foreign cordons stay.",
        undone_by=("quarantine", "drain"), moves_case=True, shows_case=True, ends_quarantine=True, is_bulk=True,
    ),
    OperationKind(
        "accept-uncordon", "Accept uncordon", ("disown",),
        "Somebody else uncordoned the nodes. They stay in service, and Quarterdeck removes its marks.",
        undone_by=("quarantine", "drain"), moves_case=True, shows_case=True, ends_quarantine=True,
    ),
    OperationKind(
        "label", "Label pool", ("label",),
        "Sets the label quarterdeck.io/pool. A pool with the selector quarterdeck.io/pool=NAME takes the nodes.",
        undone_by=("label",), is_bulk=True,
    ),
    OperationKind(
        "hold-driver", "Hold driver", ("hold_driver",),
        "Labels the nodes, so that the GPU Operator's upgrade controller leaves them alone. A recreated node is free.",
        of="on", undone_by=("free-driver",), is_bulk=True, icon="lock",
    ),
    OperationKind(
        "free-driver", "Free driver", ("free_driver",),
        "Ends a hold of the driver, a few nodes at a time. Holds of plans and of others stay.",
        of="on", leaves_service=True, undone_by=("hold-driver",), is_bulk=True, icon="lock-open",
    ),
    OperationKind("note", "Note", ("note",), "Writes the reason on each node's timeline.", is_bulk=True),
    OperationKind(
        "debug", "Debug pod", ("debug_pod",), "Runs nvidia-smi on the node, and deviceQuery if the image has it.",
        most_nodes=5, why_fewer="each has its own output", icon="file-text",
    ),
    OperationKind(
        "logs", "Collect logs", ("log_bundle",),
        "Reads the kernel log and the logs of the GPU stack. A reboot loses the kernel log.",
        shows_case=True, most_nodes=5, why_fewer="each has its own output", icon="file-text", is_case_act=True,
    ),
    OperationKind(
        "pull-image", "Pull image", ("image_pull",), "Pulls an image on each node, so that a later pod starts sooner.",
        of="on", is_bulk=True, icon="plus",
    ),
    OperationKind(
        "try-drain", "Try drain", ("eviction_trial",),
        "Asks for each eviction of a drain as a dry run. Nothing in the cluster changes.",
        follow_up="drain", caution="Each eviction is tried by itself: a budget may refuse the second of two pods.",
    ),
    OperationKind(
        "delete-pod", "Evict past budget", ("delete_pod",),
        "Deletes one pod that blocks a drain, past the budget that you name.", of="on", most_nodes=1,
        why_fewer="each pod is approved by itself",
    ),
    OperationKind(
        "out-of-service", "Mark out of service", ("out_of_service",),
        "For a node whose power is off: nobody else can end its pods. Ends when the node has booted.",
        most_nodes=1, why_fewer="the power of each is checked by itself", icon="ban",
    ),
    # In maintenance by NVSentinel, NVSentinel decides about pods: no case follows.
    OperationKind(
        "start-maintenance", "Ask NVSentinel for maintenance", ("start_maintenance",),
        "Creates a MaintenanceRequest: NVSentinel cordons and drains the nodes.", undone_by=("end-maintenance",),
        leaves_service=True,
    ),
    OperationKind(
        "end-maintenance", "End maintenance", ("end_maintenance",),
        "Deletes Quarterdeck's MaintenanceRequest: NVSentinel uncordons the nodes.",
    ),
    OperationKind(
        "cancel-breakfix", "Cancel NVSentinel's break-fix", ("cancel_breakfix",),
        "Uncordons the nodes, which ends NVSentinel's cordon, drain and repair. Undo: quarantine the nodes.",
        of="on", undone_by=("quarantine", "drain"), moves_case=True, shows_case=True, ends_quarantine=True,
        icon="lock-open", is_case_act=True,
    ),
)  # fmt: skip
KINDS: Mapping[str, OperationKind] = {kind.key: kind for kind in ALL}
LEAVING_STEPS = tuple(sorted({kind.steps[0] for kind in ALL if kind.leaves_service}))
RETURNING_STEPS = frozenset(step for kind in ALL if kind.ends_quarantine for step in kind.steps)
CASE_KINDS = tuple(kind.key for kind in ALL if kind.moves_case)
LEAVING_KINDS = tuple(kind.key for kind in ALL if kind.leaves_service)
CASE_ACTS = tuple(kind for kind in ALL if kind.is_case_act)
ENDING_KINDS = tuple(kind.key for kind in ALL if kind.ends_quarantine)


def title_of(kind: str) -> str:
    """Returns the title of a kind, also of one that an earlier version had."""
    return KINDS[kind].title if kind in KINDS else "Operation"
