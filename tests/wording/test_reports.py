from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, EvidenceItem, Report, at_most


def test_a_long_title_and_summary_end_with_an_ellipsis():
    report = Report(title="t" * (LONGEST_TITLE + 1), summary="s" * (LONGEST_SUMMARY + 1))

    assert report.title == "t" * (LONGEST_TITLE - 1) + "…"
    assert report.summary == "s" * (LONGEST_SUMMARY - 1) + "…"


def test_a_title_and_summary_of_the_full_length_are_not_cut():
    report = Report(title="t" * LONGEST_TITLE, summary="s" * LONGEST_SUMMARY)

    assert (report.title, report.summary) == ("t" * LONGEST_TITLE, "s" * LONGEST_SUMMARY)


def test_a_long_list_of_evidence_ends_with_the_number_of_the_others():
    items = [EvidenceItem(f"node-{number}", 1) for number in range(5)]

    assert at_most(items, 3) == (*items[:3], EvidenceItem("Not listed", 2))
    assert at_most(items, 5) == tuple(items)
