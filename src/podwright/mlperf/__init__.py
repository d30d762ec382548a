"""MLPerf Training: logs, their scores, published results, descriptions of systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.mlperf.published import (
        NOT_VERIFIED,
        PublishedResult,
        Standing,
        published_results,
        select_results,
        standing_of,
    )
    from podwright.mlperf.score import Score, score_files
    from podwright.mlperf.system_desc import describe_system

__all__ = [
    "NOT_VERIFIED",
    "PublishedResult",
    "Score",
    "Standing",
    "describe_system",
    "published_results",
    "score_files",
    "select_results",
    "standing_of",
]
__getattr__ = late_names(__name__, __file__)
