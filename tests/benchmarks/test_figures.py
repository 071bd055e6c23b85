import json

import pytest

from benchmarks.figures import Figures
from benchmarks.reference import DOCUMENT, reference_ms


@pytest.fixture
def said(capsys):
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_time_stands_beside_the_reference_of_its_run(said):
    figures = Figures("pages", {"nodes": 8})
    figures.measure_reference()

    figures.at_most("page_ms", 3 * figures.reference_ms, 150, "ms")
    figures.at_most("list_s", 2 * figures.reference_ms / 1000, 10, "s")

    reference, page, listed = said()
    assert reference["name"] == "reference_ms"
    assert reference["value"] == pytest.approx(figures.reference_ms, abs=1e-4)
    assert "/ reference" not in reference
    assert (page["/ reference"], listed["/ reference"]) == (3.0, 2.0)


def test_what_is_no_time_has_no_reference(said):
    figures = Figures("pages", {})
    figures.measure_reference()

    figures.at_least("ratio", 4, 3, "x")
    figures.at_most("rss_mib", 200, 400, "MiB")

    assert all("/ reference" not in line for line in said()[1:])


def test_each_size_has_a_reference_of_its_own(said):
    large = Figures("observe", {"seed": 1})
    small = large.under("_500", nodes=500)
    small.measure_reference()

    assert [line["name"] for line in said()] == ["reference_ms_500"]
    assert large.reference_ms == 0.0


def test_what_fails_in_one_size_fails_the_bench(said):
    figures = Figures("observe", {})
    figures.under("_500").at_most("first_sync_s", 11, 10, "s")

    with pytest.raises(SystemExit, match="not ok: first_sync_s_500"):
        figures.end()


def test_the_reference_takes_time_and_leaves_its_document(said):
    before = DOCUMENT.read_bytes()

    assert reference_ms() > 0
    assert DOCUMENT.read_bytes() == before
