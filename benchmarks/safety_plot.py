"""The plot of the `safety` bench: broken nodes by fault, with Quarterdeck and with the GPU Operator alone."""

from collections.abc import Mapping
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 760, 150, 60, 64, 30, 10
COLOURS = {"Quarterdeck": "#2563eb", "GPU Operator alone": "#d97706"}


def safety_plot(broken: Mapping[str, int], alone: Mapping[str, int], conditions: str) -> str:
    """Returns an SVG with two bars for each fault, the widest pair first. The same numbers give the same text."""
    faults = sorted(alone, key=lambda fault: (-alone[fault], fault))
    longest = max([1, *alone.values(), *broken.values()])
    lines = [_text(12, 22, "Broken nodes by fault", size=15), _text(12, 40, conditions)]
    for place, (name, colour) in enumerate(COLOURS.items()):
        at = LEFT + place * 140
        lines += [f'<rect x="{at}" y="48" width="10" height="10" fill="{colour}"/>', _text(at + 15, 57, name)]
    for place, fault in enumerate(faults):
        y = TOP + 6 + place * ROW
        lines.append(_text(LEFT - 8, y + 14, fault, anchor="end"))
        for bar, (amounts, colour) in enumerate(zip((broken, alone), COLOURS.values(), strict=True)):
            amount, top = amounts.get(fault, 0), y + bar * (BAR + 2)
            width = round((WIDTH - LEFT - RIGHT) * amount / longest, 1)
            lines.append(f'<rect x="{LEFT}" y="{top}" width="{width}" height="{BAR}" fill="{colour}"/>')
            lines.append(_text(LEFT + width + 5, top + 9, f"{amount:,}"))
    height = TOP + 12 + len(faults) * ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    style = 'font-family="system-ui, sans-serif" font-size="11" fill="#111827"'
    back = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([f'{head} aria-label="Broken nodes by fault" {style}>', back, *lines, "</svg>\n"])


def _text(x: float, y: float, words: str, *, size: int = 11, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'
