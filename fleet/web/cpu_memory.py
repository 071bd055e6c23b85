"""CPU and memory in cores and GiB; unknown values stay unknown."""

from collections.abc import Iterable
from dataclasses import dataclass

from fleet.allocation.cpu_memory import Amount, CpuMemory, OfCluster
from wording.numbers import either

GIB = 2**30
NEVER_READ = "The requests of pods are unknown, because pods were never read here. The cluster's page has the reason."


@dataclass(frozen=True)
class AmountLine:
    title: str
    allocatable: str  # blank: unknown
    requested: str
    share: str  # requested share of the allocatable; blank: unknown
    tenants: str
    operands: str
    others: str
    free: str
    is_over: bool


@dataclass(frozen=True)
class Panel:
    lines: list[AmountLine]
    sentences: list[str]  # gaps in the numbers, with reasons


def of_node(amounts: CpuMemory) -> Panel:
    silent = [what for what, each in (("CPU", amounts.cpu), ("memory", amounts.memory)) if each.allocatable is None]
    said = [f"The node reports no allocatable {' and '.join(silent)}."] if silent else []
    return Panel(_amount_lines("", amounts), said + _unread([amounts]))


def of_cluster(amounts: OfCluster) -> Panel:
    groups = [("GPU nodes", amounts.gpu_nodes), ("other nodes", amounts.other_nodes)]
    there = [(words, each) for words, each in groups if each.nodes]
    said = [_silent_nodes_note(words, each) for words, each in there if each.silent]
    return Panel(
        [line for words, each in there for line in _amount_lines(f", {words}", each)],
        said + _unread([each for _, each in there]),
    )


def _silent_nodes_note(words: str, amounts: CpuMemory) -> str:
    verb = either(amounts.silent or 0, "reports", "report")
    return f"{amounts.silent} of {amounts.nodes} {words} {verb} no allocatable CPU or memory and are not counted."


def _unread(amounts: Iterable[CpuMemory]) -> list[str]:
    return [NEVER_READ] if any(each.cpu.requested is None for each in amounts) else []


def _amount_lines(suffix: str, amounts: CpuMemory) -> list[AmountLine]:
    return [
        _amount_line(f"CPU{suffix}", amounts.cpu, 1000, "cores"),
        _amount_line(f"Memory{suffix}", amounts.memory, GIB, "GiB"),
    ]


def _amount_line(title: str, amount: Amount, unit: int, unit_name: str) -> AmountLine:
    def words(number: int | None) -> str:
        return "" if number is None else f"{spelled(number / unit)} {unit_name}"

    return AmountLine(
        title=title,
        allocatable=words(amount.allocatable),
        requested=words(amount.requested),
        share=_share(amount),
        tenants=words(amount.tenants),
        operands=words(amount.operands),
        others=words(amount.others),
        free=words(amount.free),
        is_over=amount.free is not None and amount.free < 0,
    )


def spelled(number: float) -> str:
    """Returns `0`, `0.1`, `3.5` or `1,920`. A small request is never shown as 0."""
    if 0 < abs(number) < 0.1:
        return "under 0.1"
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:,.1f}".removesuffix(".0")


def _share(amount: Amount) -> str:
    if not amount.allocatable or amount.requested is None:
        return ""
    percent = 100 * amount.requested / amount.allocatable
    return "under 1 %" if 0 < percent < 1 else f"{percent:.0f} %"
