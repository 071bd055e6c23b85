import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from edges.arguments import number
from fleet.models import Cluster
from health.backtest.backtest import LONGEST, STEP, NoReplay, replay
from health.backtest.report import as_json, lines
from health.inbox.pool_limits import COMPARING
from health.rules.limits import LONGEST as LONGEST_LASTING
from health.rules.limits import Limits

LONGEST_S = int(LONGEST_LASTING.total_seconds())


class Command(BaseCommand):
    help = "Show the findings that a rule would have opened in the last days, from stored data. Notifies nobody."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("rule", help="key of the rule, as in GET /api/v1/rules")
        parser.add_argument("--days", type=int, default=7, help=f"back from now, at most {LONGEST.days}; 7")
        parser.add_argument("--cluster", help="only this one")
        parser.add_argument("--step", type=int, default=int(STEP.total_seconds()), metavar="S", help="seconds; 60")
        parser.add_argument("--warn", type=float, help="limits to be tried, in the unit of the rule")
        parser.add_argument("--critical", type=float, help="default: no finding is critical")
        parser.add_argument(
            "--warn-after",
            type=number(0, LONGEST_S),
            metavar="S",
            help="seconds that the fault must last; default: as the rule",
        )
        parser.add_argument(
            "--critical-after", type=number(0, LONGEST_S), metavar="S", help="at most the seconds of a warning"
        )
        parser.add_argument(
            "--most", type=number(0, 1_000_000), default=100, help="number of findings listed for each cluster; 100"
        )
        parser.add_argument("--json", action="store_true", help="print the whole result as JSON")

    def handle(self, *args: Any, rule: str, days: int, step: int, **given: Any) -> None:
        if not 1 <= days <= LONGEST.days or not 15 <= step <= 600:
            raise CommandError(f"--days is 1 to {LONGEST.days}, --step 15 to 600 seconds.")
        clusters = Cluster.objects.order_by("name")
        clusters = clusters.filter(name=given["cluster"]) if given["cluster"] else clusters
        if not clusters:
            raise CommandError(
                f"Cluster {given['cluster']} does not exist." if given["cluster"] else "There is no cluster."
            )
        self._told: tuple[int, int] | None = None
        try:
            replayed = replay(
                rule, list(clusters), last=timedelta(days=days), step=timedelta(seconds=step),
                limits=_limits(rule, given), report_progress=self._progress, clock=timezone.now,
            )  # fmt: skip
        except NoReplay as refusal:
            raise CommandError(str(refusal)) from refusal
        if given["json"]:
            self.stdout.write(json.dumps(as_json(rule, replayed)))
        else:
            for line in lines(rule, replayed, most=given["most"]):
                self.stdout.write(line)
        if all(one.reason for one in replayed):
            raise CommandError("No cluster has stored data, so the rule cannot be evaluated.")

    def _progress(self, cluster: Cluster, share: float) -> None:
        percent = int(share * 10) * 10
        if (cluster.pk, percent) != self._told:
            self._told = (cluster.pk, percent)
            self.stderr.write(f"{cluster.name}: {percent} %")


def _limits(rule: str, given: dict[str, Any]) -> Limits | None:
    """Returns the requested limits; None: none given."""
    names = ("warn", "critical", "warn_after", "critical_after")
    if all(given[name] is None for name in names):
        return None
    if given["warn"] is None:
        raise CommandError("Give --warn before other limits.")
    own = COMPARING[rule].limits if rule in COMPARING else Limits(given["warn"])
    warn_after, critical_after = (
        getattr(own, name) if given[name] is None else timedelta(seconds=given[name])
        for name in ("warn_after", "critical_after")
    )
    return Limits(given["warn"], given["critical"], warn_after, min(warn_after, critical_after), whose="the trial")
