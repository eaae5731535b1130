"""How far the model is from what it claims to predict: `python -m validation` prints one table, `--short` a few points of each."""
