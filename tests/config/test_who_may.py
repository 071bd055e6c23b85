"""Every endpoint there is, asked by nobody, a stranger and a viewer: one that is new cannot be forgotten."""

from tests.config.rest_schema import rest_paths

# Where one signs in.
OPEN = {("post", "/api/v1/session"), ("post", "/api/v1/device-authorizations"), ("post", "/api/v1/device-tokens")}
OWN = {("post", "/api/v1/tokens"), ("delete", "/api/v1/tokens/{token_id}"), ("delete", "/api/v1/session"),
       ("delete", "/api/v1/sessions"), ("delete", "/api/v1/sessions/{session_id}"),
       ("post", "/api/v1/gpu-views"), ("delete", "/api/v1/gpu-views/{view_id}"),
       ("post", "/api/v1/pod-views"), ("delete", "/api/v1/pod-views/{view_id}"),
       ("post", "/api/v1/event-views"), ("delete", "/api/v1/event-views/{view_id}"),
       ("put", "/api/v1/me/notifications")}  # fmt: skip
CANARY = {"name": "Canary", "kind": "canary", "count": 1}


def bodies(there: dict[str, int]) -> dict[str, dict]:
    """Bodies that can be read, where the right is asked for only once it is known on what."""
    cluster = {"cluster": there["cluster_id"]}
    return {
        "/api/v1/pools": {**cluster, "name": "x", "selector": "a=b"},
        "/api/v1/pool-files": {**cluster, "text": "pools: []"},
        "/api/v1/stages/{stage_id}/break-glass": {"gate": "soak", "reason": "x", "confirm": "x"},
        "/api/v1/pool-previews": {**cluster, "selector": "a=b"},
        "/api/v1/pools/{pool_id}/gates": {"gates": {}, "reason": "x"},
        "/api/v1/pools/{pool_id}/gate-previews": {"gates": {}},
        "/api/v1/plans": {
            "driver_object": there["driver_object_id"], "to_version": "580.126.20", "stages": [CANARY],
        },
    }  # fmt: skip


ENDPOINTS = [(method, path) for path, methods in rest_paths().items() for method in methods if path != "/api/v1/schema"]
WRITES = [one for one in ENDPOINTS if one[0] != "get" and one not in OPEN | OWN]
READS = [one for one in ENDPOINTS if one[0] == "get" and "token_id" not in one[1]]
OF_PEOPLE = [one for one in READS if one[1].startswith(("/api/v1/people", "/api/v1/group", "/api/v1/audit"))]
SEEN = [one for one in READS if one not in OF_PEOPLE]
WITH_ID = [one for one in ENDPOINTS if "{" in one[1] and "token_id" not in one[1]]


def ask(caller, endpoint: tuple[str, str], there: dict[str, int]) -> int:
    method, path = endpoint
    place = path.format(**there, token_id=1)
    if method == "get":
        return caller.get(place).status_code
    return getattr(caller, method)(place, bodies(there).get(path, {}), format="json").status_code


def answers(caller, endpoints, there: dict[str, int]) -> dict[tuple[str, str], int]:
    return {endpoint: ask(caller, endpoint, there) for endpoint in endpoints}


def test_nobody_gets_in(there, nobody):
    closed = [one for one in ENDPOINTS if one not in OPEN]

    assert answers(nobody, closed, there) == dict.fromkeys(closed, 401)


def test_a_stranger_finds_nothing(there, eve):
    assert answers(eve, WITH_ID, there) == dict.fromkeys(WITH_ID, 404)


def test_a_viewer_changes_nothing(there, bob):
    assert answers(bob, WRITES, there) == dict.fromkeys(WRITES, 403)


def test_a_viewer_sees_everything_but_people(there, bob):
    assert answers(bob, SEEN, there) == dict.fromkeys(SEEN, 200)


def test_people_are_for_admins(there, bob, root):
    assert answers(bob, OF_PEOPLE, there) == dict.fromkeys(OF_PEOPLE, 403)
    assert answers(root, OF_PEOPLE, there) == dict.fromkeys(OF_PEOPLE, 200)
