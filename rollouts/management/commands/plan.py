import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.digits import whole
from edges.documents import LARGEST_BYTES
from people.models import User
from people.rights import NotAllowed, Permission, require
from rollouts.checks import Check
from rollouts.commands.documents import Applied, PlanDocument, apply, look, read, write
from rollouts.commands.image_pulls import ask
from rollouts.commands.live_checks import ask as ask_live
from rollouts.commands.preview import Preview
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.image_pulls.latest_pulls import newest_pull
from rollouts.models import Plan
from rollouts.models.plan import MARK
from rollouts.preflight.live_checks.latest import LiveOnPage, live_on_page
from wording.lists import names
from wording.numbers import count

SHOWN = 24  # nodes of a wave


class Command(BaseCommand):
    help = "Plans as documents, YAML or JSON, and whether their images can be pulled. Nothing here starts one."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        shown = verbs.add_parser("preview", help="say what the document's plan would do, and write nothing")
        applied = verbs.add_parser("apply", help="draft the plan, or edit the draft that it was applied to before")
        for each in (shown, applied):
            each.add_argument("file", help="- reads from standard input")
            each.add_argument("--as", dest="who", required=True, metavar="USERNAME", help="whose rights it takes")
        pull = verbs.add_parser("pull", help="pull its image beforehand, on the first nodes of each operating system")
        pull.add_argument("plan", help="its number")
        pull.add_argument("--as", dest="who", required=True, metavar="USERNAME", help="whose rights it takes")
        pull.add_argument("--reason", required=True, metavar="WHY")
        pull.add_argument("--each", type=int, default=1, metavar="N", help="nodes of each operating system; 1")
        check = verbs.add_parser("check", help="have a worker ask the draft's cluster itself what bars its start")
        check.add_argument("plan", help="its number")
        check.add_argument("--as", dest="who", required=True, metavar="USERNAME", help="whose rights it takes")
        checked = verbs.add_parser("checked", help="say what the draft's cluster itself said last")
        checked.add_argument("plan", help="its number")
        pulled = verbs.add_parser("pulled", help="say what became of pulling its image beforehand")
        pulled.add_argument("plan", help="its number")
        written = verbs.add_parser("document", help="print a plan as the document that, applied, is the same draft")
        written.add_argument("plan", help="its number")

    def handle(self, *args: Any, **given: Any) -> None:
        if given["verb"] == "document":
            self.stdout.write(write(_plan(given["plan"])), ending="")
            return
        if given["verb"] == "pulled":
            self._say_pulled(_plan(given["plan"]))
            return
        if given["verb"] == "pull":
            self._pull(given)
            return
        if given["verb"] == "check":
            self._check_live(given)
            return
        if given["verb"] == "checked":
            self._say_checked(_plan(given["plan"]))
            return
        who, content = _person(given["who"]), _content(given["file"])
        try:
            self._carry_out(given["verb"], read(content), who)
        except BadPlan as refusal:
            lines = [f"{each['field']}: {each['sentence']}".removeprefix(": ") for each in refusal.problems]
            raise CommandError("\n".join(["Nothing was changed.", *lines])) from refusal
        except (NotAllowed, Refusal) as refusal:
            raise CommandError(f"Nothing was changed. {refusal}") from refusal

    def _pull(self, given: dict[str, Any]) -> None:
        who, plan, reason = _person(given["who"]), _plan(given["plan"]), given["reason"].strip()[:1000]
        if not reason:
            raise CommandError("Nothing was made. Say why, with --reason: the next person will want to know.")
        try:
            require(who, Permission.RUN, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
            ask(plan, actor=who, reason=reason, nodes_each=given["each"], now=timezone.now())
        except (NotAllowed, Refusal) as refusal:
            raise CommandError(f"Nothing was made. {refusal}") from refusal
        self._say_pulled(plan)

    def _check_live(self, given: dict[str, Any]) -> None:
        who, plan = _person(given["who"]), _plan(given["plan"])
        try:
            require(who, Permission.DRAFT, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
            ask_live(plan, actor=who, now=timezone.now())
        except (NotAllowed, Refusal) as refusal:
            raise CommandError(f"Nothing was asked. {refusal}") from refusal
        self._say_checked(plan)

    def _say_checked(self, plan: Plan) -> None:
        for line in _live_lines(live_on_page(plan)):
            self.stdout.write(line)

    def _say_pulled(self, plan: Plan) -> None:
        shown = newest_pull(plan)
        if shown is None:
            self.stdout.write(f"Nobody has tried to pull the image of plan {plan.pk}.")
            return
        self.stdout.write(shown.sentence)
        for job in shown.jobs:
            says = job.says or ("its turn is to come." if shown.may_be_cancelled else "not tried.")
            self.stdout.write(f"  {job.node_name}, {job.image}: {says}")

    def _carry_out(self, verb: str, document: PlanDocument, who: User) -> None:
        now = timezone.now()
        if verb == "apply":
            self._say_applied(apply(document, actor=who, now=now))
            return
        shown = look(document, actor=who, now=now)
        for line in _lines(shown):
            self.stdout.write(line)
        self.stdout.write("Nothing was changed: this was a preview.")

    def _say_applied(self, done: Applied) -> None:
        for each in done.differences:
            self.stdout.write(f"{each.field}: {each.drafted} → {each.document}")
        plan = done.plan
        self.stdout.write(f"{done.outcome.value} plan {plan.pk}, {plan.title}. It is a draft: nothing has started.")


def _lines(shown: Applied) -> list[str]:
    told: Preview | None = shown.preview
    plan = f"plan {shown.plan.pk}" if shown.plan.pk else "a plan that is not there yet"
    lines = [f"{shown.plan.title}: {shown.outcome.value}, {plan}"]
    lines += [f"{each.field}: {each.drafted} → {each.document}" for each in shown.differences]
    if told is None:
        return lines
    lines.append(told.verdict_sentence)
    lines += [line for check in told.blockers for line in _said("blocker", check)]
    lines += [line for check in told.warnings for line in _said("warning", check)]
    lines += _live_lines(told.live)
    for stage in told.stages:
        at_once = f"{count(len(stage.targets), 'node')}, at most {stage.at_once} at once"
        lines.append(f"{stage.name}: {at_once}. {stage.costs}".rstrip())
        lines += [f"  wave {at}: {names(wave, most=SHOWN)}" for at, wave in enumerate(stage.by_wave, 1)]
    return [*lines, f"{count(told.forecast.nodes, 'node')} in all. {told.forecast.duration.sentence}"]


def _live_lines(live: LiveOnPage | None) -> list[str]:
    if live is None:
        return ["Its cluster itself was not asked yet: bin/manage plan check does, and so does every start."]
    answers = (line for one in live.answers for line in _said(one.result.value, one.check))
    return [f"Asked of its cluster itself: {live.sentence}", *(f"  {line}" for line in answers)]


def _said(what: str, check: Check) -> list[str]:
    field = f"{check.field}: " if check.field else ""
    return [f"{what}: {field}{check.sentence} {check.fix}".rstrip(), *(f"  {line}" for line in check.about)]


def _person(name: str) -> User:
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise CommandError(f"Nobody here is called {name[:150]}.")
    return user


def _plan(named: str) -> Plan:
    key = whole(named.removeprefix(MARK))
    plan = Plan.objects.filter(pk=key).select_related("cluster").first() if key else None
    if plan is None:
        raise CommandError(f"There is no plan {named[:40]}.")
    return plan


def _content(name: str) -> bytes:
    """No more of it than tells that it is too large."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(LARGEST_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error}.") from error
