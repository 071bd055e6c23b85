"""The entries of the matrix: one class per data file, each entry with source and date. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from gpu.compatibility.ranges import Range
from gpu.compatibility.verdicts import Support, Verdict

SOON = timedelta(days=90)  # an end of life within this time is announced


@dataclass(frozen=True, kw_only=True)
class MatrixEntry:
    source: str  # the day of publication or reading
    date: date  # the day it was published or read

    def verdict(self, rule: str, subject: str, answer: Support, sentence: str, action: str = "") -> Verdict:
        return Verdict(rule, subject, answer, sentence, action, self.source, self.date)


@dataclass(frozen=True, kw_only=True)
class Release(MatrixEntry):
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
    versions: Sequence[str] = ()  # of the operating system; empty: OpenShift's version counts
    kubernetes: Sequence[str] = ()  # first and last
    openshift: Sequence[str] = ()  # first and last
    distributions: Sequence[str] = ("",)  # the Kubernetes distribution; blank: upstream


@dataclass(frozen=True, kw_only=True)
class Elsewhere(MatrixEntry):
    """A system that NVIDIA does not list, with its verdict."""

    os: str
    versions: Sequence[str] = ()  # empty: all of them
    sentence: str
    action: str
    answer: str = "unsupported"


@dataclass(frozen=True, kw_only=True)
class OpenShift(MatrixEntry):
    version: str
    kubernetes: str


@dataclass(frozen=True, kw_only=True)
class Skew(MatrixEntry):
    """The number of minor versions that a kubelet may be behind the API server."""

    kubelet: Range
    older: int


@dataclass(frozen=True, kw_only=True)
class Life(MatrixEntry):
    """The end of maintenance of a minor release."""

    of: str  # kubernetes, openshift, containerd
    version: str
    ends: date | None = None  # None: no date was found
    extended: date | None = None  # with a subscription


@dataclass(frozen=True, kw_only=True)
class Runtime(MatrixEntry):
    operator: Range
    runtime: str
    versions: Sequence[str] = ()  # first and last; empty: no range given
    os: Sequence[str] = ()  # "ubuntu 24.04"; empty: all


@dataclass(frozen=True, kw_only=True)
class Branch(MatrixEntry):
    branch: int
    kind: str = ""  # blank: unknown
    ends: date | None = None
    ended: bool = False


@dataclass(frozen=True, kw_only=True)
class ListedEntry(MatrixEntry):
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
    """The kernels that NVIDIA's driver container supports for compilation on the node."""

    operator: Range
    os: str  # "ubuntu 22.04"
    kernels: Sequence[str]  # 6.8 means every release of 6.8


@dataclass(frozen=True, kw_only=True)
class Floor(MatrixEntry):
    """The minimum driver and Kubernetes of a feature."""

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
    unseen: str = ""  # the sentence when only an unknown switch keeps `when` from holding
    answer: str = "known-bad"
