from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from edges.arguments import number, reason
from edges.transition_errors import LostRace
from fleet.models import Pool
from health.inbox import shadow_mode
from health.inbox.pool_limits import COLUMNS, LimitsAsked, put_limits, remove_limits
from health.inbox.refusals import FindingRefusal
from health.inbox.rulebook import every_rule
from health.models import PoolLimits, RuleShadow
from health.rules.limits import LONGEST
from people.roster.accounts import CONSOLE
from wording.durations import spell

LONGEST_S = int(LONGEST.total_seconds())


class Command(BaseCommand):
    help = "The rules that findings are found by: which are on trial, and the limits that pools have of their own."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="every rule, whether it is on trial, and its limits")
        for verb, words in (("shadow", "put one on trial: judged, and nobody told"), ("tell", "end its trial")):
            one = verbs.add_parser(verb, help=words)
            one.add_argument("rule", help="its key")
            one.add_argument("--reason", type=reason, default="", help="why; kept for good")
        limit = verbs.add_parser("limit", help="give a pool its own limits for a rule, or change them")
        limit.add_argument("--warn", type=float, required=True, help="from when on, in the unit of the rule")
        limit.add_argument("--critical", type=float, help="without it nothing is critical there")
        limit.add_argument(
            "--warn-after", type=number(0, LONGEST_S), required=True, metavar="S", help="seconds that it must be so"
        )
        limit.add_argument(
            "--critical-after", type=number(0, LONGEST_S), default=0, metavar="S", help="no more than for a warning"
        )
        for one in (limit, verbs.add_parser("unlimit", help="take a pool's limits away")):
            one.add_argument("rule", help="its key")
            one.add_argument("pool", help="cluster/pool")
            one.add_argument("--reason", type=reason, default="", help="why; kept for good")

    def handle(self, *args: Any, verb: str, **given: Any) -> None:
        try:
            if verb == "list":
                self._list()
            elif verb in ("shadow", "tell"):
                self._try(verb, given["rule"], given["reason"])
            else:
                self._limit(verb, **given)
        except (FindingRefusal, LostRace) as refusal:
            raise CommandError(str(refusal)) from refusal

    def _list(self) -> None:
        tried = {row.rule: row for row in RuleShadow.objects.in_force()}
        for entry in every_rule():
            row = tried.get(entry.key)
            self.stdout.write(f"{entry.key}  {entry.title}" + (f"  on trial by {row.by}: {row.reason}" if row else ""))
        for limits in PoolLimits.objects.select_related("pool__cluster"):
            never = "never critical" if limits.critical is None else f"critical {limits.critical:g}"
            after = f"for {spell(limits.limits.warn_after)}, {never}"
            self.stdout.write(f"{limits}: warn {limits.warn:g} {after}, by {limits.by}: {limits.reason}")

    def _try(self, verb: str, rule: str, reason: str) -> None:
        if verb == "shadow":
            shadow_mode.begin(rule, actor=CONSOLE, reason=reason, now=timezone.now())
            self.stdout.write(f"{rule} is on trial: nobody is told of what it finds.")
            return
        row = RuleShadow.objects.in_force().filter(rule=rule).first()
        if row is None:
            raise CommandError(f"{rule} is on no trial.")
        shadow_mode.end(row, actor=CONSOLE, reason=reason, now=timezone.now())
        self.stdout.write(f"What {rule} finds is told again.")

    def _limit(self, verb: str, *, rule: str, pool: str, reason: str, **given: Any) -> None:
        cluster, _, name = pool.partition("/")
        found = Pool.objects.filter(cluster__name=cluster, name=name).select_related("cluster").first()
        if found is None:
            raise CommandError(f"There is no pool {pool}. Write it as cluster/pool.")
        row = PoolLimits.objects.filter(pool=found, rule=rule).select_related("pool__cluster").first()
        if verb == "unlimit":
            if row is None:
                raise CommandError(f"Pool {pool} has no limits of its own for {rule}.")
            remove_limits(row, version=row.version, actor=CONSOLE, reason=reason, now=timezone.now())
            self.stdout.write(f"The limits of {rule} itself hold in {pool} again.")
            return
        names = ("warn", "critical", "warn_after", "critical_after")
        asked = LimitsAsked(**{column: given[name] for column, name in zip(COLUMNS, names, strict=True)})
        version = row.version if row else None
        put_limits(found, rule, asked, version=version, actor=CONSOLE, reason=reason, now=timezone.now())
        self.stdout.write(f"These limits hold in {pool} from the next look on.")
