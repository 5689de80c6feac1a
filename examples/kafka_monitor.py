"""Watch a Kafka topic of transactions: alerts as they come, nothing lost, nothing counted twice.

    python examples/kafka_monitor.py localhost:9092 payments watch blacklist.txt
    python examples/kafka_monitor.py file:topics payments watch blacklist.txt

Messages are JSON: transaction, source, destination, amount, time. Each tick takes what has come,
saves the monitor, and only then commits the offsets. So a crash in between delivers messages again
that the monitor has seen, and the transactions' ids tell it so. What cannot be read, or is refused,
goes to watch-refused.jsonl for a person to look at. With "file:" and a folder in the place of
brokers its files TOPIC-0.jsonl, TOPIC-1.jsonl, ... are the partitions: to try it without Kafka.
Needs confluent-kafka otherwise (pip install confluent-kafka).
"""

import json
import sys
from pathlib import Path

import pandas as pd

from glp_rapids.fraud import Monitor, SlidingWindow

COLUMNS = ["transaction", "source", "destination", "amount", "time"]
AT_ONCE, SECONDS = 50_000, 300.0  # a tick ends after so many messages, or so long


def watched(folder, seeds):
    """Take up the monitor of a folder, or begin one."""
    try:
        return Monitor.open(folder)
    except FileNotFoundError:
        window = SlidingWindow(days=30, id="transaction", max_lead="1h")
        return Monitor(window, seeds, half_life="10D", hubs=5_000)


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
    """Make a frame of messages; what is none of ours goes to a file."""
    rows = []
    for message in messages:
        if message.error() is not None:
            raise RuntimeError(message.error())
        try:
            row = json.loads(message.value())
            rows.append({name: row[name] for name in COLUMNS})
        except (ValueError, TypeError, KeyError) as error:
            refuse(refused, message.value(), error)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.assign(time=pd.to_datetime(frame["time"]))


def refuse(path, value, error):
    """Put a message aside, with the reason."""
    with path.open("a") as file:
        file.write(json.dumps({"error": str(error), "value": str(value)}) + "\n")


def run(consumer, watch, folder, now=None, forever=True):
    """Tick by tick: consume, update, save, commit."""
    refused = Path(f"{folder}-refused.jsonl")
    while messages := consumer.consume(AT_ONCE, SECONDS if forever else 0.0) or forever:
        if messages is True:  # nothing has come
            continue
        rows = rows_of(messages, refused)
        try:
            tick = watch.update(rows, now=now)
        except (ValueError, TypeError) as error:  # the monitor is as it was; the others go on
            refuse(refused, [message.value().decode() for message in messages], error)
        else:
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
        """Return the next lines of each partition in turn, so many together at the most."""
        found = []
        for file in self._files:
            lines = file.read_bytes().splitlines()
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
