from collections.abc import Mapping
from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from edges.templatetags.page import glyph, spell
from operations.test_jobs.pull_progress import PullOutcome
from rollouts.gates import GATES
from rollouts.models import PlanEvent, Stage
from rollouts.preflight.live_checks.answers import LiveResult
from rollouts.queries.image_pulls import PulledNode
from rollouts.web.states import glyph_of, stage_look, word_of
from wording.instants import moment

register = template.Library()
LIVE_SHAPES = {
    LiveResult.PASSED: ("ok", "in order"),
    LiveResult.WARNED: ("warn", "to know"),
    LiveResult.BARRED: ("stopped", "against it"),
    LiveResult.UNANSWERED: ("unknown", "unknown, which counts as unhealthy"),
}


@register.simple_tag
def state(kind: str, value: str) -> SafeString:
    shape = glyph_of(kind, value)
    return format_html('<span class="state is-{}">{}{}</span>', shape, glyph(shape), word_of(value))


@register.simple_tag
def state_glyph(kind: str, value: str) -> SafeString:
    return glyph(glyph_of(kind, value), word_of(value))


@register.filter
def target_look(value: str) -> str:
    return glyph_of("target", value)


@register.simple_tag
def stage_state(stage: Stage, *, is_approved: bool = False) -> SafeString:
    shape, word = stage_look(stage, is_approved=is_approved)
    return format_html('<span class="state is-{}">{}{}</span>', shape, glyph(shape), word)


@register.simple_tag
def pull_glyph(node: PulledNode) -> SafeString:
    if not node.outcome:
        return glyph("part", "under way" if node.is_under_way else "not tried")
    shapes = {PullOutcome.PULLED: "ok", PullOutcome.FAILED: "stopped"}
    return glyph(shapes.get(PullOutcome(node.outcome), "warn"), node.outcome)


@register.simple_tag
def live_glyph(result: str) -> SafeString:
    """Renders the answer of a live check as glyph; no answer has its own."""
    shape, word = LIVE_SHAPES[LiveResult(result)]
    return glyph(shape, word)


@register.filter
def state_word(value: str) -> str:
    return word_of(value)


@register.filter
def was_word(event: PlanEvent) -> str:
    return _word_in(event, event.was)


@register.filter
def to_word(event: PlanEvent) -> str:
    return _word_in(event, event.to)


@register.simple_tag
def event_glyph(event: PlanEvent) -> SafeString:
    if event.what == "stage" and event.stage:
        return glyph(*stage_look(event.stage, event.to))
    return state_glyph(event.what, event.to)


def _word_in(event: PlanEvent, state: str) -> str:
    return stage_look(event.stage, state)[1] if state and event.what == "stage" and event.stage else word_of(state)


@register.filter
def gate_title(key: str) -> str:
    return GATES[key].title if key in GATES else key


@register.filter
def gate_of_key(key: str) -> str:
    """Returns "Soak of stage 1" for "0:soak"."""
    index, _, gate = key.partition(":")
    return f"{gate_title(gate)} of stage {int(index) + 1}"


@register.filter
def gate_event(to: str) -> str:
    """Returns "Soak: hold" for `soak hold`."""
    key, _, answer = to.partition(" ")
    return f"{gate_title(key)}: {answer}"


@register.filter
def gate_answer(to: str) -> str:
    return to.partition(" ")[2]


@register.filter
def instant(at: datetime) -> str:
    """Returns an instant as text, with its day unless that is today."""
    return moment(at, now=timezone.now())


@register.filter
def measure(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{number} of {name}" for name, number in sorted(value.items()))
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "nobody"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


@register.filter
def measured_title(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ")


@register.filter
def seconds(value: float) -> str:
    return spell(timedelta(seconds=float(value)))
