"""Prove: suites of runs, comparisons that hold up, the gate against slowdowns, and how a workload scales.

Runs are started through the session that is handed in, and what ends is reported to one callback. Names are imported
when they are first used, as the command line needs few of them at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.prove.cell_costs import cell_bill
    from podwright.prove.compare import (
        CellsCompared,
        Effort,
        SidesCompared,
        compare_cells,
        compare_refs,
        compare_until_proven,
    )
    from podwright.prove.gate import CellVerdict, GateRequest, GateVerdict, accept_change, judge_suite
    from podwright.prove.gate_runs import Budget, budget_of, run_gate, run_gate_until_proven
    from podwright.prove.price import ProofPrice
    from podwright.prove.scale import ScaleRequest, ScalingCurve, plan_scaling, scaling_curve
    from podwright.prove.sides import Measure, Side, margin_of, side_of
    from podwright.prove.suite_folder import Cell, SuiteFolder, known_suite, suite_names
    from podwright.prove.suites import Progress, SuitePlan, SuiteResult, TrialEnded, plan_suite, run_suite, suite_result
    from podwright.prove.wording import gate_sentence, is_time, method_text, p_text, pair_sentence, ratio_text

__all__ = [
    "Budget",
    "Cell",
    "CellVerdict",
    "CellsCompared",
    "Effort",
    "GateRequest",
    "GateVerdict",
    "Measure",
    "Progress",
    "ProofPrice",
    "ScaleRequest",
    "ScalingCurve",
    "Side",
    "SidesCompared",
    "SuiteFolder",
    "SuitePlan",
    "SuiteResult",
    "TrialEnded",
    "accept_change",
    "budget_of",
    "cell_bill",
    "compare_cells",
    "compare_refs",
    "compare_until_proven",
    "gate_sentence",
    "is_time",
    "judge_suite",
    "known_suite",
    "margin_of",
    "method_text",
    "p_text",
    "pair_sentence",
    "plan_scaling",
    "plan_suite",
    "ratio_text",
    "run_gate",
    "run_gate_until_proven",
    "run_suite",
    "scaling_curve",
    "side_of",
    "suite_names",
    "suite_result",
]
__getattr__ = late_names(__name__, __file__)
