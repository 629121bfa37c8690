# SPDX-License-Identifier: Apache-2.0
# A thin front: meson builds (meson.build), scripts/ does the rest.
BUILD = build
PREFIX = /usr/local
DESTDIR =

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@for tool in gcc meson ninja pkg-config musl-gcc; do \
		command -v $$tool >/dev/null || { echo "$$tool is missing: run 'make setup' first" >&2; exit 1; }; \
	done
	@meson setup $(BUILD) --prefix=$(PREFIX) || { echo "is a library missing? run 'make setup' first" >&2; exit 1; }

setup:
	@scripts/setup

test: setup
	@$(MAKE) --no-print-directory all
	@meson configure $(BUILD) -Dtests=enabled
	@scripts/run-tests --build $(BUILD)

test-all:
	@.ci/run

demo: setup
	@$(MAKE) --no-print-directory all
	@scripts/demo

bench:
	@scripts/setup build bench
	@$(MAKE) --no-print-directory all
	@scripts/bench

install: all
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@DESTDIR='$(abspath $(DESTDIR))' meson install -C $(BUILD) --quiet

reference: all
	@for form in cli spec limits errors backends; do \
		$(BUILD)/atoll reference $$form >docs/reference/$$form.md || exit 1; \
	done

format:
	@scripts/setup lint
	@find src include tests examples -name '*.[ch]' -exec clang-format -i {} +

lint:
	@scripts/setup build test lint
	@scripts/lint

.PHONY: all setup test test-all demo bench install reference format lint
