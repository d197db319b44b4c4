# Two commands: `make demo` and `make test`; each sets up what it needs below this folder.
# `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
    --python-platform linux
# uv takes a third of pip's time, but ignores pip's configuration; if it fails for that reason, pip does the work.
INSTALL := $(BIN)/pip install -qq --disable-pip-version-check --require-hashes
INSTALL_FAST := $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes
DEMO := snakemake --workflow-profile profiles/local --cores 2

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-fast nightly check benchmark faults head-faults planted-bugs mutants environment keys lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(READY) ## run the demonstration: dataset, brain extraction, report
	@echo 'Running:  $(DEMO)'
	@echo '(yours to run as well, after: source $(BIN)/activate)'
	@$(DEMO)

test: $(READY) ## set up the test tools (Debian packages, if root; PySpark, Ray, ADIOS2) and run the fast ring of tests
	@tests/set_up.sh
	@tests/run.sh --ring=fast $(PYTEST)

nightly: $(READY) ## run what `make test` leaves out but for a sample, then faults, planted bugs, mutants and benchmarks: some hours
	@tests/set_up.sh
	@failed=0; seed=$$(date +%Y%m%d); tests/run.sh --ring=nightly $(PYTEST) || failed=1; \
	for what in "faults COUNT=200 SEED=$$seed" planted-bugs "mutants SEED=$$seed" "head-faults TIMES=1 SEED=$$seed" benchmark; do \
	    $(MAKE) --no-print-directory $$what || failed=1; \
	done; exit $$failed

test-fast: $(READY) ## run the tests of the library, which need no run of the workflow: some three minutes
	@tests/set_up.sh
	@$(BIN)/python -m pytest -q --numprocesses=3 --dist=loadgroup --ring=fast -m 'not alone' tests/unit

check: $(READY) ## style, types and lints, as in continuous integration
	$(BIN)/ruff check workflow tests
	$(BIN)/ruff format --check workflow tests
	$(BIN)/snakefmt --check workflow config profiles
	$(BIN)/mypy
	PYTHONPATH=workflow $(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python tests/lint.py

benchmark: $(READY) ## print the tables of tests/benchmarks, or of one: ONLY="size 685"
	@tests/set_up.sh
	@$(BIN)/python tests/benchmarks $(ONLY)

faults: $(READY) ## hold a fault campaign: COUNT=1000 SEED=1 (FROM=n, JOBS=2, ONLY=kind; TRIAL=n)
	@tests/set_up.sh
	@PYTHONPATH=tests $(BIN)/python -m faults $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(FROM),--from $(FROM)) $(if $(JOBS),--jobs $(JOBS)) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(TRIAL),--trial $(TRIAL))

head-faults: $(READY) ## Ctrl-C, kill -9 and a reboot of the head of a cluster run at random moments: TIMES=5 SEED=1
	@tests/set_up.sh
	@PYTHONPATH=tests $(BIN)/python -m faults.heads $(if $(TIMES),--times $(TIMES)) $(if $(SEED),--seed $(SEED))

ROOMS := model advice pages/comparison/verdict.py pages/kit/contrasts.py \
    meter/usage.py meter/records.py meter/activity.py \
    run/pool.py run/participants.py run/journal.py core/files.py core/foreign.py

mutants: $(READY) ## change constants and operators at random; do unit tests notice? ROOMS="model advice" COUNT=100 SEED=1
	@$(BIN)/python tests/mutants.py $(ROOMS) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

planted-bugs: $(READY) ## plant a bug for each promise of workflow/README.md; does the referee catch it?
	@$(BIN)/python tests/planted_bugs.py

environment: $(READY) ## make the environment alone

# Snakemake starts its scripts by the path of its Python, unquoted; a colon would end an entry of PATH.
$(READY): requirements.lock pyproject.toml
	@case "$$PWD" in *[[:space:]:]*) \
	    echo "make: $$PWD: the path of this checkout has a space or a colon in it, with which its environment" \
	        "would not work; nothing was installed: move the checkout" >&2; exit 1;; esac
	@$(PYTHON) -c 'import ensurepip, tomllib, venv' 2>/dev/null || { \
	    echo "make: $(PYTHON) cannot make an environment; install Python 3.11 or later with venv (Debian, Ubuntu:" \
	        "apt install python3-venv)" >&2; exit 1; }
	@echo 'Making the environment in $(VENV) (a minute or two)'
	@$(PYTHON) -m venv $(VENV)
	@awk '/^[^ ]/ {is_uv = /^uv==/} is_uv' requirements.lock | $(INSTALL) --no-deps --requirement /dev/stdin
	@$(INSTALL_FAST) --requirement requirements.lock || { \
	    echo 'pip does it instead, which takes longer'; $(INSTALL) --requirement requirements.lock; }
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

keys: $(READY) ## write config/keys.md from the schema of the configuration
	$(BIN)/python tests/write_keys.py

lock: $(READY) ## renew requirements.lock and the locks of tests/ from pyproject.toml
	$(BIN)/$(LOCK) --group dev --output-file requirements.lock pyproject.toml
	$(BIN)/$(LOCK) --group programs --constraint requirements.lock --output-file tests/programs.lock
	$(BIN)/$(LOCK) --group spark --output-file tests/spark.lock
	$(BIN)/$(LOCK) --group staging --constraint requirements.lock --output-file tests/staging.lock

clean: ## remove the environment and the demonstration's files
	chmod -R u+w neurotier-* 2>/dev/null || true
	rm -rf $(VENV) .snakemake neurotier-* results
