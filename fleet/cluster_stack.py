"""The GPU stack of a cluster: operands, configurations and their nodes, DRA, quotas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, Sum, TextField
from django.db.models.functions import Cast

from fleet.allocation.slice_pools import slice_pools
from fleet.models import (
    DeviceClass,
    DriverObject,
    LimitRange,
    Operand,
    OperatorConfig,
    ResourceClaim,
    ResourceQuota,
    ResourceSlice,
    SegmentSums,
)
from gpu.labels import MIG_CONFIG, PLUGIN_CONFIG
from gpu.operands import MIG_DEFAULT_CONFIG, TITLES, title_of
from gpu.resources import is_gpu_resource
from gpu.versions import tag_of
from kube.quantity import whole_quantity
from kube.resources import (
    DEPLOYMENTS,
    DEVICE_CLASSES,
    LIMIT_RANGES,
    MIG_CONFIGS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    SHARING_CONFIGS,
    Resource,
)
from wording.instants import clock

ORDER = {operand: place for place, operand in enumerate(TITLES)}
VENDORS = ("nvidia.com/", "amd.com/", "habana.ai/", "gpu.intel.com/", "deviceclass.resource.k8s.io")
QUOTAS_SHOWN = 50
PREFIXES = ("requests.", "limits.")
CARDS: Mapping[str, tuple[Resource[Any], ...]] = {  # the kinds behind each card
    "operator": (DEPLOYMENTS,),
    "configs": (SHARING_CONFIGS, MIG_CONFIGS),
    "dra": (RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES),
    "quotas": (RESOURCE_QUOTAS, LIMIT_RANGES),
}


@dataclass(frozen=True)
class OperandLine:
    operand: Operand
    title: str
    version: str
    owner: str
    glyph: str
    word: str


def operand_lines(operands: Sequence[Operand], *, as_of: datetime | None = None, now: datetime) -> list[OperandLine]:
    """Returns the operands. `as_of` is their last update unless live."""
    ordered = sorted(operands, key=lambda row: (ORDER.get(row.operand, len(ORDER)), row.name))
    return [_operand_line(row, as_of, now=now) for row in ordered]


def _operand_line(row: Operand, as_of: datetime | None, *, now: datetime) -> OperandLine:
    glyph, word = _rollout(row)
    if as_of is not None:
        glyph, word = "unseen", f"{word}, as of {clock(as_of, now=now)}"
    owner = f"{row.owner_kind} {row.owner_name}".strip()
    return OperandLine(row, title_of(row.operand), tag_of(row.image), owner, glyph, word)


def _rollout(row: Operand) -> tuple[str, str]:
    if row.observed_generation < row.generation:
        return "waiting", "its controller has not processed the newest template yet"
    if not row.desired:
        return "waiting", "no node should run it"
    if row.ready < row.desired:
        return "bad", f"{row.desired - row.ready} not ready"
    if row.updated < row.desired:
        return "changing", f"{row.desired - row.updated} still with an older template"
    return "ok", "rolled out"


@dataclass(frozen=True)
class EntryLine:
    name: str
    text: str  # as written
    nodes: int
    is_missing: bool  # selected by nodes, but in no active ConfigMap


@dataclass(frozen=True)
class ConfigCard:
    title: str
    config: OperatorConfig | None  # None: the selected entries are in no known ConfigMap
    named: str  # by the ClusterPolicy
    label: str  # node label that selects
    lines: Sequence[EntryLine]
    unpicked: int  # nodes that select none

    @property
    def is_used(self) -> bool:
        is_somebodys = self.config is not None and self.config.name != MIG_DEFAULT_CONFIG
        return is_somebodys or any(line.nodes for line in self.lines)


def config_cards(cluster_id: int, objects: Sequence[DriverObject]) -> list[ConfigCard]:
    """Returns the cards, none for a cluster without sharing and MIG. Two queries."""
    configs = list(OperatorConfig.objects.filter(cluster=cluster_id))
    policy = next((each for each in objects if each.kind == "ClusterPolicy" and each.state != "ignored"), None)
    sharing, mig = (policy.sharing_config, policy.mig_config) if policy else ("", "")
    picks, mig_picks = _picks(cluster_id)
    cards = [
        _config_card("sharing", "Sharing", sharing, PLUGIN_CONFIG, configs, picks),
        _config_card("mig", "MIG", mig, MIG_CONFIG, configs, mig_picks),
    ]
    return [card for card in cards if card.is_used]


def _picks(cluster_id: int) -> tuple[Counter[str], Counter[str]]:
    """Returns how many GPU nodes select each entry, for sharing and for MIG."""
    sharing: Counter[str] = Counter()
    mig: Counter[str] = Counter()
    picked = SegmentSums.objects.filter(cluster=cluster_id).values_list("plugin_config", "mig_config")
    for plugin_config, mig_config, number in picked.annotate(number=Sum("nodes")):
        sharing[plugin_config] += number
        mig[mig_config] += number
    return sharing, mig


def _config_card(
    purpose: str, title: str, named: str, label: str, configs: Sequence[OperatorConfig], picks: Mapping[str, int]
) -> ConfigCard:
    fitting = [config for config in configs if config.purpose == purpose]
    config = next((each for each in fitting if each.name == named), fitting[0] if fitting else None)
    entries: Mapping[str, Any] = config.entries if config else {}
    lines = [EntryLine(name, str(text), picks.get(name, 0), is_missing=False) for name, text in entries.items()]
    missing = sorted(name for name in picks if name and name not in entries)
    lines += [EntryLine(name, "", picks[name], is_missing=config is not None) for name in missing]
    lines.sort(key=lambda line: (not line.is_missing, -line.nodes, line.name))
    return ConfigCard(title, config, named, label, lines, picks.get("", 0))


@dataclass(frozen=True)
class DraCard:
    classes: Sequence[DeviceClass]
    drivers: Sequence[Mapping[str, Any]]  # driver, slices, nodes, incomplete pools
    claims: int
    allocated: int

    @property
    def pending(self) -> int:
        return self.claims - self.allocated

    def __bool__(self) -> bool:
        return bool(self.classes or self.drivers or self.claims)


def dra_card(cluster_id: int) -> DraCard:
    """Returns DRA's numbers. Four queries."""
    slices = ResourceSlice.objects.filter(cluster=cluster_id).order_by("driver").values("driver")
    partial = Counter(driver for (driver, _), pool in slice_pools(cluster_id).items() if not pool.is_complete)
    claims = ResourceClaim.objects.filter(cluster=cluster_id).order_by()
    counted = claims.aggregate(claims=Count("pk"), pending=Count("pk", filter=Q(allocated=[])))
    return DraCard(
        classes=list(DeviceClass.objects.filter(cluster=cluster_id).order_by("name")),
        drivers=[
            row | {"incomplete_pools": partial[row["driver"]]}
            for row in slices.annotate(slices=Count("pk"), nodes=Count("node_name", distinct=True))
        ],
        claims=counted["claims"],
        allocated=counted["claims"] - counted["pending"],
    )


@dataclass(frozen=True)
class QuotaLine:
    namespace: str
    name: str
    resource: str
    used: str
    hard: str
    is_full: bool


@dataclass(frozen=True)
class QuotaCard:
    quotas: Sequence[QuotaLine]  # full ones first
    limits: Sequence[tuple[LimitRange, str]]
    left: int  # quotas and limits without a line

    def __bool__(self) -> bool:
        return bool(self.quotas or self.limits)


def quota_card(cluster_id: int) -> QuotaCard:
    """Returns quotas and limits on GPUs. Two queries."""
    quotas = [line for row in _naming_gpus(ResourceQuota, "hard", cluster_id) for line in _quota_lines(row)]
    limits = [(row, text) for row in _naming_gpus(LimitRange, "limits", cluster_id) if (text := _limits(row))]
    ordered = sorted(quotas, key=lambda line: (not line.is_full, line.namespace, line.resource))
    shown = ordered[:QUOTAS_SHOWN], limits[:QUOTAS_SHOWN]
    return QuotaCard(*shown, left=len(ordered) + len(limits) - len(shown[0]) - len(shown[1]))


def quotas_of_namespace(cluster_id: int, namespace: str) -> list[QuotaLine]:
    """Returns the quotas on GPUs of a namespace, the full ones first. One query."""
    rows = ResourceQuota.objects.filter(cluster=cluster_id, namespace=namespace)
    lines = [line for row in rows for line in _quota_lines(row)]
    return sorted(lines, key=lambda line: (not line.is_full, line.resource, line.name))[:QUOTAS_SHOWN]


def _naming_gpus(model: Any, column: str, cluster_id: int) -> Any:
    """Filters rows whose text names a GPU vendor, since few quotas concern GPUs."""
    text = Q()
    for vendor in VENDORS:
        text |= Q(text__contains=vendor)
    return model.objects.filter(cluster=cluster_id).annotate(text=Cast(F(column), TextField())).filter(text)


def _quota_lines(row: ResourceQuota) -> list[QuotaLine]:
    found = []
    for key, hard in row.hard.items():
        if not is_gpu_resource(_bare(key)) and not key.endswith(VENDORS[-1]):
            continue
        used = str(row.used.get(key, ""))
        left = whole_quantity(str(hard)), whole_quantity(used)
        is_full = None not in left and left[1] >= left[0]  # type: ignore[operator]
        found.append(QuotaLine(row.namespace, row.name, key, used, str(hard), is_full=is_full))
    return found


def _bare(key: str) -> str:
    for prefix in PREFIXES:
        key = key.removeprefix(prefix)
    return key


def _limits(row: LimitRange) -> str:
    said = []
    for limit in row.limits:
        for word in ("max", "min", "default", "defaultRequest"):
            values = limit.get(word) or {}
            said += [
                f"{limit.get('type', '')} {word} {key}={value}" for key, value in values.items() if is_gpu_resource(key)
            ]
    return ", ".join(said)
