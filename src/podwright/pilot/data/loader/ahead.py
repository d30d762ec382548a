"""Copies each batch to the GPU while the step before it computes."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, List, Optional, Tuple

try:
    import torch
except ImportError:  # the order of samples can be looked at without it
    torch = None  # type: ignore[assignment]


def copied_ahead(batches: Iterable[Any], device: Any) -> Iterator[Any]:
    """Yield the batches on a device; on a GPU each is copied on a stream of its own before the one ahead is given."""
    if device is None or torch.device(device).type != "cuda":
        for batch in batches:
            yield batch if device is None else moved(batch, device)
        return
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    waiting: Optional[Tuple[Any, Any]] = None
    for batch in batches:
        with torch.cuda.stream(stream):
            copied = moved(batch, device)
        here = copied, stream.record_event()
        if waiting is not None:
            yield _ready(*waiting)
        waiting = here
    if waiting is not None:
        yield _ready(*waiting)


def moved(batch: Any, device: Any) -> Any:
    """Return a batch with all its tensors on a device; what holds them stays as it is."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: moved(value, device) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(moved(value, device) for value in batch)
    return batch


def tensors_of(batch: Any) -> List[Any]:
    """Return the tensors of a batch."""
    if isinstance(batch, torch.Tensor):
        return [batch]
    inside = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    found: List[Any] = []
    for value in inside:
        found += tensors_of(value)
    return found


def _ready(batch: Any, copied: Any) -> Any:
    """Return a batch that the step may use: its stream waits for the copy, and the memory is not reused before."""
    step = torch.cuda.current_stream()
    step.wait_event(copied)
    for tensor in tensors_of(batch):
        tensor.record_stream(step)
    return batch
