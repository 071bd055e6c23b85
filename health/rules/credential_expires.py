"""A certificate or token by which Quarterdeck reaches a cluster ends soon; then nothing there is seen or changed.

What lives for less than a week is renewed by a program, and is not reported.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from kube.credential_life import SERVER_CERTIFICATE, CredentialLife
from wording.lists import names
from wording.reports import LONGEST_SUMMARY, fit, instant
from wording.sentences import capitalized

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
    of_server: ClassVar[str] = "Renew the certificate of the API server on each host of the control plane."

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
        ours = [each for each in soon if each.kind != SERVER_CERTIFICATE]
        if ours:
            title = "Credentials of cluster {} " + ("have expired" if is_over else "expire soon")
        else:
            title = "API server's certificate in cluster {} " + ("has expired" if is_over else "expires soon")
        kinds = capitalized(names([each.kind for each in soon]))
        then = ". When {} ends, Quarterdeck neither sees nor changes the cluster.".format("one" if soon[1:] else "it")
        return Problem(
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            title=fit(title, cluster.name),
            summary=fit("{}" + then, kinds, longest=LONGEST_SUMMARY),
            evidence=tuple(instant(f"{capitalized(each.kind)} ends", each.ends_at) for each in soon),
            steps=(*(self.steps if ours else ()), *((self.of_server,) if len(ours) < len(soon) else ())),
            identity=" ".join(map(_identity, soon)) + str(is_over),
        )


def _identity(life: CredentialLife) -> str:
    """Returns what stays the same until the credential is replaced.

    Hosts of one API server have certificates with different ends, and each connection reaches any of them. Their end
    would write the finding again with each connection.
    """
    return life.kind if life.kind == SERVER_CERTIFICATE else f"{life.kind} {life.ends_at.isoformat()}"
