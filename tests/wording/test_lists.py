from wording.lists import names


def test_what_fits_is_named():
    assert (names(("a",)), names(("a", "b", "c"))) == ("a", "a, b, c")


def test_the_rest_is_counted():
    assert names(("a", "b", "c", "d", "e")) == "a, b, c and 2 more"
