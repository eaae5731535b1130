"""Running a study for real, seen from the director: check, stage, run every point on a crew, one trace each."""
