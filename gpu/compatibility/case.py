"""One combination before the judges. Pure."""

from dataclasses import dataclass
from datetime import date

from gpu.compatibility.facts import Facts
from gpu.compatibility.matrix import Matrix
from gpu.compatibility.ranges import minor
from gpu.compatibility.systems import openshift_of


@dataclass(frozen=True)
class ToldVersion:
    """A version, and what told it where the cluster itself did not."""

    version: str = ""  # blank: nothing tells it
    reason: str = ""  # a sentence; blank: the node says it


@dataclass(frozen=True)
class Case:
    facts: Facts
    matrix: Matrix
    today: date

    @property
    def is_openshift(self) -> bool:
        return self.facts.system.name == "rhcos"

    @property
    def openshift(self) -> ToldVersion:
        """Its osImage says it before 4.19, Node Feature Discovery labels it, and else its Kubernetes tells it."""
        if not self.is_openshift:
            return ToldVersion()
        if said := openshift_of(self.facts.os) or self.facts.openshift:
            return ToldVersion(said)
        kubernetes = minor(self.facts.kubernetes)
        for entry in self.matrix.openshift:
            if minor(entry.kubernetes) == kubernetes:
                reason = f"It is told from Kubernetes {entry.kubernetes}, which OpenShift {entry.version} is built on."
                return ToldVersion(entry.version, reason)
        return ToldVersion()
