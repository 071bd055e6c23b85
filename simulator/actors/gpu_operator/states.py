"""Where a node stands in a driver upgrade: the value of its state label."""

from enum import StrEnum


class UpgradeState(StrEnum):
    UNKNOWN = ""  # no label: not looked at yet, or upgrades are off
    DONE = "upgrade-done"  # the driver pod is of the newest revision, as far as was last looked
    REQUIRED = "upgrade-required"  # out of date; waits for a slot, or for its skip label to go
    CORDON = "cordon-required"  # has a slot; is about to be cordoned
    WAIT_FOR_JOBS = "wait-for-jobs-required"  # cordoned; waits for the pods that waitForCompletion selects
    POD_DELETION = "pod-deletion-required"  # the pods that use GPUs are being evicted
    DRAIN = "drain-required"  # that failed, and the policy allows a drain
    POD_RESTART = "pod-restart-required"  # the driver pod is replaced; waits until the new one is ready
    VALIDATION = "validation-required"  # waits for the validator pod on the node
    UNCORDON = "uncordon-required"  # validated; is about to be uncordoned
    FAILED = "upgrade-failed"  # needs a person, or a driver pod that becomes ready after all


IDLE = (UpgradeState.UNKNOWN, UpgradeState.DONE, UpgradeState.REQUIRED)
