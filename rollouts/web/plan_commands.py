"""The buttons of a plan. Each calls the same command as REST; a refusal is shown on the page."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, WhyForm, cleaned_input, reason_of
from edges.requests import PersonRequest
from edges.transition_errors import IllegalMove, LostRace
from people.rights import NotAllowed, Permission, require
from rollouts.commands import COMMANDS, plan_control, retries
from rollouts.commands.refusals import Blocked, Refusal
from rollouts.commands.test_jobs import add_test_jobs
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Plan
from rollouts.verbs import VERBS
from rollouts.web.command_forms import CompleteForm, HandOverForm, ResumeForm, StartForm, kept_if_refused
from rollouts.web.visible_objects import plan_for, stage_for, target_for
from wording.numbers import either

REFUSALS = (BadForm, IllegalMove, LostRace, NotAllowed, Refusal)
FORMS: Mapping[str, type[WhyForm]] = {
    "start": StartForm,
    "resume": ResumeForm,
    "complete": CompleteForm,
    "cordon": CompleteForm,
    "handover": HandOverForm,
}


@require_POST
def command(request: PersonRequest, plan_id: int, verb: str) -> HttpResponse:
    if verb not in VERBS:
        raise Http404
    plan = plan_for(request.user, plan_id)
    with _answered(request, plan, verb):
        require(request.user, VERBS[verb].permission, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        said = _call(request, plan, verb)
        messages.success(request, said or VERBS[verb].done)
    return redirect("plan", plan_id=plan_id)


def _call(request: PersonRequest, plan: Plan, verb: str) -> str | None:
    asked = cleaned_input(FORMS.get(verb, WhyForm)(request.POST))
    if verb == "start":
        asked["expected_revision"] = asked.pop("revision")
    elif verb == "discard":
        del asked["key"]  # a discarded plan has no button to repeat
    return COMMANDS[verb](plan, actor=request.user, now=timezone.now(), **asked)


@require_POST
def retry(request: PersonRequest, target_id: int) -> HttpResponse:
    target = target_for(request.user, target_id)
    plan = target.stage.plan
    with _answered(request, plan, "retry"):
        require(request.user, Permission.RUN, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        reason = reason_of(request, missing="Give a reason why another try may succeed.")
        retries.retry(target, actor=request.user, reason=reason, now=timezone.now())
        goes = "A wave releases it once you resume" if plan.state == PlanState.HALTED else "A wave releases it"
        messages.success(request, f"{target.node_name} is held for another try. {goes}.")
    return redirect("plan", plan_id=plan.pk)


@require_POST
def exclude(request: PersonRequest, target_id: int) -> HttpResponse:
    target = target_for(request.user, target_id)
    plan, was_held = target.stage.plan, target.state == TargetState.HELD
    with _answered(request, plan, "exclude"):
        require(request.user, Permission.RUN, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        reason = reason_of(request, missing="Give a reason for the exclusion.")
        plan_control.exclude(target, actor=request.user, reason=reason, now=timezone.now())
        stays = "stays held" if was_held else "stays as it is"
        messages.success(request, f"{target.node_name} is excluded from {target.stage.name}; it {stays}.")
    return redirect("plan", plan_id=plan.pk)


@require_POST
def add_jobs(request: PersonRequest, stage_id: int) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    plan = stage.plan
    with _answered(request, plan, "test-jobs"):
        require(request.user, Permission.RUN, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        reason = reason_of(request, missing="Give a reason for the test Jobs.")
        add_test_jobs(stage, actor=request.user, reason=reason, now=timezone.now())
        starts = "The Jobs start once you resume" if plan.state == PlanState.HALTED else "The Jobs start within seconds"
        messages.success(request, f"Test Jobs were added to {stage.name}. {starts}.")
    return redirect("plan", plan_id=plan.pk)


@contextmanager
def _answered(request: PersonRequest, plan: Plan, verb: str) -> Iterator[None]:
    try:
        with kept_if_refused(request, plan, verb, REFUSALS):
            yield
    except REFUSALS as refusal:
        messages.error(request, _sentence(refusal))


def _sentence(refusal: Exception) -> str:
    if isinstance(refusal, Blocked):  # the draft's page already shows each sentence
        are = either(len(refusal.blockers), "blocker stands", "blockers stand")
        return f"Not started: the {are} below. Your input is kept."
    return str(refusal)
