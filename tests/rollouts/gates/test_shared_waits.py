from rollouts.gates.base import Answer, GateResult
from rollouts.gates.shared_waits import gates_sentence, shared_waits


def a_wait(title: str, *nodes: str, steps: tuple[str, ...] = ()) -> GateResult:
    return GateResult(Answer.WAIT, nodes, title=title, steps=steps)


def test_gates_that_wait_for_the_same_reason_are_one_and_keep_their_steps():
    ecc = a_wait("ECC errors: no fresh sample of a", "a", steps=("Check the exporter.", "Enable 312."))
    xid = a_wait("Xids: no fresh sample of a", "a", steps=("Check the exporter.", "Enable 230."))

    (shared,) = shared_waits([("ecc", ecc), ("xid", xid)])

    assert shared.lines == ("ecc", "xid")
    assert shared.title == "No fresh sample of a"
    assert shared.steps == ("Check the exporter.", "Enable 312.", "Enable 230.")
    assert gates_sentence(shared.lines) == "2 gates wait for it: ecc, xid."


def test_other_nodes_or_another_text_are_another_reason():
    waits = [("one", a_wait("2 nodes are silent", "a", "b")), ("two", a_wait("2 nodes are silent", "a", "c"))]

    assert [shared.lines for shared in shared_waits([*waits, ("three", a_wait("Silent", "a", "b"))])] == [
        ("one",),
        ("two",),
        ("three",),
    ]


def test_a_summary_that_differs_is_left_to_the_gates():
    waits = [(key, GateResult(Answer.WAIT, ("a",), title="a is unknown", summary=key)) for key in ("one", "two")]

    assert [(shared.title, shared.summary) for shared in shared_waits(waits)] == [("a is unknown", "")]


def test_a_reason_of_one_gate_is_given_as_the_gate_gives_it():
    (shared,) = shared_waits([("ecc", a_wait("ECC errors: no fresh sample of a", "a"))])

    assert (shared.title, gates_sentence(shared.lines)) == ("ECC errors: no fresh sample of a", "")
