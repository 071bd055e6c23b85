"""The rack of a node and its switches, as labels name them: Kubernetes has no labels of its own for them."""

from collections.abc import Mapping, Sequence

from django.db.models import TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from fleet.models import Pool
from gpu.labels import GPU_CLIQUE, HOSTNAME, INSTANCE_TYPE, RACK_LABELS, REGION, SPINE_LABELS, SWITCH_LABELS, ZONE

NO_RACKS = ("", HOSTNAME, INSTANCE_TYPE, GPU_CLIQUE, ZONE, REGION)  # labels that pools may spread over


def rack_labels(cluster_id: int, *, named: str = "") -> tuple[str, ...]:
    """Returns the labels of which the first on a node names its rack: `named`, those of pools, well-known ones.

    One query. A pool that spreads over hosts, NVLink domains, zones or regions names no rack.
    """
    spread = Pool.objects.filter(cluster=cluster_id).exclude(spread_label__in=NO_RACKS).order_by("pk")
    labels = (named, *spread.values_list("spread_label", flat=True), *RACK_LABELS)
    return tuple(dict.fromkeys(filter(None, labels)))


def place_values(cluster_id: int, *, named: str = "") -> Mapping[str, Combinable]:
    """Returns the expressions for a node's rack, switch and spine switch; blank where no label names it. One query.

    A label of the switch next to a node names no rack here, unless it is `named`.
    """
    racks = [label for label in rack_labels(cluster_id, named=named) if label == named or label not in SWITCH_LABELS]
    return {
        "rack": rack_value(racks),
        "switch": rack_value([label for label in SWITCH_LABELS if label != named]),
        "spine_switch": rack_value(SPINE_LABELS),
    }


def rack_value(labels: Sequence[str]) -> Combinable:
    """Returns the expression for a node's rack; blank if no label names it."""
    named = [KeyTextTransform(label, "labels") for label in labels]
    return Coalesce(*named, Value(""), output_field=TextField())
