"""A mirror shows own writes at once and is not fooled by news that comes late."""

from simulator.actors.cache import Cache


def an_object(version: int, *, name: str = "a", uid: str = "1", node: str = "") -> dict:
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version)}, "spec": spec}


def a_cache() -> tuple[Cache, list]:
    cache, told = Cache(), []
    cache.index("node", lambda obj: obj["spec"].get("nodeName"))
    cache.on_change(lambda was, now: told.append((was, now)))
    return cache, told


def test_an_older_version_is_not_taken_over_a_newer():
    cache, told = a_cache()

    cache.take("MODIFIED", an_object(7))
    cache.take("MODIFIED", an_object(6))
    cache.take("MODIFIED", an_object(7))

    assert cache.get("a", "n") == an_object(7)
    assert len(told) == 1


def test_a_late_deletion_does_not_take_the_successor_of_the_same_name():
    cache, _ = a_cache()
    cache.take("ADDED", an_object(5, uid="old"))
    cache.take("MODIFIED", an_object(9, uid="new"))

    cache.take("DELETED", an_object(8, uid="old"))

    assert cache.get("a", "n") == an_object(9, uid="new")
    assert cache.of_uid("old") is None


def test_an_index_follows_its_objects():
    cache, _ = a_cache()
    cache.take("ADDED", an_object(1))
    assert cache.by("node", "x") == []

    cache.take("MODIFIED", an_object(2, node="x"))
    assert [obj["metadata"]["name"] for obj in cache.by("node", "x")] == ["a"]

    cache.take("DELETED", an_object(3, node="x"))
    assert cache.by("node", "x") == []


def test_a_new_list_drops_what_is_not_in_it():
    cache, told = a_cache()
    cache.take("ADDED", an_object(1, name="a"))
    cache.take("ADDED", an_object(2, name="b", uid="2"))

    cache.replace([an_object(2, name="b", uid="2")])

    assert [obj["metadata"]["name"] for obj in cache.all()] == ["b"]
    assert told[-1][1] is None
