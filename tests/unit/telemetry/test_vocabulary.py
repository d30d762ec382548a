"""The table of names: what dcgm-exporter tells by default is there, in the units of its two vocabularies."""

from __future__ import annotations

import collections

from podwright.telemetry.exporter import heads, vocabulary

# etc/default-counters.csv of dcgm-exporter 4.8.3, and what its release notes of 4.9.0 and the tests of go-dcgm call the
# same; the factor is that from the old unit to the new.
DEFAULTS = {
    "DCGM_FI_DEV_SM_CLOCK": ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1e6),
    "DCGM_FI_DEV_MEMORY_TEMP": ("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", 1),
    "DCGM_FI_DEV_GPU_TEMP": ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1),
    "DCGM_FI_DEV_POWER_USAGE": ("DCGM_FI_DEV_BOARD_POWER_WATTS", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 1),
    "DCGM_FI_DEV_GPU_UTIL": ("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.01),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 0.01),
    "DCGM_FI_DEV_ENC_UTIL": ("DCGM_FI_DEV_ENC_UTIL_RATIO", 0.01),
    "DCGM_FI_DEV_DEC_UTIL": ("DCGM_FI_DEV_DEC_UTIL_RATIO", 0.01),
    "DCGM_FI_DEV_XID_ERRORS": ("DCGM_FI_DEV_XID_ERROR", 1),
    "DCGM_FI_DEV_FB_FREE": ("DCGM_FI_DEV_FB_FREE_BYTES", 2**20),
    "DCGM_FI_DEV_FB_USED": ("DCGM_FI_DEV_FB_USED_BYTES", 2**20),
    "DCGM_FI_DEV_FB_RESERVED": ("DCGM_FI_DEV_FB_RESERVED_BYTES", 2**20),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 1),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", 1),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("DCGM_FI_DEV_ROW_REMAP_FAILED", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("DCGM_FI_PROF_DRAM_UTIL_RATIO", 1),
}
UNITS = (
    "_bytes",
    "_celsius",
    "_watts",
    "_joules_total",
    "_hertz",
    "_seconds_total",
    "_ratio",
    "_bytes_total",
    "_bytes_per_second",
)


def test_what_dcgm_exporter_tells_by_default_has_its_old_and_its_new_name_with_their_units() -> None:
    said = {}
    for term in (*vocabulary.TERMS, vocabulary.LAST_XID):
        if term.dcgm_4 and term.dcgm_49:
            said[term.dcgm_4.name] = (term.dcgm_49.name, term.dcgm_49.factor / term.dcgm_4.factor)
    assert {name: (new, round(factor, 9)) for name, (new, factor) in said.items() if name in DEFAULTS} == DEFAULTS


def test_a_name_has_one_kind_and_its_rows_differ_by_a_label() -> None:
    rows = collections.defaultdict(list)
    for term in vocabulary.TERMS:
        rows[term.name].append(term)
    for name, terms in rows.items():
        assert len({(term.kind, term.help) for term in terms}) == 1, name
        assert len({term.fixed for term in terms}) == len(terms), name
    assert len({term.key for term in vocabulary.TERMS}) == len(vocabulary.TERMS)
    assert not set(rows) & {head.name for head in heads.HEADS}


def test_foreign_names_are_of_one_quantity_each() -> None:
    for known in (vocabulary.DCGM_4, vocabulary.DCGM_49):
        names = [said.name for term in vocabulary.TERMS if (said := term.foreign(known))]
        assert len(names) == len(set(names))


def test_our_own_names_are_in_base_units() -> None:
    for term in vocabulary.TERMS:
        if term.dcgm_49 and term.dcgm_49.name.lower().endswith(UNITS):
            assert term.name.endswith(UNITS), term.name
            assert term.dcgm_49.factor == 1
