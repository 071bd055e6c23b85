"""The result of a rule for a subject, before it becomes a finding."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from health.rules.base import Problem
from health.subjects import identity_of
from wording.reports import EvidenceItem

NODE_IN_STEPS = re.compile(r"\bNODE\b")


class AnyRule(Protocol):
    """The common interface of all rules: about a node, a GPU or a cluster, here or in an app above."""

    @property
    def key(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def steps(self) -> Sequence[str]: ...

    @property
    def after(self) -> timedelta: ...


@dataclass(frozen=True)
class Subject:
    """The subject of a finding. If `node_id` is None, it is the cluster or its observation."""

    name: str
    node_id: int | None = None
    node_uid: str = ""
    node_name: str = ""
    gpu_uuid: str = ""  # UUID of the GPU; blank: the subject is no GPU

    @property
    def identity(self) -> str:
        return identity_of(self.name, self.gpu_uuid)


@dataclass(frozen=True)
class Signal:
    subject: Subject
    rule: AnyRule
    problem: Problem

    @property
    def after(self) -> timedelta:
        """Returns how long the fault must persist before anybody is notified."""
        return self.rule.after if self.problem.opens_after is None else self.problem.opens_after

    @property
    def evidence(self) -> tuple[EvidenceItem, ...]:
        """Returns the evidence, with the full name of the node if the title has it shortened."""
        name = self.subject.node_name
        is_cut = "…" in self.problem.title and name not in self.problem.title
        return (*((EvidenceItem("Node", name),) if name and is_cut else ()), *self.problem.evidence)

    @property
    def steps(self) -> list[str]:
        """Returns the steps of the problem, else of its rule, with the name of the node."""
        steps = self.problem.steps or self.rule.steps
        return [NODE_IN_STEPS.sub(self.subject.node_name or "NODE", step) for step in steps]

    @property
    def key(self) -> tuple[str, str]:
        return self.rule.key, self.subject.identity
