print("STOP: POLARS_MAX_THREADS with a huge number starts thousands of threads and loads the machine for everyone. "
      "Do not try huge values: check the variable before importing Polars (1..4096 or refused with one line).")
