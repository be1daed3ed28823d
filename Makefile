# Each target makes .venv when there is none. PYTHON names the interpreter to make it with (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin
DATA ?= terrazzo-data
# How many processes run the tests, each its own files: tests wait more than they compute.
JOBS ?= 4

.PHONY: run cluster test test-end-to-end test-all stress long torture torture-cluster simulate fuzz differential lint bench bench-short install console client screenshots clean site

install: .venv/.installed

.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Terrazzo needs Python 3.11 or newer, and $(PYTHON) is %d.%d: name another one, as in make run PYTHON=python3.12" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.installed-test: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

# What a browser shows at /: built again where platform/console has changed since. TERRAZZO_CONSOLE=0 does without.
BUILD_CONSOLE = $(BIN)/python platform/console/build.py --if-stale

run: install
	$(BUILD_CONSOLE)
	$(BIN)/terrazzo serve --demo --data $(DATA)

# Several nodes on this machine, with a simulated fleet, to be looked at; Ctrl-C ends all of it. PostgreSQL is Debian's.
cluster: .venv/.installed-test
	$(BUILD_CONSOLE)
	$(BIN)/python tests/local_cluster.py $(ARGS)

# What each commit passes: the tests that run in their own process, or need one of the platform besides. What needs
# browsers, several nodes, servers of others or kills without end is the second; tests/end_to_end.toml says which that is.
# Files or folders that ARGS names run with either, whichever they are of.
TEST = $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder
# The tests start the platform some hundred times: it must not be compiled each time, whatever the environment says.
test test-end-to-end test-all: export PYTHONDONTWRITEBYTECODE :=
test: .venv/.installed-test
	$(TEST) --suite commit $(ARGS)

test-end-to-end: .venv/.installed-test
	$(TEST) --suite end-to-end $(ARGS)

test-all: .venv/.installed-test
	$(TEST) $(ARGS)

# The tests ROUNDS times while a busy loop for each core holds it; stops at the first failure, FROM goes on there.
ROUNDS ?= 10
FROM ?= 1
stress: export PYTHONDONTWRITEBYTECODE :=
stress: .venv/.installed-test
	$(BIN)/python tests/stress.py $(ROUNDS) --from $(FROM) --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# The tests that get surer with each round, with more of them: kills, fuzzing, properties. An hour or so.
LONG := tests/broker/test_broker_fuzz.py tests/commands/test_command_killed.py tests/replay tests/mapping/test_mapping_kill.py \
  tests/mapping/test_mapping_against_oracle.py tests/durability tests/analysis/test_analysis_kill.py tests/contract/test_contract_schemathesis.py \
  tests/store/test_store_against_sqlite.py tests/store/test_mosaic_against_sqlite.py tests/store/test_rocksdb_blocks.py \
  tests/store/test_rocksdb_sealing_killed.py tests/metadata/test_metadata_conditions.py \
  tests/terminals/test_terminals_claiming_fleet.py tests/terminals/test_terminals_login_flood.py \
  tests/rules/test_rule_connections.py tests/contract/test_contract_generators.py
long: export PYTHONDONTWRITEBYTECODE :=
long: .venv/.installed-test
	TERRAZZO_LONG_TESTS=1 $(BIN)/python -m pytest --timeout 3600 -o faulthandler_timeout=4000 --numprocesses $(JOBS) --dist loadfile $(or $(ARGS),$(LONG))

# The worst days, ROUNDS of each kind, one kind after the other: kills, failing power, disks that are full or slow (the
# latter three: Linux, root, libfuse3), and so on. It may be stopped, and goes on. ARGS="--only kill,full", --again.
torture: export PYTHONDONTWRITEBYTECODE :=
torture: .venv/.installed-test
	$(BIN)/python tests/durability/torture.py $(if $(filter-out file,$(origin ROUNDS)),--rounds $(ROUNDS)) $(ARGS)

# ROUNDS faults on several nodes under load, each kind as often as any other; ARGS=--help says what can be chosen.
torture-cluster: ROUNDS = 100
torture-cluster: export PYTHONDONTWRITEBYTECODE :=
torture-cluster: .venv/.installed-test
	$(BIN)/python tests/cluster/torture.py --rounds $(ROUNDS) $(ARGS)

# The worst day, simulated: SEEDS runs from FIRST on; ARGS as for tests/simulation/simulate.py: --fault NAME, --minutes 10.
SEEDS ?= 100
FIRST ?= 0
simulate: .venv/.installed-test
	$(BIN)/python tests/simulation/simulate.py --seeds $(SEEDS) --first $(FIRST) $(ARGS)

# A coverage-guided fuzzer over each parser, SECONDS each; ONLY those whose name has this in it; ARGS=--keep. Where atheris
# has no wheel it says so, and nothing is fuzzed.
SECONDS ?= 60
fuzz: .venv/.installed-test
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python tests/parsers/fuzz.py --seconds $(SECONDS) --only '$(ONLY)' $(ARGS)

# The same packets to this broker, Mosquitto and amqtt, SECONDS long, from the seed FIRST on, or any; ARGS=--peer amqtt.
differential: .venv/.installed-test
	$(BIN)/python tests/conformance/differential.py --seconds $(SECONDS) $(if $(filter-out 0,$(FIRST)),--first $(FIRST)) $(ARGS)

# Builds the console after each change of its source; a reload of the page shows it.
console: install
	$(BIN)/python platform/console/build.py --watch

# The client for TypeScript, as npm would publish it, in build/.
client: install
	$(BIN)/python clients/typescript/build_client.py pack build

# Pictures of every page into screenshots/: light and dark, desktop and phone, English and Chinese. ONLY="phone dark zh overview": a part; ONLY=documents: those of README.md and docs/console.md.
screenshots: .venv/.installed-test
	$(BIN)/python tests/console/screenshots.py $(ONLY)

lint: .venv/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml platform broker adapters simulators
	$(BIN)/python tests/house/audit_packages.py
	$(BIN)/python tests/house/dead_code.py
	$(BIN)/python platform/console/check.py

# All figures in one go, into docs/benchmarks.md; ARGS as for terrazzo bench: --list, --only ingest, --compare FILE.
bench: export PYTHONDONTWRITEBYTECODE :=
bench: .venv/.installed-test
	$(BIN)/terrazzo bench --write docs/benchmarks.md --json docs/benchmarks.json $(ARGS)

# One short run of each, to see that all of them work.
bench-short: export PYTHONDONTWRITEBYTECODE :=
bench-short: .venv/.installed-test
	$(BIN)/terrazzo bench --short $(ARGS)

# The documents as a site, in build/site.
site: .venv/.installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

clean:
	rm -rf .venv dist build
