"""NVIDIA's matrix supports the new driver with the node's operator, Kubernetes, OS, kernel, product and MIG mode.

It is evaluated before the first release of a stage; the matrix cannot change later. Entries that were overridden at the
start, with a reason that approvers see, do not count again.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from gpu.compatibility.verdicts import Support
from rollouts.gates.base import Evidence, Gate, GateResult, When, fail, passed, share, wait
from wording.lists import names
from wording.numbers import count, every

BAD = (Support.KNOWN_BAD, Support.UNSUPPORTED)


@dataclass(frozen=True)
class Compatibility(Gate):
    allow_unknown: bool = (
        False  # pass where the matrix does not know: it lists few of the drivers that NVIDIA maintains
    )

    key: ClassVar[str] = "compatibility"
    title: ClassVar[str] = "Compatibility"
    when: ClassVar[When] = When.ENTRY

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        asked, lines = evidence.counted, evidence.combinations
        found = Counter(line.support for line in lines)
        measured = {"nodes": evidence.compared} | {
            str(support): found[support] for support in Support if found[support]
        }
        if not asked:
            return wait("The stage has no target left: there is nothing to compare.", cause="no-target")
        if unseen := tuple(target.name for target in asked if not target.is_seen):
            sentence = f"{names(unseen)} cannot be seen: what runs there is not known."
            return wait(sentence, cause="unseen", nodes=unseen, measured=measured)
        worst = next((line for line in lines if line.support in BAD), None)
        if worst and not evidence.despite:
            sentence = f"{worst.sentence}{_where(worst.nodes, len(asked))}"
            return fail(sentence, cause=worst.support, measured=measured)
        if evidence.compared < len(asked) or not lines:
            compared = f"{share(min(evidence.compared, len(asked)), len(asked))} compared with it"
            sentence = f"The matrix says nothing of {evidence.to_version} here: {compared}."
            return wait(sentence, cause="not-compared", measured=measured, is_final=True)
        unknown = next((line for line in lines if line.support is Support.UNKNOWN), None)
        if unknown and not self.allow_unknown and not evidence.despite:
            sentence = f"{unknown.sentence}{_where(unknown.nodes, len(asked))}"
            return wait(sentence, cause=Support.UNKNOWN, measured=measured, is_final=True)
        if worst or (unknown and evidence.despite):
            said = (worst or unknown or lines[0]).sentence
            return passed(f"{said} {evidence.despite}", cause="despite", measured=measured)
        if unknown:
            sentence = f"Nothing speaks against {evidence.to_version}. Allowed as unknown: {unknown.sentence}"
            return passed(sentence, cause=Support.UNKNOWN, measured=measured)
        sentence = f"The matrix supports {evidence.to_version} on {every(len(asked), 'node')}."
        return passed(sentence, measured=measured)


def _where(nodes: int, of: int) -> str:
    return f" That is about {count(nodes, 'node')} of {of}." if nodes < of else ""
