"""Tags and filters of every page: icons, state glyphs, instants, and “no data” as opposed to zero."""

from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from edges.parts import rendered_part
from wording import instants
from wording.durations import spell
from wording.numbers import count, either

register = template.Library()
KEPT = 500  # drawings. Typed: a safe string equals an unsafe one
NOT_KNOWN = mark_safe('<span class="nodata" title="Unknown: no source reports it.">–</span>')
PODS_NEVER_READ = mark_safe('<span class="nodata" title="The pods were never read.">no data</span>')


@register.simple_tag
@lru_cache(maxsize=KEPT, typed=True)
def icon(name: str, label: str = "") -> SafeString:
    """Renders one icon of the vendored sprite; decorative without a label."""
    return _svg("icon", f"{static('vendor/tabler-icons/sprite.svg')}#{name}", label)


@register.simple_tag
@lru_cache(maxsize=KEPT, typed=True)
def glyph(name: str, label: str = "") -> SafeString:
    """Renders the glyph of a state; shape and colour both tell the state."""
    return _svg(f"glyph is-{name}", f"{static('img/glyphs.svg')}#{name}", label)


def _svg(classes: str, href: str, label: str) -> SafeString:
    if not label:
        return format_html('<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', classes, href)
    return format_html('<svg class="{}" role="img" aria-label="{}"><use href="{}"></use></svg>', classes, label, href)


@register.filter
def known(value: Any, unit: str = "") -> SafeString:
    """Renders a value, or the mark for an unknown value. Zero is a known value."""
    if value is None or value == "":
        return NOT_KNOWN
    return format_html("{} {}", value, unit) if unit else conditional_escape(value)


@register.filter
def price(amount: Decimal | None) -> str:
    """Renders an amount of money: 2.5, not 2.5000. Blank: unknown."""
    return "" if amount is None else f"{amount.normalize():f}"


@register.filter
def by_pods(value: Any) -> SafeString:
    """Renders a number that comes from pods, or “no data” when pods were never read."""
    if value is None:
        return PODS_NEVER_READ
    return conditional_escape(value)


@register.filter
def ago(at: datetime | None) -> SafeString:
    """Renders the time since an instant. The page keeps the text current; the title has the instant in UTC."""
    if at is None:
        return format_html('<span class="nodata" title="{}">never</span>', "This has not happened yet.")
    return _time(at, f"{spell(timezone.now() - at)} ago", "ago")


@register.filter
def since(at: datetime | None) -> SafeString:
    """Renders the time since an instant without “ago”."""
    return known(None) if at is None else _time(at, spell(timezone.now() - at), "for")


@register.filter
def until(at: datetime | None) -> SafeString:
    return known(None) if at is None else _time(at, spell(at - timezone.now()), "until")


@register.filter
def clock(at: datetime | None) -> SafeString:
    """Renders the time of day in UTC, with the date unless it is today."""
    return known(None) if at is None else _time(at, instants.clock(at, now=timezone.now()), "")


@register.filter
def time_of_day(at: datetime) -> SafeString:
    """Renders the time of day alone, for lists under a date."""
    return _time(at, f"{at:%H:%M:%S}", "")


register.filter("spell", spell)
register.simple_tag(count, name="plural")
register.simple_tag(either)


def _time(at: datetime, text: str, kind: str) -> SafeString:
    """Marked safe without escaping, for speed: all its parts are our own numbers and words."""
    title = at.isoformat(" ", "seconds")[:19]
    return mark_safe(f'<time datetime="{at.isoformat()}" title="{title} UTC" data-when="{kind}">{text}</time>')  # noqa: S308


@register.simple_tag(takes_context=True)
def with_query(context: template.Context, **changed: object) -> str:
    """Returns this page's query with some parameters changed; empty values remove a parameter."""
    query = context["request"].GET.copy()
    for name, value in changed.items():
        query[name] = "" if value is None else str(value)
    for name in [name for name in query if not query[name]]:
        del query[name]
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def part_at(context: template.Context, name: str, *args: object) -> SafeString:
    """Renders a part of another app by its URL name."""
    return rendered_part(context["request"], name, *args)


@register.simple_tag
def share(part: float | None, whole: float | None, width: int = 100) -> str:
    """Returns a share as a length in a drawing."""
    return f"{width * (part or 0) / whole:.2f}" if whole else "0"


@register.simple_tag
def share_rest(part: float | None, whole: float | None, width: int = 100) -> str:
    """Returns the remaining share as a length in a drawing."""
    return f"{max(0.0, width - width * (part or 0) / whole):.2f}" if whole else "0"


@register.simple_tag
def evidence_value(value: str | float, unit: str) -> str:
    """Returns the value of an evidence item as text: seconds as a duration, instants as a time of day."""
    if unit == "s":
        return spell(timedelta(seconds=float(value)))
    if unit == "UTC":
        return instants.moment(datetime.fromisoformat(str(value)), now=timezone.now())
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{shown} {unit}".rstrip()
