"""What sentences call holding and letting go: the same places in both tables, and no hold where nothing is held."""

from dataclasses import asdict, fields
from string import Formatter

import pytest

from rollouts.components.terms import BY_LABEL, HoldWords
from tests.rollouts.engine.by_pod import BY_ITS_POD

# What whoever says each of them has to fill in.
GIVEN = {
    "holding_all": {"version"},
    "writing": {"version", "every", "are"},
    "written": {"version"},
    "holding": {"nodes"},
    "holding_again": {"nodes"},
    "holding_first": {"nodes"},
    "begun": {"state"},
    "changed": {"loaded"},
    "escaped": {"names"},
    "halted": {"nodes", "are"},
    "is_back": {"gone"},
    "left": {"names", "stay"},
    "given_up": {"names", "stay"},
    "helps": {"version"},
}


@pytest.mark.parametrize("words", [BY_LABEL, BY_ITS_POD], ids=["by a label", "by its pod"])
def test_nothing_is_asked_for_that_nobody_gives(words: HoldWords):
    for name, sentence in asdict(words).items():
        asked = {field for _, field, _, _ in Formatter().parse(sentence) if field}
        assert asked <= GIVEN.get(name, set()), name


def test_where_nothing_is_held_no_sentence_says_so():
    """But that nothing has to be."""
    for each in fields(HoldWords):
        said = getattr(BY_ITS_POD, each.name).removeprefix("Nothing has to be held")
        assert not {"hold", "held", "holding", "label"} & set(said.lower().replace(".", "").split()), each.name
