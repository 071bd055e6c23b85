"""One combination for the rules. Pure."""

from dataclasses import dataclass
from datetime import date

from gpu.compatibility.facts import Facts
from gpu.compatibility.matrix import Matrix
from gpu.compatibility.ranges import minor
from gpu.compatibility.systems import openshift_of


@dataclass(frozen=True)
class DerivedVersion:
    """A version, and its source if the cluster itself did not report it."""

    version: str = ""  # blank: unknown
    reason: str = ""  # a sentence; blank: the node reports it


@dataclass(frozen=True)
class Case:
    facts: Facts
    matrix: Matrix
    today: date

    @property
    def is_openshift(self) -> bool:
        return self.facts.system.name == "rhcos"

    @property
    def openshift(self) -> DerivedVersion:
        """Returns the OpenShift version. Sources: osImage before 4.19, the label of Node Feature Discovery, else
        Kubernetes."""
        if not self.is_openshift:
            return DerivedVersion()
        if version := openshift_of(self.facts.os) or self.facts.openshift:
            return DerivedVersion(version)
        kubernetes = minor(self.facts.kubernetes)
        for entry in self.matrix.openshift:
            if minor(entry.kubernetes) == kubernetes:
                reason = f"Derived from Kubernetes {entry.kubernetes}, which OpenShift {entry.version} is built on."
                return DerivedVersion(entry.version, reason)
        return DerivedVersion()
