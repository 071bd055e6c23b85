"""The result of a rule for a subject, before it becomes a finding."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from health.rules.base import Wrong
from health.subjects import identity_of


class AnyRule(Protocol):
    """The common interface of all rules: about a node, a GPU or a cluster, here or in an app above."""

    @property
    def key(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def after(self) -> timedelta: ...


@dataclass(frozen=True)
class Subject:
    """The subject of a finding. If `node_id` is None, it is the cluster or its observation."""

    name: str
    node_id: int | None = None
    node_uid: str = ""
    node_name: str = ""
    gpu_uuid: str = ""  # of the board that it is; blank: it is none

    @property
    def identity(self) -> str:
        return identity_of(self.name, self.gpu_uuid)


@dataclass(frozen=True)
class Signal:
    subject: Subject
    rule: AnyRule
    wrong: Wrong

    @property
    def after(self) -> timedelta:
        """Returns how long the fault must persist before anybody is notified."""
        return self.rule.after if self.wrong.opens_after is None else self.wrong.opens_after

    @property
    def key(self) -> tuple[str, str]:
        return self.rule.key, self.subject.identity
