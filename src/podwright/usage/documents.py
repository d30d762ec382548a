"""Queues and waste as JSON documents: what `--json` prints, and what an API answers. Times are ISO 8601."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from podwright.engines.usage import QueuedJob
from podwright.runs.record import iso
from podwright.usage.gather import TargetQueue, TargetWaste
from podwright.usage.waste import JobUse, Use

if TYPE_CHECKING:
    from podwright.costs import Price


def queue_document(queue: TargetQueue) -> dict[str, Any]:
    """Return a target's queue."""
    away = [node for node in queue.nodes if node.state == "away"]
    return {
        "target": queue.target,
        "error": queue.away or None,
        "partitions": [asdict(partition) for partition in queue.partitions],
        "nodes_away": [{"node": node.node, "why": node.why} for node in away],
        "jobs": [_queued_job(job) for job in queue.jobs],
    }


def _queued_job(job: QueuedJob) -> dict[str, Any]:
    return asdict(job) | {"starts_at": iso(job.starts_at), "ends_at": iso(job.ends_at)}


def waste_document(target: TargetWaste) -> dict[str, Any]:
    """Return what became of a target's GPU hours."""
    if target.waste is None:
        return {"target": target.target, "error": target.away}
    waste, price = target.waste, target.price
    return {
        "target": target.target,
        "error": None,
        "since": iso(waste.since),
        "until": iso(waste.until),
        "accounting": target.accounting,
        "price": _price(price),
        **_use(waste.total, price),
        "users": [{"user": user, **_use(use, price)} for user, use in waste.users.items()],
        "runs": [_job(job, price) for job in waste.jobs],
        "whole_nodes": [_job(job, price) for job in waste.whole_nodes],
        "backfill_gpu_hours": waste.backfill_gpu_h,
        "time_limit_used": waste.limit_share,
    }


def _price(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    return {"gpu_hour": price.per_gpu_hour, "currency": price.currency, "origin": price.origin}


def _job(job: JobUse, price: Price | None) -> dict[str, Any]:
    names = {"job": job.job, "run": job.run, "name": job.name, "user": job.user, "nodes": job.nodes}
    return {**names, "gpus": job.gpus, "gpus_asked": job.gpus_asked, **_use(job.use, price)}


def _use(use: Use, price: Price | None) -> dict[str, Any]:
    cost = None
    if price is not None:
        cost = use.idle * price.per_gpu_hour
    return {
        "gpu_hours": use.held,
        "idle_gpu_hours": use.idle,
        "unmeasured_gpu_hours": use.unmeasured,
        "idle_cost": cost,
    }
