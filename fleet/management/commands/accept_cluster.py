from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.arguments import reason
from fleet.clusters.acceptance import CannotAccept, accept
from fleet.models import Cluster
from people.roster.accounts import CONSOLE


class Command(BaseCommand):
    help = "Accept that the cluster at a known address was rebuilt and has another UID."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what we call it")
        parser.add_argument(
            "--uid", default="", help="UID of its kube-system; default: the UID of the cluster that answers there"
        )
        parser.add_argument("--reason", type=reason, default="", help="the reason, stored permanently")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = Cluster.objects.filter(name=given["name"]).first()
        if cluster is None:
            raise CommandError(f"Cluster {given['name']} does not exist.")
        before, uid = cluster.uid, given["uid"] or cluster.foreign_uid
        try:
            accept(cluster, uid=uid, actor=CONSOLE, reason=given["reason"], now=timezone.now())
        except CannotAccept as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(
            f"{cluster.name} is now the cluster {uid}; it was {before}. A worker deletes the old cluster's rows "
            "and lists the new cluster. The timeline stays."
        )
