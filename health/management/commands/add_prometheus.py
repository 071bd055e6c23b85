from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.arguments import words
from fleet.models import Cluster
from health import wake
from health.inbox.telemetry_sources import BadSource, Trial, put_source, try_source
from health.sources.secrets import PLACES
from people.roster.accounts import CONSOLE
from wording.numbers import count


class Command(BaseCommand):
    help = "Read the telemetry of a cluster's GPUs from a Prometheus. It is tried first, and no secret is stored."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="its name")
        parser.add_argument(
            "url", type=words(300), help="as https://prometheus.example.org, with its path where it has one"
        )
        parser.add_argument(
            "--match", type=words(500), default="", help='label matchers, where it has several clusters: cluster="eu-1"'
        )
        parser.add_argument(
            "--user", type=words(150), default="", help="for basic authentication; its password is --secret"
        )
        parser.add_argument("--secret", type=words(300), default="", help=f"a password or token: {PLACES}")
        parser.add_argument(
            "--ca-file",
            type=words(300),
            default="",
            help="of who signed its certificate: a file in the folder QUARTERDECK_SECRETS_DIR",
        )
        parser.add_argument("--only-try", action="store_true", help="ask it once, and change nothing")
        parser.add_argument("--anyway", action="store_true", help="add it although it does not answer now")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = Cluster.objects.filter(name=given["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster named {given['cluster']}.")
        fields = {
            "url": given["url"],
            "matchers": given["match"],
            "user": given["user"],
            "secret_from": given["secret"],
            "ca_file": given["ca_file"],
        }
        try:
            trial = try_source(cluster, **fields)
            if trial.trouble and given["only_try"]:
                raise CommandError(trial.trouble)
            if trial.trouble and not given["anyway"]:
                raise CommandError(f"{trial.trouble} Nothing was changed; --anyway adds it all the same.")
            self._tell(trial)
            if not given["only_try"]:
                put_source(cluster, actor=CONSOLE, now=timezone.now(), is_on=True, **fields)
                wake.wake_telemetry_of(cluster.pk)
                self.stdout.write(f"Workers ask it for {cluster.name} from now on.")
        except BadSource as refusal:
            raise CommandError(str(refusal)) from refusal

    def _tell(self, trial: Trial) -> None:
        self.stdout.write(trial.sentence)
        away = [metric for metric in trial.missing if metric.is_usual]
        off = [metric for metric in trial.missing if not metric.is_usual]
        if trial.partly:
            partly = [
                f"{metric.title} (not on {nodes.not_exported} of {count(nodes.of, 'node')})"
                for metric, nodes in trial.partly
            ]
            self.stdout.write(f"  Not exported on every node: {', '.join(partly)}.")
        if away:
            self.stdout.write(f"  Not exported: {', '.join(metric.title for metric in away)}.")
        if off:
            self.stdout.write(
                f"  Not exported unless switched on at the exporter: {', '.join(metric.title for metric in off)}."
            )
