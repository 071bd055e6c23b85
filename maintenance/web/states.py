from collections.abc import Mapping

from maintenance.lifecycle import CaseState

GLYPHS: Mapping[CaseState, str] = {
    CaseState.PROVISIONED: "waiting",
    CaseState.STACK_VALIDATED: "waiting",
    CaseState.LABELLED: "changing",
    CaseState.TESTED: "part",
    CaseState.SUSPECT: "warn",
    CaseState.QUARANTINED: "cordoned",
    CaseState.DRAINING: "changing",
    CaseState.DRAIN_BLOCKED: "bad",
    CaseState.DRAINED: "held",
    CaseState.IN_REPAIR: "waiting",
    CaseState.VALIDATING: "changing",
    CaseState.PROBATION: "part",
    CaseState.CLOSED: "ok",
    CaseState.RETIRED: "stopped",
}
