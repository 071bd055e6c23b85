"""A certificate or token by which Quarterdeck reaches a cluster ends soon; then nothing there is seen or changed.

What lives for less than a week is renewed by a program, and is not reported.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from wording.lists import names
from wording.reports import LONGEST_SUMMARY, fit, instant

WARNING_BEFORE, WARNING_SHARE = timedelta(days=14), 0.2  # of its life: the shorter of both
CRITICAL_BEFORE, CRITICAL_SHARE = timedelta(days=3), 0.05


@dataclass(frozen=True)
class CredentialExpires:
    key: ClassVar[str] = "credential-expires"
    title: ClassVar[str] = "Credential expires"
    subject: ClassVar[str] = "credentials"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)
    steps: ClassVar[tuple[str, ...]] = (
        "Issue a new credential for the same account, and replace the old one in the kubeconfig or the Secret.",
        "Run bin/manage doctor on the worker's host. Workers read the new file without a restart.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        now = cluster.evaluated_at
        if now is None:
            return None
        soon, critical = [], False
        for each in cluster.credentials:
            life, left = each.ends_at - each.begins_at, each.ends_at - now
            if each.is_renewed_by_hand and left <= min(WARNING_BEFORE, WARNING_SHARE * life):
                soon.append(each)
                critical |= left <= min(CRITICAL_BEFORE, CRITICAL_SHARE * life)
        if not soon:
            return None
        is_over = any(each.ends_at <= now for each in soon)
        kinds = [each.kind for each in soon]
        return Problem(
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            title=fit("Credentials of cluster {} " + ("have expired" if is_over else "expire soon"), cluster.name),
            summary=fit("{}. Then the cluster is not seen.", names(kinds).capitalize(), longest=LONGEST_SUMMARY),
            evidence=tuple(instant(f"{each.kind.capitalize()} ends", each.ends_at) for each in soon),
            identity=" ".join(f"{each.kind} {each.ends_at.isoformat()}" for each in soon) + str(is_over),
        )
