"""An application: a small network trained by TensorFlow on TFRecord files, by `train_tfrecord.py FOLDER`. It computes for real; its loader is tf.data."""

import sys
from pathlib import Path

import tensorflow as tf

EPOCHS, BATCH, READERS, SIDE = 2, 16, 2, 64
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string)}


def decoded(record: tf.Tensor) -> tf.Tensor:
    image = tf.io.decode_raw(tf.io.parse_single_example(record, FEATURES)["image"], tf.uint8)
    return tf.reshape(tf.cast(image[: SIDE * SIDE], tf.float32) / 255, (SIDE, SIDE, 1))


def main(folder: Path) -> None:
    tf.random.set_seed(7)
    files = [str(path) for path in sorted(folder.glob("*.tfrecord"))]
    weights = tf.Variable(tf.random.normal((3, 3, 1, 8)))
    for _ in range(EPOCHS):
        records = tf.data.TFRecordDataset(files, buffer_size=256 << 10, num_parallel_reads=READERS)
        for batch in records.map(decoded).batch(BATCH, drop_remainder=True).prefetch(1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.nn.conv2d(batch, weights, 1, "VALID")))
            weights.assign_sub(1e-3 * tape.gradient(loss, weights))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
