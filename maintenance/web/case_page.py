"""The pages of one case: the form that opens it, and its state, next steps and timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.fields import Reason, WholeNumber
from edges.kept_input import BadForm, cleaned_input
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from edges.transition_errors import IllegalMove
from fleet.models import Node
from health.models import Finding
from maintenance import commands
from maintenance.acts import ACTS
from maintenance.automatic_cases import DEADLINE_H
from maintenance.lifecycle import CHOICE_ENDED, NO_LOGS, RESULTS, RepairAnswer
from maintenance.models import NodeCase
from maintenance.queries import offers_of
from maintenance.refusals import CaseRefused
from maintenance.repair_offers import OFFERS, answer_effects, repair_offers
from maintenance.repeat_offenders import results_of_repairs, usual_duration, why_replace
from maintenance.triggers import TITLES
from maintenance.web.case_strip import strip_of
from operations.drain_offers import drain_offers_of
from operations.models import OperationNode
from operations.test_jobs.node_tests import NODE_TESTS
from people.rights import NotAllowed, Permission, require, why_not

REFUSALS = (BadForm, NotAllowed, CaseRefused, IllegalMove)
SHOWN = 200  # moves; all are in REST
PERSONS_DEADLINE_H = 24
CHOSEN = {"chosen-test": "test, as chosen", "chosen-release": "release, as chosen", CHOICE_ENDED: "chosen steps ended"}


class NewCaseForm(forms.Form):
    node = WholeNumber(min_value=1, max_value=2**53, widget=forms.HiddenInput)
    finding = WholeNumber(min_value=1, max_value=2**53, required=False, widget=forms.HiddenInput)
    reason = Reason()


class CaseActForm(forms.Form):
    """`seen` is the state that the page showed, with its begin."""

    reason = Reason()
    seen = forms.CharField(required=False, max_length=64)


class RepairForm(CaseActForm):
    """A repair by an actor that does it. `then` is the button: the steps that the person chose for after it."""

    offer = forms.ChoiceField(label="Repair", choices=[(offer.key, offer.title) for offer in OFFERS.values()])
    link = forms.URLField(required=False, max_length=500, label="Link to a ticket", assume_scheme="https")
    deadline_h = WholeNumber(
        required=False, label="Deadline, in hours", min_value=1, max_value=720,
        help_text=f"Blank: {DEADLINE_H} for a controller, {PERSONS_DEADLINE_H} for a person.",
    )  # fmt: skip
    then = forms.ChoiceField(required=False, choices=[("test", "test"), ("release", "test and release")])


class AnswerForm(CaseActForm):
    answer = forms.ChoiceField(choices=[(answer.value, answer.value) for answer in RepairAnswer])
    ticket = forms.CharField(required=False, max_length=100, label="Number of the ticket")
    link = forms.URLField(required=False, max_length=500, label="Link to the ticket", assume_scheme="https")


class ValidationForm(CaseActForm):
    result = forms.ChoiceField(choices=RESULTS)
    test = forms.ChoiceField(choices=[(test.title, test.title) for test in NODE_TESTS.values()])
    link = forms.URLField(required=False, max_length=500, label="Link to the output", assume_scheme="https")


def _ask_repair(case: NodeCase, *, offer: str, then: str, deadline_h: int | None, **given: Any) -> None:
    asked = OFFERS[offer]
    deadline_h = deadline_h or (DEADLINE_H if asked.actor.is_asked else PERSONS_DEADLINE_H)
    given |= {"then_test": then != "", "then_release": then == "release"}
    commands.ask_repair(case, by=asked.actor.key, kind=asked.kind, deadline_h=deadline_h, **given)


COMMANDS: dict[str, tuple[Callable[..., str | None], type[CaseActForm]]] = {
    "repair": (_ask_repair, RepairForm),
    "answer": (commands.answer_repair, AnswerForm),
    "validate": (commands.record_validation, ValidationForm),
    "override": (commands.override, CaseActForm),
    "close": (commands.close, CaseActForm),
    "retire": (commands.retire, CaseActForm),
    "take-over": (commands.take_over, CaseActForm),
}


def new_case(request: PersonRequest) -> HttpResponse:
    """Shows the form that opens a case, and opens it when the form is sent."""
    form = NewCaseForm(request.POST if request.method == "POST" else None, initial=request.GET.dict())
    sent = request.POST if request.method == "POST" else request.GET
    node, finding = _chosen(request, sent.get("node", ""), sent.get("finding", ""))
    cluster, status = node.cluster, 200
    if form.is_bound:
        try:
            require(request.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
            reason = cleaned_input(form)["reason"]
            actor, now = request.user.get_username(), timezone.now()
            case = commands.open_case(node, actor=actor, reason=reason, finding=finding, now=now)
        except BadForm:
            status = 400
        except (NotAllowed, CaseRefused) as refusal:
            form.add_error(None, str(refusal))
            status = 409
        else:
            messages.success(request, f"Opened case {case.pk} of {node.name}.")
            return redirect("case", case_id=case.pk)
    elif finding:
        form.initial["reason"] = finding.title
    locked = why_not(request.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
    context = {"form": form, "node": node, "finding": finding, "why_not": locked}
    return render(request, "maintenance/new.html", context, status=status)


def _chosen(request: PersonRequest, node: str, finding: str) -> tuple[Node, Finding | None]:
    row = get_object_or_404(Node.objects.visible_to(request.user).select_related("cluster"), pk=_key(node))
    if not finding:
        return row, None
    return row, get_object_or_404(Finding.objects.visible_to(request.user), pk=_key(finding))


def _key(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 16:
        return int(text)
    raise Http404("Open a node and choose Open a case.")


def case(request: PersonRequest, case_id: int) -> HttpResponse:
    context = _context(request, case_id)
    row, forms_of = context["case"], {key: form(auto_id=f"{key}_%s") for key, (_, form) in COMMANDS.items()}
    forms_of["validate"].fields["test"].initial = NODE_TESTS[context["test"]].title
    offers = repair_offers(row, boot_id=context["facts"].boot_id)
    forms_of["repair"].fields["offer"].widget.choices = [(offer.key, offer.title) for offer in offers]
    context["dialogs"] = [(ACTS[key], form) for key, form in forms_of.items()]
    context["absent_actors"] = [(actor.title, reason) for actor, reason in offers_of(row) if reason]
    repair = context["facts"].repair
    context["answers"] = answer_effects(repair.kind, context["facts"].chosen) if repair else {}
    context["test_title"] = NODE_TESTS[context["test"]].title
    return render(request, "maintenance/page.html", context)


@part_response
def case_part(request: PersonRequest, case_id: int) -> HttpResponse:
    return render(request, "maintenance/_case.html", _context(request, case_id))


@require_POST
def carry_out(request: PersonRequest, case_id: int, act: str) -> HttpResponse:
    row = _load(request, case_id)
    if act not in COMMANDS:
        raise Http404(f"Choose one of {', '.join(COMMANDS)}.")
    with report_act(request, REFUSALS, ends_form=True):
        require(request.user, Permission.RUN, cluster_id=row.cluster_id, where=f"cluster {row.cluster.name}")
        command, form = COMMANDS[act]
        given = cleaned_input(form(request.POST))
        but = command(row, actor=request.user.get_username(), now=timezone.now(), **given) or ""
        messages.success(request, f"Recorded. {row.node_name}: {row.title.lower()}. {but}".strip())
    return redirect("case", case_id=case_id)


def _load(request: PersonRequest, case_id: int) -> NodeCase:
    return get_object_or_404(NodeCase.objects.visible_to(request.user).select_related("cluster", "finding"), pk=case_id)


def _context(request: PersonRequest, case_id: int) -> dict[str, Any]:
    row = _load(request, case_id)
    node = Node.objects.visible_to(request.user).filter(uid=row.node_uid).first()
    where = f"cluster {row.cluster.name}"
    moves = list(row.moves[:SHOWN])
    strip = strip_of(row, node_id=node.pk if node else None)
    newest = strip["facts"].newest
    drains = OperationNode.objects.filter(operation=newest.number, node_uid=row.node_uid) if newest else None
    drain = drains.select_related("operation").first() if drains is not None and newest.kind == "drain" else None
    return strip | {
        "drain": drain,
        "offers": drain_offers_of(drain, node, now=timezone.now()) if drain else (),
        "logs": _logs_of(row),
        "why_no_logs": next((entry.reason for entry in moves if entry.verb == f"case.{NO_LOGS}"), ""),
        "decision": (decision := row.automatic_decisions.order_by("-pk").first()),
        "rule": TITLES.get(decision.trigger, decision.trigger) if decision else "",
        "task": f"Mend the fault: {row.reason}",
        "fault": next((entry.reason for entry in moves if entry.verb == "case.fault"), row.reason),
        "passed_at": _end_of_pass(row, moves),
        "fault_resolved_at": _fault_resolved_at(row),
        "repairs": (repairs := list(row.repairs.all())),
        "usual": usual_duration(repairs[0]) if repairs and not repairs[0].answer else "",
        "mended": results_of_repairs(row) if row.is_open else {},
        "why_replace": why_replace(row, viewer=request.user) if row.is_open else "",
        "moves": [(entry, _title_of(entry.verb.removeprefix("case."))) for entry in moves],
        "last_validation": next((entry for entry in moves if "result" in entry.evidence), None),
        "why_not": why_not(request.user, Permission.RUN, cluster_id=row.cluster_id, where=where),
    }


def _title_of(verb: str) -> str:
    return CHOSEN.get(verb, verb.replace("-", " "))


def _end_of_pass(case: NodeCase, moves: Iterable[Any]) -> datetime | None:
    """Returns when the pass that counts ended; the case has its begin. Later passes may be evidence only."""
    ends = (entry.at for entry in moves if entry.evidence.get("result") == "passed")
    return min((at for at in ends if case.passed_at and at >= case.passed_at), default=case.passed_at)


def _fault_resolved_at(case: NodeCase) -> datetime | None:
    """Returns when the newest fault was resolved. None: it is open, or no finding named it."""
    rows = Finding.objects.filter(node__uid=case.node_uid, opened_at=case.fault_at)
    return (
        None
        if rows.filter(resolved_at=None).exists()
        else rows.order_by("-pk").values_list("resolved_at", flat=True).first()
    )


def _logs_of(case: NodeCase) -> OperationNode | None:
    """Returns the newest log bundle of the case's node since it was opened. None: nobody asked for one."""
    bundles = OperationNode.objects.of_kinds("logs").filter(
        node_uid=case.node_uid, operation__asked_at__gte=case.opened_at
    )
    return bundles.order_by("-operation_id").first()
