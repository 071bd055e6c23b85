"""NVIDIA's matrix supports the new driver with the node's operator, Kubernetes, OS, kernel, product and MIG mode.

It is evaluated before the first release of a stage; the matrix cannot change later. Entries that were overridden at the
start, with a reason that approvers see, do not count again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from gpu.compatibility.verdicts import Support
from rollouts.gates.base import Combination, Evidence, Gate, GateResult, When
from rollouts.gates.results import fail, no_target, passed, share, subject, wait
from wording.numbers import count
from wording.reports import EvidenceItem, first_items

BAD = (Support.KNOWN_BAD, Support.UNSUPPORTED)
SUPPORTED_VERSION = ("Draft a plan for a driver version that the matrix supports.",)
ALLOW = ("Set the option allow_unknown of the gate.", "Or override the gate with a reason.")


@dataclass(frozen=True)
class Compatibility(Gate):
    allow_unknown: bool = (
        False  # pass where the matrix does not know: it lists few of the drivers that NVIDIA maintains
    )

    key: ClassVar[str] = "compatibility"
    title: ClassVar[str] = "Compatibility"
    when: ClassVar[When] = When.ENTRY

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        asked, lines, version = evidence.counted, evidence.combinations, evidence.to_version
        shown = (EvidenceItem("Compared nodes", evidence.compared), *_items(lines))
        if not asked:
            return no_target()
        if unseen := tuple(target.name for target in asked if not target.is_seen):
            title = f"{subject(unseen)} cannot be seen"
            return wait(title, "The versions there are unknown.", cause="unseen", nodes=unseen, evidence=shown)
        worst = next((line for line in lines if line.support in BAD), None)
        if worst and not evidence.despite:
            title = f"{_subject(version, worst.support)} on {_nodes_text(worst.nodes, len(asked))}"
            return fail(title, worst.sentence, cause=worst.support, evidence=shown, steps=SUPPORTED_VERSION)
        if evidence.compared < len(asked) or not lines:
            title = f"{share(min(evidence.compared, len(asked)), len(asked))} compared with driver {version}"
            summary = "The matrix has no entry for the other nodes."
            return wait(title, summary, cause="not-compared", evidence=shown, steps=ALLOW, is_final=True)
        unknown = next((line for line in lines if line.support is Support.UNKNOWN), None)
        if unknown and not self.allow_unknown and not evidence.despite:
            title = f"{_subject(version, Support.UNKNOWN)} on {_nodes_text(unknown.nodes, len(asked))}"
            return wait(title, unknown.sentence, cause=Support.UNKNOWN, evidence=shown, steps=ALLOW, is_final=True)
        if worst or (unknown and evidence.despite):
            return passed("The matrix was overridden at the start", evidence.despite, cause="despite", evidence=shown)
        if unknown:
            title = f"No known problem with driver {version}"
            return passed(title, "Unknown combinations are allowed.", cause=Support.UNKNOWN, evidence=shown)
        return passed(f"Driver {version} is supported", f"Nodes: {len(asked)} of {len(asked)}.", evidence=shown)


def _items(lines: Sequence[Combination]) -> tuple[EvidenceItem, ...]:
    """Returns the sentences of the matrix by support, the worst first, and the number of supported combinations."""
    supported = sum(line.support is Support.SUPPORTED for line in lines)
    others = [
        EvidenceItem(str(line.support).replace("-", " ").capitalize(), f"{line.sentence} ({count(line.nodes, 'node')})")
        for line in lines
        if line.support is not Support.SUPPORTED
    ]
    return first_items([*others, *([EvidenceItem("Supported combinations", supported)] if supported else [])])


def _subject(version: str, support: Support) -> str:
    return f"Driver {version} is {str(support).replace('-', ' ')}"


def _nodes_text(nodes: int, of: int) -> str:
    return f"{nodes} of {count(of, 'node')}" if nodes < of else count(of, "node")
