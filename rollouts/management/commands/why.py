from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.digits import whole
from rollouts.commands.remaining import label_progress
from rollouts.models import Plan
from rollouts.models.plan import MARK
from rollouts.queries.plan_view import plan_on_page


class Command(BaseCommand):
    help = "Why a plan is not moving, in the sentence that its page and REST say."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", nargs="?", help="its number; without one, every plan under way")

    def handle(self, *args: Any, **given: Any) -> None:
        if given["plan"]:
            self._say(self._found(given["plan"]))
        else:
            self._say_of_all()

    def _say_of_all(self) -> None:
        plans = list(Plan.objects.under_way().select_related("cluster").order_by("pk"))
        for plan in plans:
            self.stdout.write(f"{plan} on {plan.cluster.name} is {plan.state.replace('-', ' ')}:")
            self._say(plan)
        if not plans:
            self.stdout.write("No plan is under way.")

    def _found(self, named: str) -> Plan:
        key = whole(named.removeprefix(MARK).removeprefix("#"))
        plan = Plan.objects.filter(pk=key).select_related("cluster").first() if key else None
        if plan is None:
            raise CommandError(f"There is no plan {named[:40]}. bin/manage why lists those under way.")
        return plan

    def _say(self, plan: Plan) -> None:
        now = timezone.now()
        on_page = plan_on_page(plan, now=now)
        self.stdout.write(on_page.why)
        for sentence in on_page.besides:
            self.stdout.write(f"Besides: {sentence}")
        for sentence in on_page.passed_over:
            self.stdout.write(f"Passed over: {sentence}")
        for progress in label_progress(on_page, now=now):
            self.stdout.write(f"{progress.sentence}.")
