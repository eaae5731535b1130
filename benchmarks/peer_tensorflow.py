"""tf.data over a folder of TFRecord files, as its users write it: run by another interpreter, prints seconds of every round as JSON."""

import json
import sys
import time
from pathlib import Path

import tensorflow as tf


def main(folder: str, batch: int, threads: int, rounds: int) -> None:
    paths = sorted(map(str, Path(folder).glob("*.tfrecord")))
    seconds = []
    for number in range(rounds + 1):
        start = time.monotonic()
        records = tf.data.TFRecordDataset(paths, buffer_size=256 << 10, num_parallel_reads=threads)
        read = sum(len(samples) for samples in records.batch(batch).prefetch(2).as_numpy_iterator())
        assert read == len(paths)
        if number:
            seconds.append(time.monotonic() - start)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:5]))
