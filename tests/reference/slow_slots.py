"""Events into slots, one event at a time, from the definition."""


def table(events, sensors, start, length, n_slots, outages=()):
    """Rows of 0, 1 and None; events are (time, sensor), outages (sensor, from, to), all times whole numbers."""
    rows = [[0] * len(sensors) for _ in range(n_slots)]
    for time, sensor in events:
        for i in range(n_slots):
            if sensor in sensors and start + i * length <= time < start + (i + 1) * length:
                rows[i][sensors.index(sensor)] = 1
    for sensor, first, after in outages:
        for i in range(n_slots):
            if sensor in sensors and first < start + (i + 1) * length and start + i * length < after:
                rows[i][sensors.index(sensor)] = None
    return rows
