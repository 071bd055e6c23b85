from tests.make import NOON
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, EvidenceItem, Report, first_items, fit, instant


def test_a_long_title_and_summary_end_with_an_ellipsis():
    report = Report(title="t" * (LONGEST_TITLE + 1), summary="s" * (LONGEST_SUMMARY + 1))

    assert report.title == "t" * (LONGEST_TITLE - 1) + "…"
    assert report.summary == "s" * (LONGEST_SUMMARY - 1) + "…"


def test_a_title_and_summary_of_the_full_length_are_not_cut():
    report = Report(title="t" * LONGEST_TITLE, summary="s" * LONGEST_SUMMARY)

    assert (report.title, report.summary) == ("t" * LONGEST_TITLE, "s" * LONGEST_SUMMARY)


def test_a_long_list_of_evidence_ends_with_the_number_of_the_others():
    items = [EvidenceItem(f"node-{number}", 1) for number in range(5)]

    assert first_items(items, 3) == (*items[:3], EvidenceItem("Not listed", 2))
    assert first_items(items, 5) == tuple(items)


def test_long_names_are_cut_in_the_middle_and_short_ones_stay():
    node = f"gpu-{'x' * 245}-007"

    assert fit("{} is not ready", "gpu-007") == "gpu-007 is not ready"
    assert fit("{} is not ready", node) == f"gpu-{'x' * 24}…{'x' * 24}-007 is not ready"
    titled = fit("{} missing on {}", "1 GPU", node)
    assert titled.startswith("1 GPU missing on gpu-xxx")
    assert titled.endswith("xxx-007")
    assert len(titled) == LONGEST_TITLE


def test_evidence_is_written_with_its_unit():
    items = (EvidenceItem("Temperature", 84.0, "°C"), EvidenceItem("Pods", 3), instant("Since", NOON))

    assert [item.text for item in items] == ["84 °C", "3", "2026-11-21 12:00:00 UTC"]
