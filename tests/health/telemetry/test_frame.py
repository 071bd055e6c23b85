from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot, in_order

A, B, C = (GpuDevice("gpu-1", number, f"GPU-{number}") for number in range(3))


def a_frame(*devices: GpuDevice, **seen: tuple[float, float]) -> TelemetrySnapshot:
    """`seen`: of the first device, value and time by metric."""
    snapshot = TelemetrySnapshot(100.0, devices)
    for key, (value, at) in seen.items():
        column = snapshot.columns[key] = MetricColumn.empty(len(devices))
        column.values[0], column.times[0] = value, at
    return snapshot


def test_carries_what_was_known_of_a_device_to_its_new_place():
    snapshot = a_frame(B, temperature_celsius=(61.0, 90.0)).carried((A, B, C), forget_before=0.0)

    column = snapshot.columns["temperature_celsius"]
    assert (column.values[1], column.times[1]) == (61.0, 90.0)
    assert column.values[0] != column.values[0]  # NaN: nobody ever said


def test_forgets_what_is_too_old_and_whoever_left():
    snapshot = a_frame(A, B, xid=(79.0, 50.0)).carried((A,), forget_before=60.0)

    assert snapshot.columns["xid"].times[0] != snapshot.columns["xid"].times[0]
    assert len(snapshot.columns["xid"].values) == 1


def test_the_same_devices_are_carried_as_others_would_be_and_not_shared():
    snapshot = a_frame(A, B, xid=(79.0, 50.0), temperature_celsius=(61.0, 90.0))

    same = snapshot.carried((A, B), forget_before=60.0)
    more = snapshot.carried((A, B, C), forget_before=60.0)

    for key in ("xid", "temperature_celsius"):
        assert repr(same.columns[key].times[:2]) == repr(more.columns[key].times[:2])
        assert repr(same.columns[key].values[:2]) == repr(more.columns[key].values[:2])
    same.columns["temperature_celsius"].values[0] = 0.0
    assert snapshot.columns["temperature_celsius"].values[0] == 61.0


def test_knows_when_each_device_last_said_anything():
    snapshot = a_frame(A, B, xid=(0.0, 50.0), temperature_celsius=(61.0, 90.0), power_watts=(300.0, 50.0))

    assert list(snapshot.newest_by_device()) == [90.0, float("-inf")]


def test_knows_when_a_column_was_last_fed():
    assert a_frame(A, B, xid=(0.0, 50.0)).columns["xid"].newest() == 50.0


def test_stands_by_node_index_and_slice():
    slices = (
        GpuDevice("gpu-1", 1, "GPU-b", "2"),
        GpuDevice("gpu-1", 1, "GPU-b", "1"),
        GpuDevice("gpu-0", None, "GPU-z"),
    )

    assert [device.gi_id for device in in_order(slices)] == ["", "1", "2"]
