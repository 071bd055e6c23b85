from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from edges.arguments import number, reason
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Pool
from health.inbox import acts, rule_mutes
from health.inbox.refusals import FindingRefusal
from health.models import Finding, Mute
from people.roster.accounts import CONSOLE
from wording.instants import to_the_minute

TOLD: Mapping[str, Callable[..., None]] = {
    "acknowledge": acts.acknowledge,
    "unassign": acts.unassign,
    "accept": acts.accept,
    "dismiss": acts.dismiss,
}


class Command(BaseCommand):
    help = "What is wrong, and acting on it: as on the page of findings, by whoever has a shell here."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="what is not resolved, each with its number")
        verbs.add_parser("mutes", help="what is muted now, each with its number")
        for verb in (*TOLD, "assign", "mute"):
            one = verbs.add_parser(verb)
            one.add_argument("finding", type=int, help="its number")
            one.add_argument("--reason", type=reason, default="", help="why; kept for good")
            if verb == "assign":
                one.add_argument("--to", required=True, help="the name of somebody who may see it")
            if verb == "mute":
                one.add_argument("--scope", choices=rule_mutes.SCOPES, default="finding")
                one.add_argument("--pool", default="", help="its name, for --scope pool")
                one.add_argument("--hours", type=number(1, 10_000), required=True, help="336 at most")
        lift = verbs.add_parser("lift", help="end a mute early")
        lift.add_argument("mute", type=int, help="its number")
        lift.add_argument("--reason", type=reason, default="", help="why; kept for good")

    def handle(self, *args: Any, verb: str, **given: Any) -> None:
        try:
            if verb in ("list", "mutes"):
                self._list() if verb == "list" else self._mutes()
            elif verb == "lift":
                self._lift(given["mute"], given["reason"])
            else:
                self._act(verb, given)
        except (FindingRefusal, IllegalMove, LostRace) as refusal:
            raise CommandError(str(refusal)) from refusal

    def _list(self) -> None:
        rows = (
            Finding.objects.told().unresolved().on_their_own().select_related("cluster").order_by("cluster__name", "pk")
        )
        for row in rows:
            whose = f" [{row.assigned_to}]" if row.assigned_to else ""
            self.stdout.write(f"{row.pk}  {row.severity}  {row.state}{whose}  {row.cluster.name}: {row.sentence}")

    def _mutes(self) -> None:
        rows = Mute.objects.in_force(now=timezone.now()).select_related("cluster", "pool")
        for row in rows:
            self.stdout.write(f"{row.pk}  {row} until {to_the_minute(row.until)}, by {row.by}: {row.reason}")

    def _lift(self, key: int, reason: str) -> None:
        row = Mute.objects.filter(pk=key).select_related("cluster", "pool").first()
        if row is None:
            raise CommandError(f"There is no mute {key}. bin/manage finding mutes names them.")
        rule_mutes.lift(row, actor=CONSOLE, reason=reason, now=timezone.now())
        self.stdout.write(f"Lifted: what is still wrong in {row.place} is open again.")

    def _act(self, verb: str, given: dict[str, Any]) -> None:
        finding = Finding.objects.filter(pk=given["finding"]).select_related("cluster", "node").first()
        if finding is None:
            raise CommandError(f"There is no finding {given['finding']}. bin/manage finding list names them.")
        now, reason = timezone.now(), given["reason"]
        if verb == "mute":
            until = now + timedelta(hours=given["hours"])
            pool = Pool.objects.filter(cluster=finding.cluster, name=given["pool"]).first()
            row = rule_mutes.scoped(finding, given["scope"], pool=pool)
            rule_mutes.mute(row, actor=CONSOLE, reason=reason, until=until, now=now)
            self.stdout.write(f"Muted until {to_the_minute(until)}: {row}.")
        elif verb == "assign":
            acts.assign(finding, to=given["to"], actor=CONSOLE, reason=reason, now=now)
            self.stdout.write(f"It is {given['to']}'s.")
        else:
            TOLD[verb](finding, actor=CONSOLE, reason=reason, now=now)
            self.stdout.write(f"Done: {finding.state}.")
