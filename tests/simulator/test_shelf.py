"""Pages of a list, against the plain list that they are pages of."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.events import ChangeLog, Record
from simulator.kinds import POD
from simulator.shelf import ANY_VERSION, Shelf, Token

NAMES = st.sampled_from(["a/x", "a/y", "a-b/x", "a0/x", "b/x", "b/y", "b/z", "c/x"])
EVERYTHING = Token(ANY_VERSION, "")


def a_record(key: str, version: int) -> Record:
    namespace, _, name = key.partition("/")
    return Record({"metadata": {"namespace": namespace, "name": name, "resourceVersion": str(version)}}, version)


def changed(shelf: Shelf, keys: list[str], version: int) -> int:
    """Each key that is there goes, each that is not comes."""
    for key in keys:
        version += 1
        if key in shelf.records:
            shelf.drop(a_record(key, version))
        else:
            shelf.put(a_record(key, version))
    return version


@given(
    before=st.lists(NAMES),
    meanwhile=st.lists(NAMES),
    limit=st.integers(1, 4),
    namespace=st.sampled_from(["", "a", "b"]),
)
def test_pages_say_how_many_follow_as_of_the_first_of_them(before, meanwhile, limit, namespace):
    shelf = Shelf(POD, ChangeLog(0))
    version = changed(shelf, before, 1)
    whole = shelf.page(version, namespace=namespace, matches=None, limit=0, token=EVERYTHING).records

    page = shelf.page(version, namespace=namespace, matches=None, limit=limit, token=EVERYTHING)
    read = list(page.records)
    version = changed(shelf, meanwhile, version)
    while page.continue_:
        assert page.remaining == len(whole) - len(read)
        token = Token.decode(page.continue_)
        page = shelf.page(version, namespace=namespace, matches=None, limit=limit, token=token)
        read += page.records

    assert read == whole
    assert page.remaining is None
