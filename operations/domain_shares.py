"""The nodes in service of each zone, rack and NVLink domain, before and after chosen nodes leave."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from fleet.models import Cluster, Node
from operations.failure_domains import DomainKind
from operations.models import DomainBudget
from wording.numbers import count

TITLES: Mapping[DomainKind, str] = {
    DomainKind.ZONE: "Zone", DomainKind.RACK: "Rack", DomainKind.NVLINK: "NVLink domain",
}  # fmt: skip


@dataclass(frozen=True)
class DomainShare:
    """The chosen nodes of one failure domain."""

    kind: DomainKind
    key: str
    chosen: int
    total: int
    in_service: int  # Ready, and not cordoned
    after: int  # in service, without the chosen nodes
    most_out: int | None  # nodes that may be unavailable; None: no budget

    @property
    def sentence(self) -> str:
        chosen = f"{TITLES[self.kind]} {self.key}: {self.chosen} of {count(self.total, 'node')} chosen"
        limit = "" if self.most_out is None else f" At most {self.most_out} may be unavailable."
        return f"{chosen}. {self.in_service} in service now, {self.after} without the chosen nodes.{limit}"


def domains_of(cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    """Returns a sentence for each failure domain of the nodes, the emptiest first. Two queries.

    A domain that no label names is unknown, and is said to be.
    """
    budgets = {DomainKind(row.kind): row for row in DomainBudget.objects.filter(cluster=cluster)}
    rack = budgets[DomainKind.RACK].label if DomainKind.RACK in budgets else ""
    rows = Node.objects.filter(cluster=cluster).with_gpus() | Node.objects.filter(pk__in=[node.pk for node in nodes])
    blank = Value("", output_field=TextField())
    key = Coalesce(KeyTextTransform(rack, "labels"), blank) if rack else blank
    columns = rows.annotate(rack=key, nvlink=F("nvlink_domain"))
    chosen = {node.pk for node in nodes}
    members: dict[tuple[DomainKind, str], list[tuple[int, bool]]] = defaultdict(list)
    names = ("pk", "is_ready", "is_unschedulable", "zone", "rack", "nvlink")
    for pk, is_ready, is_cordoned, *keys in columns.values_list(*names):
        for kind, its in zip(TITLES, keys, strict=True):
            members[kind, its].append((pk, is_ready is True and not is_cordoned))
    shares = [
        DomainShare(
            kind, its, chosen=sum(pk in chosen for pk, _ in rows), total=len(rows),
            in_service=sum(serves for _, serves in rows),
            after=sum(serves and pk not in chosen for pk, serves in rows),
            most_out=budgets[kind].max_unavailable if kind in budgets else None,
        )
        for (kind, its), rows in members.items()
        if any(pk in chosen for pk, _ in rows)
    ]  # fmt: skip
    known = sorted((share for share in shares if share.key), key=lambda share: (share.after, share.kind, share.key))
    return [*(share.sentence for share in known), *_unknown(shares, rack)]


def _unknown(shares: Sequence[DomainShare], rack: str) -> Iterator[str]:
    for share in shares:
        if share.key or share.kind == DomainKind.NVLINK:  # most nodes are in no NVLink domain
            continue
        if share.kind == DomainKind.RACK and not rack:
            yield "Racks are unknown: no node label of racks is set in the domain budgets of the cluster."
        else:
            yield f"{TITLES[share.kind]} unknown of {count(share.chosen, 'chosen node')}: no label names it."
