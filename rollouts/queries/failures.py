"""The causes of failed nodes, from findings."""

from collections.abc import Iterable

from health.models import Finding
from health.rules.upgrade_failed import UpgradeFailed


def causes_found(node_uids: Iterable[str]) -> dict[str, str]:
    """Returns the cause of each failed upgrade by node UID. One query."""
    told = Finding.objects.unresolved().filter(rule=UpgradeFailed.key, node__uid__in=list(node_uids))
    return dict(told.exclude(probable_cause="").values_list("node__uid", "probable_cause"))
