"""Watch a Kafka topic of transactions: alerts as they come, nothing lost, nothing counted twice.

    python examples/kafka_monitor.py localhost:9092 payments watch blacklist.txt
    python examples/kafka_monitor.py file:topics payments watch blacklist.txt

Messages are JSON: transaction, source, destination, amount, time. Each tick takes what has come,
saves the monitor, and only then commits the offsets. So a crash in between delivers messages again
that the monitor has seen, and the transactions' ids tell it so. What cannot be read, or is refused,
goes to watch-refused.jsonl for a person to look at. Times are texts; one without a zone is in UTC.
Who is new on the blacklist at a start is told to a monitor that was saved. With "file:" and a
folder in the place of brokers its files TOPIC-0.jsonl, TOPIC-1.jsonl, ... are the partitions: to
try it without Kafka.
Needs confluent-kafka otherwise (pip install confluent-kafka).
"""

import json
import sys
import time
from pathlib import Path

import pandas as pd

from glp_rapids.fraud import Monitor, SlidingWindow

COLUMNS = ["transaction", "source", "destination", "amount", "time"]
AT_ONCE, SECONDS = 50_000, 300.0  # a tick ends after so many messages, or so long


def watched(folder, seeds):
    """Take up the monitor of a folder, or begin one."""
    try:
        watch = Monitor.open(folder)
    except FileNotFoundError:
        window = SlidingWindow(days=30, id="transaction", max_lead="1h")
        return Monitor(window, seeds, half_life="10D", hubs=5_000)
    scores = watch.scores
    if new := set(seeds) - set(scores["vertex"][scores["is_seed"]]):  # or not in the window yet
        watch.update(add_seeds=sorted(new))
    return watch


def consumer_of(brokers, topic):
    """Make a consumer whose offsets are committed by hand."""
    if brokers.startswith("file:"):
        return FileConsumer(Path(brokers.removeprefix("file:")), topic)
    from confluent_kafka import Consumer

    consumer = Consumer({
        "bootstrap.servers": brokers, "group.id": "glp_rapids", "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe([topic])
    return consumer


def rows_of(messages, refused):
    """Make a frame of messages, by time; what is none of ours goes to a file.

    Its index says which message a row is.
    """
    rows = {}
    for number, message in enumerate(messages):
        if message.error() is not None:
            raise RuntimeError(message.error())
        try:
            row = json.loads(message.value())
            row = {name: row[name] for name in COLUMNS}
            rows[number] = {**row, "time": moment_of(row["time"])}
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            refuse(refused, message, error)
    frame = pd.DataFrame(list(rows.values()), columns=COLUMNS, index=list(rows))
    return frame.astype({"time": "datetime64[us, UTC]"}).sort_values("time", kind="stable")


def moment_of(text):
    """Read a time, in UTC where it does not say."""
    moment = pd.Timestamp(text)
    if moment is pd.NaT:
        raise ValueError(f"time={text!r} is no point in time")
    moment = moment.as_unit("us")
    return moment.tz_localize("UTC") if moment.tz is None else moment.tz_convert("UTC")


def refuse(path, message, error):
    """Put a message aside, with the reason."""
    value = message.value()
    try:
        value = value.decode()
    except (AttributeError, UnicodeDecodeError):  # nothing, or no text
        value = str(value)
    with path.open("a") as file:
        file.write(json.dumps({"error": str(error), "value": value}) + "\n")


def ticks_of(watch, rows, messages, refused, now, part=False):
    """Take in rows; where they are refused, half of them at a time, so that one does not stop all.

    What is refused leaves the monitor as it was.
    """
    newest = watch.window.newest
    try:
        if part and newest is not None:  # on its own a wrong clock would be believed
            ahead = rows["time"].max() - pd.Timestamp(newest, tz="UTC")
            if ahead > pd.Timedelta(days=watch.window.days):
                raise ValueError("dated farther ahead of all others than the window is long")
        yield watch.update(rows, now=now)
    except (ValueError, TypeError, OverflowError) as error:
        if len(rows) < 2:
            for number in rows.index:
                refuse(refused, messages[number], error)
            return
        half = len(rows) // 2
        for some in (rows[:half], rows[half:]):
            yield from ticks_of(watch, some, messages, refused, now, part=True)


def run(consumer, watch, folder, now=None, forever=True):
    """Tick by tick: consume, update, save, commit."""
    refused = Path(f"{folder}-refused.jsonl")
    while messages := consumer.consume(AT_ONCE, SECONDS if forever else 0.0) or forever:
        if messages is True:  # nothing has come
            continue
        rows = rows_of(messages, refused)
        for tick in ticks_of(watch, rows, messages, refused, now):
            watch.save(folder)
            print(f"tick {tick.number}: {tick.change}")
            if len(tick.alerts):
                print(tick.alerts.to_string(index=False))
        consumer.commit(asynchronous=False)


class FileConsumer:
    """Stands for a consumer: partitions are files, and what was committed is in one beside them."""

    class Message:
        """A line of a file."""

        def __init__(self, line):
            self._line = line

        def value(self):
            """Return what was sent."""
            return self._line

        def error(self):
            """Return nothing: files have no errors."""

    def __init__(self, folder, topic):
        self._committed = folder / f"{topic}.committed"
        self._files = sorted(folder.glob(f"{topic}-*.jsonl"))
        self._done = dict.fromkeys(map(str, self._files), 0)
        if self._committed.exists():
            self._done |= json.loads(self._committed.read_text())

    def consume(self, number, timeout):
        """Return the next lines, so many at the most, when there are any or the time is over."""
        until = time.monotonic() + timeout
        while not (found := self._next(number)) and time.monotonic() < until:
            time.sleep(min(0.2, timeout))
        return found

    def _next(self, number):
        """Return the next lines of each partition in turn."""
        found = []
        for file in self._files:
            content = file.read_bytes()
            lines = content[: content.rfind(b"\n") + 1].splitlines()  # no half ones
            begin = self._done[str(file)]
            some = lines[begin : begin + max(number // len(self._files), 1)]
            self._done[str(file)] = begin + len(some)
            found += map(self.Message, some)
        return found

    def commit(self, asynchronous=False):
        """Remember how far every partition was read."""
        part = self._committed.with_suffix(".part")
        part.write_text(json.dumps(self._done))
        part.replace(self._committed)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    brokers, topic, folder, blacklist = sys.argv[1:]
    seeds = Path(blacklist).read_text().split()
    seeds = [int(one) for one in seeds] if all(one.isdecimal() for one in seeds) else seeds
    run(consumer_of(brokers, topic), watched(folder, seeds), folder)
