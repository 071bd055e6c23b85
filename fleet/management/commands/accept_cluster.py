from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.arguments import reason
from fleet.clusters.acceptance import CannotAccept, accept
from fleet.models import Cluster
from people.roster.accounts import CONSOLE


class Command(BaseCommand):
    help = "Accept that the cluster which answers in the place of one we know is that one, built anew."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what we call it")
        parser.add_argument("--uid", default="", help="of the kube-system you mean; default: of what answers there")
        parser.add_argument("--reason", type=reason, default="", help="why, for the record")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = Cluster.objects.filter(name=given["name"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster named {given['name']}.")
        before, uid = cluster.uid, given["uid"] or cluster.foreign_uid
        try:
            accept(cluster, uid=uid, actor=CONSOLE, reason=given["reason"], now=timezone.now())
        except CannotAccept as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(
            f"{cluster.name} is the cluster {uid} from now on; it was {before}. "
            "A worker forgets the old one's rows and lists it anew; its timeline stays."
        )
