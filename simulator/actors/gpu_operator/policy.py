"""`upgradePolicy` as the operator reads it, with the defaults of the CRD."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Eviction:
    """podDeletion and drain; a timeout of 0 waits for ever."""

    is_forced: bool = False
    timeout_s: int = 300
    deletes_empty_dir: bool = False
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    is_auto: bool = False
    max_parallel: int = 1
    max_unavailable: int | str | None = "25%"
    wait_selector: str = ""
    wait_timeout_s: int = 0
    pod_deletion: Eviction = Eviction()
    drain: Eviction | None = None

    def unavailable_limit(self, total: int) -> int:
        """A share is rounded up; None: no limit."""
        if self.max_unavailable is None:
            return total
        if isinstance(self.max_unavailable, str) and self.max_unavailable.endswith("%"):
            return math.ceil(total * int(self.max_unavailable[:-1]) / 100)
        return int(self.max_unavailable)


def read_policy(given: dict[str, Any] | None) -> Policy:
    given = given or {}
    waiting = given.get("waitForCompletion") or {}
    drain = given.get("drain") or {}
    return Policy(
        is_auto=bool(given.get("autoUpgrade", False)),
        max_parallel=int(given.get("maxParallelUpgrades", 1)),
        max_unavailable=given.get("maxUnavailable", "25%"),
        wait_selector=waiting.get("podSelector", ""),
        wait_timeout_s=int(waiting.get("timeoutSeconds", 0)),
        pod_deletion=_eviction(given.get("podDeletion") or {}),
        drain=_eviction(drain) if drain.get("enable") else None,
    )


def _eviction(given: dict[str, Any]) -> Eviction:
    return Eviction(
        is_forced=bool(given.get("force", False)),
        timeout_s=int(given.get("timeoutSeconds", 300)),
        deletes_empty_dir=bool(given.get("deleteEmptyDir", False)),
        selector=given.get("podSelector", ""),
    )
