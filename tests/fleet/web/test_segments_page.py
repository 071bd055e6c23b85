"""What the segments page says of GPUs that nothing counts."""

import re

import pytest

from tests import make
from tests.pages import Page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def html():
    cluster = make.a_cluster()
    make.a_node(cluster, zone="none-said", physical_gpus=None, gpus=0, is_gpu_node=True)
    make.a_node(cluster, zone="some-said")
    make.a_node(cluster, zone="some-said", physical_gpus=None, gpus=0, is_gpu_node=True)
    make.a_node(cluster, zone="all-said")
    make.counted()
    reply = visiting(make.a_user(role="viewer")).get("/segments?rows=zone&columns=cluster")
    return reply.content.decode()


def test_a_value_says_what_of_it_is_not_counted(html):
    line = r'<a href="[^"]*">(\w+-said)</a>.*?<span class="num faint" title="([^"]*)">([^<]*)</span>'

    assert sorted(re.findall(line, html, re.DOTALL)) == [
        ("all-said", "8 GPUs", "8"),
        ("none-said", "1 node with GPUs not counted", "–"),
        ("some-said", "8 GPUs, 1 node with GPUs not counted", "8+"),
    ]


def test_a_cell_of_the_table_says_it_as_well(html):
    cell = r'<td class="name">(\w+-said)</td><td class="num"><a href="[^"]*" title="([^"]*)">(\d+)</a>'

    assert sorted(re.findall(cell, html)) == [
        ("all-said", "8 GPUs", "1"),
        ("none-said", "1 node with GPUs not counted", "1"),
        ("some-said", "8 GPUs, 1 node with GPUs not counted", "2"),
    ]


def test_the_head_says_how_many_nodes_are_not_counted(html):
    text = Page(html).text

    assert "16 GPUs" in text
    assert "2 nodes with GPUs not counted" in text
