"""Label selectors as database conditions, so that labels need not be loaded.

They match exactly like `selectors.Selector.matches`. Django's own key lookups do not: they treat a numeric key as an
index (django/db/models/fields/json.py, `KeyTransform.as_postgresql` and `compile_json_path`).
"""

from itertools import chain
from typing import Any

from django.db.models import F, Func, Q, TextField, Value
from django.db.models.lookups import In, IsNull

from fleet.models import DriverObject, Workload
from kube.selectors import Requirement, Selector


class LabelValue(Func):
    """The value of a node's label; NULL without it."""

    output_field = TextField()

    def __init__(self, key: str, **extra: Any) -> None:
        super().__init__(F("labels"), Value(key, output_field=TextField()), **extra)

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        labels, key = self.get_source_expressions()
        path = self.copy()
        # Quoted; no valid key contains a quote.
        path.set_source_expressions([labels, Value(f'$."{key.value}"', output_field=TextField())])
        return path.as_sql(compiler, connection, function="JSON_EXTRACT", **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, template="(%(expressions)s::text)", arg_joiner=" ->> ", **extra)


def labelled(selector: Selector) -> Q:
    """Returns the condition of a selector. A selector without requirements matches all."""
    return Q(*(_condition_of(requirement) for requirement in selector.requirements))


def _condition_of(requirement: Requirement) -> Q:
    said = LabelValue(requirement.key)
    if requirement.wanted is None:
        return Q(IsNull(said, requirement.negated))
    found = Q(In(said, sorted(requirement.wanted)))
    lacks_it = IsNull(said, True)  # noqa: FBT003 - Django's own signature
    return Q(lacks_it) | ~found if requirement.negated else found


CLUSTER_WIDE = ("ClusterPolicy", "GPUCluster")


def operator_versions() -> dict[int, str]:
    """Returns the versions by cluster: from labels of ClusterPolicy or GPUCluster, else of the Deployment. Two
    queries."""
    deployed = Workload.objects.operators().order_by("-name")
    labelled = DriverObject.objects.filter(kind__in=CLUSTER_WIDE).exclude(operator_version="").order_by("-kind")
    said = (rows.values_list("cluster", "operator_version") for rows in (deployed, labelled))
    return dict(chain.from_iterable(said))
