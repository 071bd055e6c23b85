"""What every page draws alike: icons, state glyphs, instants, and the difference between zero and no data."""

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from edges.parts import taken
from wording import instants
from wording.durations import spell
from wording.numbers import count, either

register = template.Library()
KEPT = 500  # drawings, of which the same few stand in every row. By type: text that is safe equals one that is not
NOT_KNOWN = mark_safe('<span class="nodata" title="Not known: nothing reports it.">–</span>')
PODS_NEVER_READ = mark_safe('<span class="nodata" title="Its pods were never read.">no data</span>')


@register.simple_tag
@lru_cache(maxsize=KEPT, typed=True)
def icon(name: str, label: str = "") -> SafeString:
    """One icon of the vendored sprite; decoration where no label is given."""
    return _svg("icon", f"{static('vendor/tabler-icons/sprite.svg')}#{name}", label)


@register.simple_tag
@lru_cache(maxsize=KEPT, typed=True)
def glyph(name: str, label: str = "") -> SafeString:
    """The shape of a state: shape and colour together, so that neither is needed alone."""
    return _svg(f"glyph is-{name}", f"{static('img/glyphs.svg')}#{name}", label)


def _svg(classes: str, href: str, label: str) -> SafeString:
    if not label:
        return format_html('<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', classes, href)
    return format_html('<svg class="{}" role="img" aria-label="{}"><use href="{}"></use></svg>', classes, label, href)


@register.filter
def known(value: Any, unit: str = "") -> SafeString:
    """A value, or the mark of one that nobody knows. Zero is a value."""
    if value is None or value == "":
        return NOT_KNOWN
    return format_html("{} {}", value, unit) if unit else conditional_escape(value)


@register.filter
def price(amount: Decimal | None) -> str:
    """An amount of money as it is written: 2.5, not 2.5000. Blank: nobody knows it."""
    return "" if amount is None else f"{amount.normalize():f}"


@register.filter
def by_pods(value: Any) -> SafeString:
    """What pods hold or leave free, or that nobody knows it."""
    if value is None:
        return PODS_NEVER_READ
    return conditional_escape(value)


@register.filter
def ago(at: datetime | None) -> SafeString:
    """An instant as its distance from now; the page keeps it current, the title has it in UTC."""
    if at is None:
        return format_html('<span class="nodata" title="{}">never</span>', "This has not happened yet.")
    return _time(at, f"{spell(timezone.now() - at)} ago", "ago")


@register.filter
def since(at: datetime | None) -> SafeString:
    """How long something has been so, without “ago”."""
    return known(None) if at is None else _time(at, spell(timezone.now() - at), "for")


@register.filter
def until(at: datetime | None) -> SafeString:
    """How long it is to an instant that is still to come."""
    return known(None) if at is None else _time(at, spell(at - timezone.now()), "until")


@register.filter
def clock(at: datetime | None) -> SafeString:
    """The time of day in UTC, with its day where that is not today."""
    return known(None) if at is None else _time(at, instants.clock(at, now=timezone.now()), "")


@register.filter
def time_of_day(at: datetime) -> SafeString:
    """The same below a heading that names the day."""
    return _time(at, f"{at:%H:%M:%S}", "")


register.filter("spell", spell)
register.simple_tag(count, name="plural")
register.simple_tag(either)


def _time(at: datetime, words: str, kind: str) -> SafeString:
    """Of numbers and words of ours, in which there is nothing to escape: one stands in every row."""
    title = at.isoformat(" ", "seconds")[:19]
    return mark_safe(f'<time datetime="{at.isoformat()}" title="{title} UTC" data-when="{kind}">{words}</time>')  # noqa: S308


@register.simple_tag(takes_context=True)
def with_query(context: template.Context, **changed: object) -> str:
    """The query of this page with some of it changed; empty values leave it."""
    query = context["request"].GET.copy()
    for name, value in changed.items():
        query[name] = "" if value is None else str(value)
    for name in [name for name in query if not query[name]]:
        del query[name]
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def part_at(context: template.Context, name: str, *args: object) -> SafeString:
    """A part of another app's, by the name of its address."""
    return taken(context["request"], name, *args)


@register.simple_tag
def share(part: float | None, whole: float | None, width: int = 100) -> str:
    """A part of a whole as a length of a drawing."""
    return f"{width * (part or 0) / whole:.2f}" if whole else "0"


@register.simple_tag
def share_rest(part: float | None, whole: float | None, width: int = 100) -> str:
    """What of the whole is left beside a part, as a length of a drawing."""
    return f"{max(0.0, width - width * (part or 0) / whole):.2f}" if whole else "0"
