"""The profile of a few steps, and model FLOPs utilisation, in a run's report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.analysis.ranks import story_of
from podwright.reading.run_data import gather
from podwright.report import render_run
from podwright.report.profile import short_name
from podwright.report.verdict import figures_of
from tests.fixtures.run_folder import Shape, write_run
from tests.unit.report.made import made
from tests.unit.runs.made import event, parsed

PROFILE = {
    "steps": 4,
    "wall_s": 0.4,
    "device": "NVIDIA H200",
    "busy_s": 0.3,
    "operations": [
        {"name": "sm90_xmma_gemm<bf16>", "seconds": 0.2, "calls": 400},
        {"name": "elementwise", "seconds": 0.1, "calls": 80},
    ],
    "gaps": [{"seconds": 0.004, "after": "elementwise", "before": "sm90_xmma_gemm<bf16>"}],
    "parts": {"input_s": 0.06, "compute_s": 0.34},
}

NATIVE = "void at::native::"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", Shape(pictures=False, metrics=False))


def test_it_is_shown(folder: Path) -> None:
    (folder / "results" / "profile.json").write_text(json.dumps(PROFILE))
    page = render_run(gather(folder))
    assert "4 steps of 100 ms each; NVIDIA H200 worked 75 % of the time, and 15 % went into waiting for input." in page
    assert '<code title="sm90_xmma_gemm&lt;bf16&gt;">sm90_xmma_gemm&lt;bf16&gt;</code>' in page
    assert '<td class="num">50 ms</td><td class="num">100</td>' in page
    assert '<td class="num">4 ms</td>' in page
    assert 'href="#profile"' in page


@pytest.mark.parametrize(
    "text", ['{"steps": 0}', "[]", "{", '{"steps": 1e999, "wall_s": 1, "busy_s": 1}', '{"steps": "x", "wall_s": 1}']
)
def test_one_that_cannot_be_understood_is_named(folder: Path, text: str) -> None:
    (folder / "results" / "profile.json").write_text(text)
    page = render_run(gather(folder))
    assert "Could not be shown: profile.json" in page
    assert 'id="profile"' not in page


def test_without_one_there_is_no_section(folder: Path) -> None:
    assert 'id="profile"' not in render_run(gather(folder))


@pytest.mark.parametrize(
    ("gpus", "shown"),
    [
        (["NVIDIA H200", "NVIDIA H200"], "50 %"),
        (["NVIDIA H200", "NVIDIA A100-SXM4-80GB"], None),  # of two kinds there is no one peak
        (["NVIDIA H100 PCIe"], None),  # not that of SXM, and not listed
        ([], None),
    ],
)
def test_operations_told_are_held_against_the_peak(gpus: list[str], shown: str | None) -> None:
    pilot = event("pilot", gpus=[{"index": index, "name": name} for index, name in enumerate(gpus)])
    record = {"id": "x", "state": "succeeded", "results": {"tflops": 494.5}}
    data = made(record, read_at=2.0, events=tuple(parsed(pilot)))
    figures = {figure.label: figure.value for figure in figures_of(story_of(data))}
    assert figures.get("Model FLOPs utilisation") == shown


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("sm80_xmma_fprop_implicit_gemm_bf16", "sm80_xmma_fprop_implicit_gemm_bf16"),
        (f"{NATIVE}batch_norm_kernel<at::native::Var, float, 4>(float const*, int)", "batch_norm_kernel"),
        (
            f"{NATIVE}(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
            "TensorListMetadata<3>, at::native::(anonymous namespace)::FusedSgdMathFunctor<float, 3>, double>(double)",
            "multi_tensor_apply_kernel<FusedSgdMathFunctor>",
        ),
        (
            f"{NATIVE}elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::"
            "{lambda()#3}::operator()() const>(int)",
            "elementwise_kernel<direct_copy_kernel_cuda>",
        ),
        (
            "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_align8>(cutlass_tensorop_bf16_align8::Params)",
            "Kernel<cutlass_tensorop_bf16_align8>",
        ),
        ("ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_f32"),
    ],
)
def test_a_kernel_has_the_name_that_says_what_it_does(kernel: str, expected: str) -> None:
    assert short_name(kernel) == expected
