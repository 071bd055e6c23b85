from decimal import Decimal
from typing import Any

import yaml
from django.db.models import QuerySet

from fleet.models import Cluster, Pool
from fleet.pools.files.parser import DEFAULTS, KEYS


def write(cluster: Cluster, pools: QuerySet[Pool] | None = None) -> str:
    """The cluster's pools as a file that, taken over, changes nothing. What is as by default is left out.

    `pools`: those that may be seen; None: all.
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
    return {key: _plain(value) for key, value in said.items() if key not in DEFAULTS or value != DEFAULTS[key]}


def _plain(value: Any) -> Any:
    """A price as text: a float would round it."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value) if isinstance(value, str) else value
