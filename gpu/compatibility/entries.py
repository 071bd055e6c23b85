"""The entries of the matrix: one shape per data file, each with where it is from and when that said so. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from gpu.compatibility.ranges import Range
from gpu.compatibility.verdicts import Support, Verdict

SOON = timedelta(days=90)  # an end that is nearer than this is said


@dataclass(frozen=True, kw_only=True)
class MatrixEntry:
    source: str  # an https address, or repository:path@ref
    date: date  # the day it was published or read

    def says(self, rule: str, subject: str, answer: Support, sentence: str, action: str = "") -> Verdict:
        """A verdict that rests on this entry."""
        return Verdict(rule, subject, answer, sentence, action, self.source, self.date)


@dataclass(frozen=True, kw_only=True)
class Release(MatrixEntry):
    """A release of the operator, and what its chart ships."""

    version: str
    driver: str
    operands: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Series(MatrixEntry):
    """The life cycle of a YY.MM series of the operator."""

    series: str
    state: str  # supported, deprecated, ended
    ended_by: str = ""  # the release that ended it


@dataclass(frozen=True, kw_only=True)
class Platform(MatrixEntry):
    operator: Range
    os: str
    versions: Sequence[str] = ()  # of the operating system; empty: it is told by OpenShift's
    kubernetes: Sequence[str] = ()  # first and last
    openshift: Sequence[str] = ()  # first and last
    distributions: Sequence[str] = ("",)  # whose Kubernetes it is; blank: as its project releases it


@dataclass(frozen=True, kw_only=True)
class Elsewhere(MatrixEntry):
    """A system that NVIDIA does not list, and what is said of it."""

    os: str
    versions: Sequence[str] = ()  # empty: all of them
    sentence: str
    action: str
    answer: str = "unsupported"


@dataclass(frozen=True, kw_only=True)
class OpenShift(MatrixEntry):
    """Which Kubernetes an OpenShift is built on."""

    version: str
    kubernetes: str


@dataclass(frozen=True, kw_only=True)
class Skew(MatrixEntry):
    """By how many minors a kubelet may be older than the API server."""

    kubelet: Range
    older: int


@dataclass(frozen=True, kw_only=True)
class Life(MatrixEntry):
    """Until when those who make it fix a minor release."""

    of: str  # kubernetes, openshift, containerd
    version: str
    ends: date | None = None  # None: no day was found
    extended: date | None = None  # with a subscription for it


@dataclass(frozen=True, kw_only=True)
class Runtime(MatrixEntry):
    operator: Range
    runtime: str
    versions: Sequence[str] = ()  # first and last; empty: no range is given
    os: Sequence[str] = ()  # "ubuntu 24.04"; empty: none is ruled out


@dataclass(frozen=True, kw_only=True)
class Branch(MatrixEntry):
    branch: int
    kind: str = ""  # blank: not read
    ends: date | None = None
    ended: bool = False


@dataclass(frozen=True, kw_only=True)
class ListedEntry(MatrixEntry):
    """The drivers that are listed for an operator."""

    operator: Range
    drivers: Sequence[str]
    recommended: str = ""


@dataclass(frozen=True, kw_only=True)
class CudaFloor(MatrixEntry):
    cuda: Range
    driver: str


@dataclass(frozen=True, kw_only=True)
class Precompiled(MatrixEntry):
    operator: Range
    os: str  # "ubuntu 24.04"
    kernel: str  # 6.8
    branches: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Kernels(MatrixEntry):
    """Those that a driver is compiled for on the node."""

    operator: Range
    os: str  # "ubuntu 22.04"
    kernels: Sequence[str]  # 6.8: every release of it


@dataclass(frozen=True, kw_only=True)
class Floor(MatrixEntry):
    """The oldest driver and Kubernetes on which something works at all."""

    name: str
    when: Mapping[str, Any]
    driver: str = ""
    kubernetes: str = ""


@dataclass(frozen=True, kw_only=True)
class Products(MatrixEntry):
    names: Sequence[str]
    architecture: str
    is_grace: bool = False


@dataclass(frozen=True, kw_only=True)
class KnownBad(MatrixEntry):
    name: str
    title: str
    when: Mapping[str, Any] = field(default_factory=dict)
    sentence: str
    action: str
    unseen: str = ""  # what is said when all of `when` holds but a switch that cannot be read
    answer: str = "known-bad"
