"""What the bench of the map reads from a trace."""

from benchmarks.browsing.trace import Trace, outermost


def an_event(name: str, ts_ms: float, dur_ms: float = 0, *, pid: int = 1, tid: int = 1, cat: str = "devtools.timeline"):
    return {"name": name, "ts": ts_ms * 1000, "dur": dur_ms * 1000, "pid": pid, "tid": tid, "cat": cat, "ph": "X"}


def a_thread(name: str, *, pid: int = 1, tid: int = 1):
    return {
        "name": "thread_name",
        "ts": 0,
        "pid": pid,
        "tid": tid,
        "cat": "__metadata",
        "ph": "M",
        "args": {"name": name},
    }


def test_what_lies_within_another_of_its_thread_is_counted_once():
    inner, outer, beside = an_event("a", 2, 5), an_event("b", 0, 10), an_event("c", 3, 4, tid=2)

    assert [task.wall for task in outermost([inner, outer, beside])] == [10, 4]


def test_work_is_the_main_thread_and_raster_of_the_page_that_set_the_marks():
    trace = Trace.read(
        [
            a_thread("CrRendererMain"),
            a_thread("CompositorTileWorker1", tid=2),
            a_thread("CrRendererMain", pid=9),
            {"name": "map-batch", "ts": 1_000_000, "pid": 1, "tid": 1, "cat": "blink.user_timing", "ph": "R"},
            an_event("RunTask", 1000, 8) | {"tdur": 4000},
            an_event("FunctionCall", 1001, 2),
            an_event("RasterTask", 1002, 3, tid=2),
            an_event("Else", 1002, 30, tid=2),
            an_event("RunTask", 1000, 100, pid=9),
            an_event("RunTask", 1300, 50),
        ]
    )

    assert trace.marks == {"map-batch": [1000.0]}
    assert (trace.cpu_ms(1000, 1200), trace.wall_ms(1000, 1200)) == (7, 11)
