"""What an exporter answers instead of its text, or makes of it, while one of its faults is on."""

from collections.abc import Iterator

from simulator.faults.board import Board
from simulator.faults.lying_exporter import Lie, LyingExporter
from simulator.faults.series_explosion import SeriesExplosion
from simulator.faults.silent_exporter import Silence, SilentExporter
from simulator.faults.skewed_exporter import SkewedExporter
from simulator.pod_ends import Pace, Served

TEXT = "text/plain; version=0.0.4; charset=utf-8"
HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"
GARBAGE = bytes(range(128, 256)) * 16 + b"\n\0{{{=\n"
EXPLODING = "DCGM_EXP_REQUEST_SECONDS"


def answered(faults: Board, node_name: str, text: str) -> Served | None:
    """None: nobody listens."""
    how = next((each.how for each in faults.active(SilentExporter) if each.node == node_name), None)
    match how:
        case Silence.REFUSES:
            return None
        case Silence.HANGS:
            return Served(b"", TEXT, pace=Pace.NEVER)
        case Silence.ERROR:
            return Served(b"internal server error\n", status=500)
        case Silence.EMPTY:
            return Served(b"", TEXT)
        case Silence.HTML:
            return Served(HTML, "text/html; charset=utf-8")
        case Silence.GARBAGE:
            return Served(GARBAGE, TEXT)
        case Silence.CUT:
            return Served(text[: len(text) * 2 // 3].encode(), TEXT)
        case Silence.DRIP:
            return Served(text.encode(), TEXT, pace=Pace.DRIP)
    return Served(text.encode(), TEXT)


def distorted(faults: Board, node_name: str, text: str, *, now_s: float, asked: int) -> str:
    """`asked`: how often this exporter was asked before."""
    for skewed in faults.active(SkewedExporter):
        if skewed.node == node_name:
            text = _timed(text, int((now_s + skewed.seconds) * 1000))
    for exploding in faults.active(SeriesExplosion):
        if exploding.node == node_name:
            text += "".join(_new_series(exploding.series, asked))
    return text


def name_given(faults: Board, node_name: str) -> str:
    lies = (
        each.as_node for each in faults.active(LyingExporter) if each.node == node_name and each.how is Lie.HOSTNAME
    )
    return next(lies, node_name)


def whose_gpus(faults: Board, node_name: str) -> str:
    lies = (each.as_node for each in faults.active(LyingExporter) if each.node == node_name and each.how is Lie.GPUS)
    return next(lies, node_name)


def _timed(text: str, at_ms: int) -> str:
    lines = (line if line.startswith("#") else f"{line} {at_ms}" for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)


def _new_series(series: int, asked: int) -> Iterator[str]:
    yield f"# HELP {EXPLODING} Seconds of each request.\n# TYPE {EXPLODING} gauge\n"
    first = asked * series
    for number in range(first, first + series):
        yield f'{EXPLODING}{{request="{number:016x}"}} 0.25\n'
