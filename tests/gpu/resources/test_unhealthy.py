from hypothesis import given
from hypothesis import strategies as st

from gpu.resources import registered_in, unhealthy_in, unhealthy_in_words

AMD = "metricsexporter.amd.com.gpu.{}.state"
KEYS = st.one_of(st.text(max_size=40), st.text(max_size=8).map(AMD.format), st.integers().map(AMD.format))


def test_only_what_is_labelled_sick_is_sick():
    labels = {AMD.format(0): "healthy", AMD.format(7): "unhealthy", AMD.format("x"): "unhealthy", AMD.format(2): ""}

    assert unhealthy_in_words(unhealthy_in(labels, ())) == ["GPU 7: AMD's metrics exporter reports it as unhealthy."]


def test_a_board_that_hamis_plugin_registers_as_sick_is_named():
    register = (
        '[{"id":"GPU-a1","count":10,"type":"NVIDIA-A100","health":true},{"id":"GPU-b2","count":10,"health":false}]'
    )
    old = "GPU-a1,10,32768,100,NVIDIA-Tesla V100,0,true:GPU-b2,10,32768,100,NVIDIA-Tesla V100,0,false:"

    for text in (register, old):
        (sick,) = unhealthy_in({}, registered_in({"hami.io/node-nvidia-register": text}))
        assert (sick["gpu"], sick["uuid"]) == ("GPU 1", "GPU-b2")


@given(st.dictionaries(KEYS, st.sampled_from(["unhealthy", "UNHEALTHY", "", "healthy"]), max_size=200))
def test_no_label_stops_the_reading(labels):
    assert len(unhealthy_in(labels, ())) <= 128
