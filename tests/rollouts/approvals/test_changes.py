import pytest

from rollouts.approvals.bundle_changes import changes

SHOWN = {"plan_hash": "a", "targets": ["n1", "n2"], "answers": {"0:soak": "pass"}}
STAGES = {0: "Canary", 1: "Rest"}


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({}, []),
        ({"answers": {"0:soak": "fail"}}, ["Soak of Canary was pass and is now fail."]),
        ({"answers": {}}, ["Soak of Canary was pass and no longer counts."]),
        (
            {"answers": {"0:soak": "pass", "0:driver_version": "wait"}},
            ["Driver version of Canary had no result and is now wait."],
        ),
        ({"targets": ["n2"]}, ["n1 is no longer among the nodes."]),
        ({"targets": ["n1", "n2", "n3", "n4"]}, ["n3, n4 are now among the nodes."]),
        ({"targets": ["n2", "n1"]}, ["The release order of the nodes has changed."]),
        ({"advisory": {"headroom": "Full fleet."}}, ["Headroom is now advisory and no longer counts: Full fleet."]),
        (
            {"overrides": {"0:soak": {"by": "bob", "reason": "Night."}}},
            ["bob overrode Soak of Canary: Night."],
        ),
        ({"plan_hash": "b"}, ["The plan itself has changed."]),
    ],
)
def test_names_what_is_not_as_it_was_shown(now, said):
    assert changes(SHOWN, SHOWN | now, STAGES) == said


class Gone(list):
    """Knows how often it was gone through."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()


def test_names_are_gone_through_a_few_times_however_many_they_are():
    """A plan's row is locked meanwhile: of 8,000 it took twelve seconds."""
    shown, now = (Gone(f"n{number}" for number in range(size)) for size in (200, 199))

    assert changes(SHOWN | {"targets": shown}, SHOWN | {"targets": now}, STAGES)
    assert shown.times + now.times < 10


def test_what_was_only_advisory_and_counts_now_is_named():
    assert changes(SHOWN | {"advisory": {"soak": "Night."}}, SHOWN, STAGES) == [
        "Soak is no longer advisory: it counts now."
    ]
