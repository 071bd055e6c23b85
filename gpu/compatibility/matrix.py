"""The complete matrix, loaded once from its data files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gpu.compatibility.entries import (
    Branch,
    CudaFloor,
    Elsewhere,
    Floor,
    Kernels,
    KnownBad,
    Life,
    ListedEntry,
    MatrixEntry,
    OpenShift,
    Platform,
    Precompiled,
    Products,
    Release,
    Runtime,
    Series,
    Skew,
)
from gpu.compatibility.ranges import Range, order
from gpu.entry_files import make_entries, read_file

DATA = Path(__file__).parent / "data"
E = TypeVar("E", bound=MatrixEntry)


@dataclass(frozen=True)
class Matrix:
    releases: Sequence[Release] = ()
    series: Sequence[Series] = ()
    platforms: Sequence[Platform] = ()
    elsewhere: Sequence[Elsewhere] = ()
    openshift: Sequence[OpenShift] = ()
    lives: Sequence[Life] = ()
    skew: Sequence[Skew] = ()
    runtimes: Sequence[Runtime] = ()
    branches: Sequence[Branch] = ()
    listed: Sequence[ListedEntry] = ()
    cuda: Sequence[CudaFloor] = ()
    precompiled: Sequence[Precompiled] = ()
    kernels: Sequence[Kernels] = ()
    floors: Sequence[Floor] = ()
    products: Sequence[Products] = ()
    known_bad: Sequence[KnownBad] = ()

    @property
    def entries(self) -> list[MatrixEntry]:
        return [entry for field in fields(self) for entry in getattr(self, field.name)]

    @property
    def newest(self) -> Release:
        """Returns the newest known release of the operator."""
        return max(self.releases, key=lambda release: order(release.version))

    @property
    def read_on(self) -> date:
        return max(series.date for series in self.series)

    def branch_of(self, driver: str) -> Branch | None:
        leading = order(driver)[0]
        return next((branch for branch in self.branches if branch.branch == leading), None)

    def names_driver(self, driver: str) -> bool:
        """Tells whether any operator lists or ships exactly this driver. Another version may not exist."""
        listed = {order(driver_version) for entry in self.listed for driver_version in entry.drivers}
        return order(driver) in listed | {order(release.driver) for release in self.releases}

    def is_grace(self, product: str) -> bool:
        return any(entry.is_grace and is_named(product, entry.names) for entry in self.products)


def is_named(product: str, names: Sequence[str]) -> bool:
    """Tells whether a GFD product ("NVIDIA-H100-80GB-HBM3") is one of these models ("H100")."""
    model = product.removeprefix("NVIDIA-").removeprefix("Tesla-")
    return any(model == name or model.startswith(f"{name}-") for name in names)


@cache
def the_matrix() -> Matrix:
    return Matrix(
        releases=_read_table("operators", "release", Release),
        series=_read_table("series", "series", Series),
        platforms=_read_table("platforms", "platform", Platform),
        elsewhere=_read_table("elsewhere", "elsewhere", Elsewhere),
        openshift=_read_table("openshift", "openshift", OpenShift),
        lives=_read_table("lives", "life", Life),
        skew=_read_table("skew", "skew", Skew),
        runtimes=_read_table("runtimes", "runtime", Runtime),
        branches=_read_table("branches", "branch", Branch),
        listed=_read_table("drivers", "listed", ListedEntry),
        cuda=_read_table("cuda", "cuda", CudaFloor),
        precompiled=_read_table("precompiled", "precompiled", Precompiled),
        kernels=_read_table("kernels", "kernels", Kernels),
        floors=_read_table("floors", "floor", Floor),
        products=_read_table("products", "product", Products),
        known_bad=_read_table("known_bad", "known_bad", KnownBad),
    )


def _read_table(file: str, table: str, kind: type[E]) -> tuple[E, ...]:
    """Reads the entries of one table.

    :raises BadEntry: with the first entry that has an unknown or missing key
    """
    path = DATA / f"{file}.toml"
    return make_entries(path, table, read_file(path)[table], lambda row: kind(**_parse_ranges(row)))


def _parse_ranges(row: Mapping[str, Any]) -> dict[str, Any]:
    converted = dict(row)
    for name in ("operator", "cuda", "kubelet"):
        if isinstance(converted.get(name), dict):
            converted[name] = a_range(converted[name])
    return converted


def a_range(bounds: Mapping[str, str]) -> Range:
    return Range(bounds.get("from", ""), bounds.get("before", ""))
