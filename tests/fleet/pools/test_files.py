from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.management.commands import import_pools
from fleet.models import Cluster, Pool
from fleet.models.pool import ClassPlacement, PlacementPolicy, WorkloadClass
from fleet.pools.files import BadPoolFile, FileProblem, OutOfStep, compare, parse_pool_file, take_over, write
from people.models import AuditEntry
from tests import make
from tests.make import NOON

FILE = """\
cluster: east
pools:
- name: h200
  selector: nvidia.com/gpu.product in (NVIDIA-H200,NVIDIA-H200-SHARED)
  environment: production
  workload_class: training
  max_unavailable: 2
  price_per_gpu_hour: 2.50
- name: spare
  selector: zone=b
"""


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(BadPoolFile) as refusal:
        parse_pool_file(text)
    return [(each.line, each.sentence) for each in refusal.value.lines]


def test_a_file_is_read():
    file = parse_pool_file(FILE)

    assert file.cluster == "east"
    assert [(entry.name, entry.line) for entry in file.entries] == [("h200", 3), ("spare", 9)]
    assert file.entries[0].fields["price_per_gpu_hour"] == Decimal("2.50")
    assert file.entries[1].fields == {
        "name": "spare",
        "selector": "zone=b",
        "environment": "",
        "workload_class": "mixed",
        "approval": "as-cluster",
        "max_unavailable": 1,
        "price_per_gpu_hour": None,
        "placement_policy": "none",
        "training_placement": "as-pool",
        "inference_placement": "as-pool",
        "development_placement": "as-pool",
        "spread_label": "",
        "test_images": "",
        "test_claim_template": "",
        "test_worse_percent": None,
    }


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "The file is empty"),
        ("pools:\n- name: [", 2, "This is not YAML"),
        ("pools: 3", 1, "“pools” must be a list"),
        ("- name: a", 1, "Must be “key: value”, with the keys"),
        ("cluster: east", 1, "“pools:” is missing"),
        ("pools: []\npool: []", 2, "Unknown field “pool”"),
        ("pools:\n- name: a", 2, "The pool has no selector"),
        ("pools:\n- name: a\n  selector: zone=b\n  colour: red", 4, "Unknown field “colour”"),
        ("pools:\n- name: a\n  selector: zone in b", 3, "is not a label selector"),
        ("pools:\n- name: a\n  name: b\n  selector: c", 3, "The key “name” is there twice"),
        ("pools:\n- name: 7\n  selector: c", 2, "write “7” in quotes"),
        ("pools:\n- name: two words\n  selector: c", 2, "name:"),
        ("pools:\n- name: a\n  selector: c\n  max_unavailable: none", 4, "whole number from 1"),
        ("pools:\n- name: a\n  selector: c\n  max_unavailable: 0", 4, "whole number from 1"),
        ("pools:\n- name: a\n  selector: c\n  test_worse_percent: 91", 4, "whole number from 1 to 90"),
        ("pools:\n- name: a\n  selector: c\n  price_per_gpu_hour: .inf", 4, "must be a number of 0 or more, or null"),
        ("pools:\n- name: a\n  selector: c\n  price_per_gpu_hour: ２.５", 4, "must be a number of 0 or more, or null"),
        ("pools:\n- name: a\n  selector: c\n  price_per_gpu_hour: 1.23456789", 4, "decimal places"),
        ("pools:\n- name: a\n  selector: c\n  workload_class: mining", 4, "mining"),
        ("pools:\n- name: a\n  selector: c\n- name: a\n  selector: d", 4, "Pool a is already on line 2"),
        ("pools:\n- &a [*a]", 2, "Aliases"),
        (f"pools: {'[' * 50}", 1, "deeply nested"),
        ("pools: []\n--- \npools: []", 2, "This is not YAML"),
        ("a: !!python/object/apply:os.system [id]", 1, "Unknown field “a”"),
        ("pools: \0", 1, "This is not YAML"),
        ("x" * 300_000, 1, "larger than 64 KiB"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, line, words):
    found = problems(text)

    assert any(at == line and words in sentence for at, sentence in found), found


def test_every_problem_is_said_at_once():
    assert [line for line, _ in problems("pools:\n- name: a\n- selector: zone in b\n  max_unavailable: x\n")] == [2, 4]


@given(st.text(max_size=200) | st.text(alphabet="-:[]{} \n\"'&*!|>#%@`aé\t?,", max_size=60))
def test_no_text_does_more_than_be_refused(text):
    refused = refusals(text)

    assert all(each.line >= 1 and each.sentence for each in refused)


def refusals(text: str) -> list[FileProblem]:
    try:
        parse_pool_file(text)
    except BadPoolFile as refusal:
        return refusal.lines
    return []


@pytest.mark.django_db
class TestTakingOver:
    def a_cluster(self):
        cluster = make.a_cluster("east")
        make.a_node(cluster, "a")
        make.a_node(cluster, "b", labels={"zone": "b"})
        return cluster

    def test_it_is_compared_first(self):
        cluster = self.a_cluster()
        make.a_pool(cluster, "spare", selector="zone=b", environment="old")
        make.a_pool(cluster, "gone")

        comparison = compare(cluster, parse_pool_file(FILE).entries)

        assert [(each.name, each.what.value) for each in comparison.changes] == [
            ("h200", "created"),
            ("spare", "changed"),
            ("gone", "kept"),
        ]
        assert comparison.changes[0].preview.entering == 1
        assert comparison.changes[1].moves == [("environment", "old", "")]

    def test_taken_over_twice_changes_nothing_more(self):
        cluster = self.a_cluster()
        take_over(compare(cluster, parse_pool_file(FILE).entries), actor="root", now=NOON)

        again = compare(cluster, parse_pool_file(FILE).entries)
        take_over(again, actor="root", now=NOON)

        assert again.is_quiet
        assert AuditEntry.objects.count() == 2
        assert Pool.objects.get(name="h200").nodes.get().name == "a"

    def test_one_that_cannot_go_keeps_all_as_it_was(self):
        cluster = make.a_draft(make.a_fleet("east")).cluster

        comparison = compare(cluster, parse_pool_file("pools:\n- name: new\n  selector: zone=b").entries, prune=True)

        assert "A pool with a history stays." in comparison.obstacles[0]
        with pytest.raises(Exception, match="history"):
            take_over(comparison, actor="root", now=NOON)
        assert [pool.name for pool in Pool.objects.all()] == ["h200"]

    def test_what_was_shown_is_what_is_done(self):
        cluster = self.a_cluster()
        seen = compare(cluster, parse_pool_file(FILE).entries).fingerprint
        make.a_node(cluster, "c")

        with pytest.raises(OutOfStep):
            take_over(compare(cluster, parse_pool_file(FILE).entries), actor="root", now=NOON, expected=seen)

        assert not Pool.objects.exists()

    def test_the_commands(self, tmp_path, capsys):
        cluster = self.a_cluster()
        cluster.nodes.get(name="b").pools.add(make.a_pool(cluster, "gone"))
        file = tmp_path / "pools.yaml"
        file.write_text(FILE)

        call_command("import_pools", "east", str(file), "--dry-run", "--prune")
        assert Pool.objects.count() == 1
        call_command("import_pools", "east", str(file), "--dry-run")
        assert "created   spare; 1 node, 1 enters, 0 leave; shares 1 node with gone" in capsys.readouterr().out
        call_command("import_pools", "east", str(file), "--prune")
        said = capsys.readouterr().out

        assert "removed   gone" in said
        assert sorted(Pool.objects.values_list("name", flat=True)) == ["h200", "spare"]
        assert compare(cluster, parse_pool_file(write(cluster)).entries).is_quiet
        assert AuditEntry.objects.filter(actor="shell on the server").count() == 3

    def test_a_command_says_in_a_sentence_what_its_cluster_forbids_meanwhile(self, tmp_path):
        self.a_cluster()
        file = tmp_path / "pools.yaml"
        file.write_text(FILE)

        def late(*given, **more):
            Cluster.objects.update(approval="none")
            return take_over(*given, **more)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(import_pools, "take_over", late)
            with pytest.raises(CommandError, match=r"Nothing was changed\. Pool h200 is production"):
                call_command("import_pools", "east", str(file))

    def test_a_file_for_another_cluster_is_refused(self, tmp_path):
        make.a_cluster("west")
        file = tmp_path / "pools.yaml"
        file.write_text(FILE)

        with pytest.raises(CommandError, match="for cluster east, not west"):
            call_command("import_pools", "west", str(file))


class TestAFileOfPools(TestCase):
    @given(
        pools=st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.from_regex(r"\A[a-zA-Z0-9_-]{1,20}\Z")
                    | st.sampled_from(["1", "on", "null", "1e3", "no"]),
                    "selector": st.sampled_from(["a=b", "a in (b,c),!d", "x/y notin (1)"]),
                    "environment": st.text(
                        st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=20
                    ).map(str.strip),
                    "workload_class": st.sampled_from(WorkloadClass.values),
                    "max_unavailable": st.integers(1, 999_999),
                    "price_per_gpu_hour": st.none() | st.decimals("0", "99999", places=4),
                    "placement_policy": st.sampled_from(PlacementPolicy.values),
                    "inference_placement": st.sampled_from(ClassPlacement.values),
                    "spread_label": st.sampled_from(["", "example.com/rack"]),
                }
            ),
            max_size=4,
            unique_by=lambda pool: pool["name"],
        )
    )
    def test_taken_over_as_written_changes_nothing(self, pools):
        cluster = make.a_cluster()
        for pool in pools:
            make.a_pool(cluster, **pool)

        assert compare(cluster, parse_pool_file(write(cluster)).entries).is_quiet
