"""The schema of REST, made once in a process: it takes half a second."""

from functools import cache

from drf_spectacular.generators import SchemaGenerator


@cache
def rest_schema() -> dict[str, dict]:
    """Returns the whole schema. Do not change it."""
    return SchemaGenerator().get_schema(request=None, public=True)


def rest_paths() -> dict[str, dict]:
    """Returns the operations by path and method. Do not change them."""
    return rest_schema()["paths"]
