from decimal import Decimal
from typing import Any

import yaml
from django.db.models import QuerySet

from fleet.models import Cluster, Pool
from fleet.pools.files.parser import DEFAULTS, KEYS


def write(cluster: Cluster, pools: QuerySet[Pool] | None = None) -> str:
    """Returns the cluster's pools as a file without default values.

    `pools` limits them to visible ones; None: all.
    """
    seen = Pool.objects.all() if pools is None else pools
    entries = [_entry(pool) for pool in seen.filter(cluster=cluster).order_by("name")]
    return yaml.safe_dump(
        {"cluster": cluster.name, "pools": entries},
        sort_keys=False,
        allow_unicode=True,
        width=1000,
        default_flow_style=False,
    )


def _entry(pool: Pool) -> dict[str, Any]:
    said = {key: getattr(pool, key) for key in KEYS}
    return {key: _value_as_text(value) for key, value in said.items() if key not in DEFAULTS or value != DEFAULTS[key]}


def _value_as_text(value: Any) -> Any:
    """Returns prices as text, since a float would round them."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value) if isinstance(value, str) else value
