# One verb each; every verb does the set-up it needs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup ready packages machine demo data-demo console-demo lab-demo prove-demo watch-demo test test-fast test-nightly lint audit release bench docs pictures lock

BIN := .venv/bin
LOCKED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
SLOWEST := --durations=30 --durations-min=1
PYTEST := $(BIN)/python -m pytest -p tests.plugins.no_skips

# The first Python that is new enough runs the set-up.
define SET_UP
for python in $${PYTHON:-python3.11 python3.12 python3.13 python3}; do \
  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
done; \
test -n "$${found:-}" || { echo "Podwright needs Python 3.11 or newer: apt-get install python3.11" >&2; exit 2; }; \
"$$found" scripts/setup.py
endef

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## leave .venv with everything in it; seconds when nothing changed
	@$(SET_UP)

ready:
	@$(SET_UP) --quiet

packages:
	@$(SET_UP) --quiet --tests

# Built before the tests and not beside them: what is compiled at the lowest priority beside three test workers starves.
machine: packages ## make what tests start: Debian's packages, and as root the programs of a Kubernetes lab, once
	@if [ "$$(id -u)" = 0 ]; then $(BIN)/python -m podwright.lab.kubernetes --usual-priority; fi

demo: ready ## train a model on this machine, watch it, and open its report
	@$(BIN)/python scripts/demo.py

data-demo: ready ## data made, scanned, chosen, trained on, and chosen again by what went wrong
	@$(BIN)/python scripts/data_demo.py

console-demo: ready ## a home with recorded runs, a live one and a pod, in a browser
	@$(BIN)/python -m scripts.console_demo

lab-demo: ready ## the same on a real Slurm cluster on this machine; needs root
	@$(BIN)/python -m scripts.lab_demo

prove-demo: ready ## one training bare, in a container and on Slurm, in turn, and one report; needs root
	@$(BIN)/python -m scripts.prove_demo

watch-demo: packages ## hosts that are watched: faults are made, told of, and remedied by policy; needs root, half an hour
	@$(BIN)/python -m scripts.watch_demo

# Three processes for two cores: what runs on a lab waits most of the time, and the others have the cores meanwhile.
test: machine lint ## all checks and tests but the nightly ones
	$(PYTEST) -n 3 --dist loadgroup $(SLOWEST)

test-fast: packages ## unit tests only
	$(PYTEST) tests/unit -n 2 -m "not slow and not nightly"

test-nightly: machine lint ## all tests, the long campaigns, and a second generation of Slurm; needs root
	@mkdir -p .cache && rm -f .cache/campaign.jsonl
	PODWRIGHT_CAMPAIGN=$(CURDIR)/.cache/campaign.jsonl $(PYTEST) -m "" --hypothesis-profile=new -n 2 --dist loadgroup
	$(BIN)/python scripts/campaign.py .cache/campaign.jsonl benchmarks/results/campaign.md
	$(BIN)/python benchmarks/simulations.py
	$(BIN)/python -m scripts.second_slurm
	$(BIN)/python -m scripts.mutants --random 200 --workers 2 --out benchmarks/results/mutants.md

release: ready ## version, CHANGELOG, wheel, sdist, commit and tag; publishes nothing: make release VERSION=0.3.0
	@$(BIN)/python -m scripts.release "$(VERSION)"

lint: ready ## style, types, import directions, sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@for program in programs/*/ benchmarks/; do echo "$(BIN)/mypy $$program"; $(BIN)/mypy "$$program"; done
	$(BIN)/vermin --no-tips --violations -t=3.8- src/podwright/pilot src/podwright/bringup/on_host src/podwright/telemetry \
		src/podwright/engines/slurm/on_cluster.py
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_tree.py

audit: ready ## what bandit and detect-secrets suspect, known faults and licences of what is locked, and a list of it
	$(BIN)/python -m scripts.suspicions
	$(BIN)/python -m scripts.audit

bench: ready ## measure, as ratios within one run; figures go to benchmarks/results
	$(BIN)/python benchmarks/run_all.py

docs: ready ## make the reference pages and docs/site
	$(BIN)/python -m scripts.make_reference
	$(BIN)/python -m scripts.make_site

pictures: ready ## make the pictures of the docs anew, from real output; minutes
	$(BIN)/python -m scripts.make_pictures
	$(BIN)/python -m scripts.run_pictures

lock: ready ## pin all dependencies anew
	$(BIN)/uv pip compile -q --upgrade $(LOCKED) --extra train --extra data --extra bringup --extra console --extra bench --extra lab --extra dev pyproject.toml -o requirements/lock.txt
	for group in strangers strangers-nightly clickhouse-nightly; do \
	  $(BIN)/uv pip compile -q --upgrade $(LOCKED) -c requirements/lock.txt \
	    $$(awk -F '==' '/==/{print "--no-emit-package=" $$1}' requirements/lock.txt | sort -u) \
	    requirements/$$group.in -o requirements/$$group.txt; \
	done
	$(BIN)/uv pip compile -q --upgrade $(LOCKED) requirements/checks.in -o requirements/checks.txt
	$(BIN)/uv pip compile -q --upgrade $(LOCKED) requirements/trackers-nightly.in -o requirements/trackers-nightly.txt
	echo uv | $(BIN)/uv pip compile -q --upgrade $(LOCKED) - -o requirements/bootstrap.txt
