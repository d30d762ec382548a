"""The first screen: the verdict in one sentence, then the figures. Pure."""

from dataclasses import dataclass
from itertools import chain

from podwright.analysis import event_text as moments
from podwright.analysis.curves import curve_of
from podwright.analysis.data import QualityGoal
from podwright.analysis.figures import amount
from podwright.analysis.ranks import Story
from podwright.analysis.reported import CurvePoint
from podwright.analysis.user_paths import as_owner_knows
from podwright.runs.events import DeviceSeen, PilotStarted, RankFailed, RankHung, Retry
from podwright.spec.hardware_library import gpu_peak_tflops
from podwright.theme import words

_MISSED = "missed"
_TAIL_LINES = 12


@dataclass(frozen=True)
class Verdict:
    """How it went. `look` picks sign and colour: a missed goal is a success that does not look like one."""

    word: str
    look: str
    sentence: str
    reasons: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    next: str = ""


@dataclass(frozen=True)
class KeyFigure:
    """One figure of the first screen; `meter` is (value, goal) in [0, 1] where a bar makes sense."""

    label: str
    value: str
    note: str = ""
    meter: tuple[float, float] | None = None


def verdict_of(story: Story) -> Verdict:
    """Return one sentence that a person could act on, and what supports it."""
    make = _VERDICTS.get(story.data.record.state, _pending)
    return make(story)


def _succeeded(story: Story) -> Verdict:
    record, goal = story.data.record, story.data.goal
    took = words.duration(record.duration_s)
    if goal is None:
        return Verdict("Succeeded", "succeeded", f"Succeeded in {took}.")
    name, last = words.metric_name(goal.metric), last_value(story, goal)
    if record.time_to_train_s is not None:
        reached = f"Reached {_hit(story, goal)} in {words.duration(record.time_to_train_s)}."
        return Verdict("Succeeded", "succeeded", reached, _later(story, goal))
    got = f"no {name} was reported"
    if last is not None:
        got = f"{name} {goal.show(last)}"
    if last is not None and goal.reached_by(last):
        got += ", which was read, not reported, and counts once the program reports it or `results:` names it"
    missed = f"Finished in {took} but missed the goal: {got}, goal {goal.text}."
    return Verdict("Succeeded, goal missed", _MISSED, missed)


def last_value(story: Story, goal: QualityGoal) -> float | None:
    """Return what the goal's metric was last, good enough or not."""
    return story.data.record.results.get(goal.metric)


def clock_name(story: Story) -> str:
    """Return what the page's clock, which is that of time to train, starts with."""
    if story.clock.run_start is not None:
        return "MLLOG run_start"
    if story.data.record.started_at:
        return "the first start of the ranks"
    return "the first sign of the run"


def _hit(story: Story, goal: QualityGoal) -> str:
    """Return `mean IoU 0.68, goal at least 0.65,` with the value that met the goal."""
    hit, name = story.clock.first_hit, words.metric_name(goal.metric)
    if hit is None or hit.value is None:
        return f"the goal, {name} {goal.text},"
    return f"{name} {goal.show(hit.value)}, goal {goal.text},"


def _later(story: Story, goal: QualityGoal) -> tuple[str, ...]:
    """Return what became of the metric after the goal was met; nothing where no other value was told."""
    hit = story.clock.first_hit
    curve = curve_of(story.data, goal.metric)
    if hit is None or hit.value is None or curve is None:
        return ()
    later = [point for point in curve.points if point.t > hit.time]
    if all(point.value == hit.value for point in later):
        return ()
    best, last = goal.best_of(later), later[-1]
    if not goal.is_better(best.value, hit.value):
        return (f"Later values were not better; {_told('the last was', last, story, goal)}.",)
    if best is last:
        return (f"It went on to its best value: {_told('the last was', last, story, goal)}.",)
    best_text = _told("the best was", best, story, goal)
    return (f"It went on: {best_text}; {_told('the last was', last, story, goal)}.",)


def _told(lead: str, point: CurvePoint, story: Story, goal: QualityGoal) -> str:
    text = f"{lead} {goal.show(point.value)} at {words.duration(story.span.at(point.t))}"
    if goal.reached_by(point.value):
        return text
    return f"{text}, which misses the goal again"


def _failed(story: Story) -> Verdict:
    event = _last_failure(story)
    run = story.data.record.id
    if event is None:
        sentence = f"Failed: {words.sentence(story.data.record.reason or 'no reason was recorded')}"
        return Verdict("Failed", "failed", sentence, _seen(story), next=f"podwright logs {run}")
    what, tail = _what_failed(event, story)
    reasons = []
    if event.why and event.why not in what:
        reasons.append(words.sentence(event.why))
    if len(story.attempts) > 1:
        before = words.count(len(story.attempts) - 1, "attempt")
        reasons.append(f"This was attempt {story.attempts[-1].number}; {before} before it ended early too.")
    sentence, command = f"Failed: {words.sentence(what)}", f"podwright logs {run} --rank {event.rank}"
    return Verdict("Failed", "failed", sentence, (*reasons, *_seen(story)), tail, command)


def _what_failed(event: RankFailed | RankHung, story: Story) -> tuple[str, tuple[str, ...]]:
    if isinstance(event, RankHung):
        return moments.hang(event), ()
    tail = (as_owner_knows(line, story.data.asked.code) for line in event.tail[-_TAIL_LINES:])
    return moments.failure(event, story), tuple(tail)


def _last_failure(story: Story) -> RankFailed | RankHung | None:
    failures = [event for event in story.data.events if isinstance(event, RankFailed | RankHung)]
    return next(reversed(failures), None)


def _seen(story: Story, most: int = 4) -> tuple[str, ...]:
    """Return what the devices said, as close to the failure as they said it."""
    events = story.data.of(DeviceSeen)[-most:]
    return tuple(
        f"Seen on {story.name(event.node)} at {words.clock(event.time)} UTC: {moments.seen(event)}." for event in events
    )


def _cancelled(story: Story) -> Verdict:
    took = words.duration(story.data.record.duration_s)
    return Verdict("Cancelled", "cancelled", f"Cancelled after {took}{_so_far(story)}.")


def _lost(story: Story) -> Verdict:
    reason = story.data.record.reason or "nothing was heard of it any more"
    reasons = _seen(story)
    progress = _so_far(story)
    if progress:
        reasons = (f"The last that is known{progress}.", *reasons)
    return Verdict("Lost", "lost", f"Lost: {words.sentence(reason)}", reasons)


def _running(story: Story) -> Verdict:
    length = words.duration(_lasted_s(story))
    return Verdict("Running", "running", f"Still running: {length} so far{_so_far(story)}.", _partial(story))


def _starting(story: Story) -> Verdict:
    nodes, here = story.data.record.nodes, len(story.data.of(PilotStarted))
    sentence = "Starting."
    if nodes:
        sentence = f"Starting, {here} of {words.count(nodes, 'node')} there."
    return Verdict("Starting", "running", sentence, _partial(story))


def _pending(story: Story) -> Verdict:
    sentence = "Waiting for nodes"
    record = story.data.record
    if record.created_at:
        sentence += f" since {words.date_and_clock(record.created_at)}"
    if record.reason:
        sentence += f": {record.reason}"
    return Verdict("Pending", "pending", f"{sentence}.", _partial(story))


def _partial(story: Story) -> tuple[str, ...]:
    return (f"This page shows the run as it was at {words.date_and_clock(story.data.read_at)}.",)


def _so_far(story: Story) -> str:
    """Return `, step 300 of 600, mean IoU 0.58 against a goal of at least 0.65`."""
    progress, goal = _progress(story), story.data.goal
    if goal is None:
        return progress
    last, hit = last_value(story, goal), story.clock.first_hit
    if last is None:
        return progress
    text = f"{progress}, {words.metric_name(goal.metric)} {goal.show(last)} against a goal of {goal.text}"
    if hit is None:
        return text
    return f"{text}, met at {words.duration(story.span.at(hit.time))}"


def _lasted_s(story: Story) -> float:
    """Return how long a run has lasted, from the first start of its ranks to the last thing known of it."""
    started = story.data.record.started_at
    if started is None:
        return story.span.length_s
    return max(story.span.end - started, 0.0)


def _progress(story: Story) -> str:
    """Return `, step 300 of 600`, by epochs where no steps were told."""
    last = story.data.told.progress
    for unit, total in (("step", "steps"), ("epoch", "epochs")):
        if unit in last:
            of = f" of {words.number(last[total])}" if total in last else ""
            return f", {unit} {words.number(last[unit])}{of}"
    return ""


_VERDICTS = {
    "succeeded": _succeeded,
    "failed": _failed,
    "cancelled": _cancelled,
    "lost": _lost,
    "running": _running,
    "starting": _starting,
}


def figures_of(story: Story) -> list[KeyFigure]:
    """Return the figures under the verdict, in the order they are asked for."""
    figures = [_train_figure(story), _duration(story), _quality(story), _cost(story), _world(story), _attempts(story)]
    return [figure for figure in (*figures, _utilisation(story), _energy(story)) if figure is not None]


def _utilisation(story: Story) -> KeyFigure | None:
    """Return model FLOPs utilisation: what the program told of its operations, to what its GPUs could do at most."""
    reached = story.data.record.results.get("tflops")
    gpus = chain.from_iterable(event.gpus for event in story.data.of(PilotStarted))
    peaks = {gpu_peak_tflops(str(gpu.get("name"))) for gpu in gpus}
    if reached is None or len(peaks) != 1:
        return None
    peak = peaks.pop()
    if peak is None:
        return None
    note = f"{words.number(reached)} TFLOP/s a GPU, as the program reported, of {words.number(peak)} in bf16"
    return KeyFigure("Model FLOPs utilisation", words.percent(reached / peak), note)


def _train_figure(story: Story) -> KeyFigure:
    took, goal = story.data.record.time_to_train_s, story.data.goal
    note = "goal not reached yet"
    if took is not None:
        note = f"from {clock_name(story)} to the goal, measured"
    elif goal is None:
        note = "no goal was given"
    elif story.data.record.is_final:
        note = "the goal was not reached"
    return KeyFigure("Time to train", words.duration(took), note)


def _duration(story: Story) -> KeyFigure:
    record = story.data.record
    note = "from the first start of the ranks"
    if record.created_at and record.started_at and record.started_at - record.created_at >= 1:
        note = f"after {words.duration(record.started_at - record.created_at)} of waiting"
    if story.data.record.is_final:
        return KeyFigure("Duration", words.duration(record.duration_s), note)
    return KeyFigure("Duration so far", words.duration(_lasted_s(story)), note)


def _quality(story: Story) -> KeyFigure | None:
    goal, loss = story.data.goal, story.data.record.results.get("loss")
    if goal is None:
        return None if loss is None else KeyFigure("Loss", words.number(loss), "last value reported")
    value = last_value(story, goal)
    meter = None
    if value is not None and 0 <= value <= 1 and 0 <= goal.bound <= 1:
        meter = (value, goal.bound)
    name = words.metric_name(goal.metric)
    return KeyFigure(name[0].upper() + name[1:], goal.show(value), f"last value, goal {goal.text}", meter)


def _cost(story: Story) -> KeyFigure:
    cost, paid = story.data.record.cost, amount(story)
    if cost is None or paid is None:
        return KeyFigure("Cost", words.NONE, "no prices given")
    return KeyFigure("Cost", f"{paid:,.2f} {cost.get('currency') or ''}".strip(), str(cost.get("origin") or ""))


def _world(story: Story) -> KeyFigure:
    nodes, world = story.data.record.nodes, story.data.record.world_size
    if not nodes:
        return KeyFigure("World size", words.NONE, "not joined yet")
    note = words.count(nodes, "node")
    if world % nodes == 0:
        note += f" x {words.count(world // nodes, 'rank')}"
    return KeyFigure("World size", words.number(world), note)


def _attempts(story: Story) -> KeyFigure:
    attempts = story.data.record.attempts or len(story.attempts)
    return KeyFigure("Attempts", words.number(attempts), _attempts_note(story, attempts))


def _attempts_note(story: Story, attempts: int) -> str:
    if not attempts:
        return "none was started" if story.data.record.is_final else "none started yet"
    if attempts == 1:
        return "no retry was needed" if story.data.record.state == "succeeded" else "no retry"
    # A node that was lost, or a run that was put back, spends none.
    spent = len(story.data.of(Retry))
    return words.count(spent, "retry", "retries") if spent else "no retry was spent"


def _energy(story: Story) -> KeyFigure | None:
    """Return what the energy counters of GPUs and CPUs counted, when there are any."""
    # Nodes on one machine read the same counters: each counts once for its machine.
    counted: dict[tuple[str, str], float] = {}
    parts = set()
    for (node, name), track in story.data.readings.items():
        if name.endswith("energy_joules_total") and len(track.v) > 1 and track.v[-1] > track.v[0]:
            machine = story.hosts.get(node) or story.name(node)
            counted[machine, name] = max(counted.get((machine, name), 0.0), track.v[-1] - track.v[0])
            parts.add("GPUs" if name.startswith("gpu.") else "CPUs")
    joules = sum(counted.values())
    if not joules:
        return None
    energy = f"{words.number(joules / 3600)} Wh"
    if joules >= 3.6e5:
        energy = f"{words.number(joules / 3.6e6)} kWh"
    return KeyFigure("Energy", energy, f"{' and '.join(sorted(parts, reverse=True))}, measured")
