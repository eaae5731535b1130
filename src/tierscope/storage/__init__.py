"""How bytes on a tier are really reached: a directory, a directory with emulated service times, or nothing."""
