"""What the commands about freezes share: where is meant, and who says so."""

from datetime import UTC, datetime

from django.core.management.base import CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from fleet.models import Cluster, Pool
from people.roster.accounts import CONSOLE
from rollouts.commands.fleet_freezes import Where


def takes_who_and_why(parser: CommandParser) -> None:
    parser.add_argument("--reason", required=True, help="why; kept for good, and said by every plan that waits")
    parser.add_argument("--by", default=CONSOLE, help="who says so; default: %(default)s")


def who_and_why(given: dict) -> dict[str, str]:
    """As a row keeps them."""
    reason = given["reason"].strip()[:1000]
    if not reason:
        raise CommandError("Say why: the next person will want to know.")
    return {"actor": given["by"].strip()[:150] or CONSOLE, "reason": reason}


def somewhere(name: str) -> Where:
    """`fleet`, `eu-1` or `eu-1/h200`."""
    if name == "fleet":
        return Where()
    cluster_name, _, pool_name = name.partition("/")
    cluster = Cluster.objects.filter(name=cluster_name).first()
    if cluster is None:
        raise CommandError(f"There is no cluster {cluster_name}. Say fleet, CLUSTER or CLUSTER/POOL.")
    if not pool_name:
        return Where(cluster)
    pool = Pool.objects.filter(cluster=cluster, name=pool_name).select_related("cluster").first()
    if pool is None:
        raise CommandError(f"Cluster {cluster_name} has no pool {pool_name}.")
    return Where(cluster, pool)


def instant(text: str) -> datetime:
    """As ISO 8601 has it; without a zone it is UTC."""
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None:
        raise CommandError(f"“{text[:40]}” is no instant. Write it as 2026-11-30T08:00Z.")
    return at if at.tzinfo else at.replace(tzinfo=UTC)
