from simulator.actors.loop import RETRY_S, Loop
from simulator.clock import Clock
from simulator.refusals import Refused


class Hands:
    def __init__(self, clock: Clock | None = None) -> None:
        self.now = 0.0
        self.loop = Loop(clock or Clock(), lambda: self.now)
        self.calls: list[str] = []
        self.refusals = 0

    def call(self, word: str) -> None:
        self.calls.append(word)
        if self.refusals:
            self.refusals -= 1
            raise Refused(409, "Conflict", "again, please")

    def run(self) -> None:
        while self.loop.turn():
            pass


def test_what_is_asked_for_twice_is_done_once():
    hands = Hands()

    hands.loop.soon(hands.call, "a")
    hands.loop.soon(hands.call, "b")
    hands.loop.soon(hands.call, "a")
    hands.run()

    assert hands.calls == ["a", "b"]


def test_a_fast_clock_brings_timers_forward():
    hands = Hands(Clock(20))
    hands.loop.later(100, hands.call, "late")

    hands.now = 4.9
    hands.run()
    before = list(hands.calls)
    hands.now = 5.0
    hands.run()

    assert (before, hands.calls) == ([], ["late"])


def test_a_cancelled_timer_is_silent():
    hands = Hands()
    hands.loop.later(1, hands.call, "never").cancel()

    hands.now = 2
    hands.run()

    assert hands.calls == []


def test_what_was_refused_is_tried_again():
    hands = Hands()
    hands.refusals = 1
    hands.loop.soon(hands.call, "a")
    hands.run()

    hands.now = RETRY_S
    hands.run()

    assert hands.calls == ["a", "a"]


def test_a_bug_in_one_call_does_not_stop_the_next(caplog):
    hands = Hands()

    hands.loop.soon(lambda: 1 / 0)
    hands.loop.soon(hands.call, "next")
    hands.run()

    assert hands.calls == ["next"]
    assert "ZeroDivisionError" in caplog.text
