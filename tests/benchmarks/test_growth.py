import json

from benchmarks.figures import Figures
from benchmarks.observing.run import anywhere, growth


def test_the_slowest_of_the_large_fleet_is_held_against_itself_in_the_small_one(capsys):
    figures = Figures("observe", {})
    large, small = {"page": {"/": 30.0, "/people": 10.0}}, {"page": {"/": 15.0, "/people": 2.0}}

    growth(figures, large, small)

    said = json.loads(capsys.readouterr().out)
    assert (said["name"], said["value"], said["slowest"]) == ("page_growth_ratio", 2.0, "/")
    assert said["each"] == {"/": 2.0, "/people": 5.0}
    assert figures.failed == ["page_growth_ratio"]


def test_a_path_is_the_same_in_every_database():
    assert anywhere("/api/v1/nodes/17/events?limit=100") == "/api/v1/nodes/N/events?limit=100"
