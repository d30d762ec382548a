"""A bring-up as it passes: a line for each stage that is over, and on a terminal what is done just now."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, TextIO

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.bringup import ApplyProgress, BringupProgress

_CLEAR = "\r\x1b[K"


class BringupView:
    """Shows what a bring-up says; a line that passes is written over again and again, where a terminal shows it."""

    def __init__(self, stream: TextIO, pod: str) -> None:
        self._stream, self._pod = stream, pod
        self._is_terminal = stream.isatty()
        self._stages, self._answers, self._began_s = 0, 0, 0.0

    def __call__(self, progress: BringupProgress) -> None:
        """Show one thing that happened."""
        if progress.kind == "asked":
            self._answers += 1
            self._pass(f"{'asked':<10}{self._answers} of {len(progress.hosts)}, last {progress.text}")
        elif progress.kind == "applying" and progress.applied is not None:
            self._show_stages(progress.applied)
        else:
            self.close()
            self._say(progress)

    def close(self) -> None:
        """Leave nothing of the line that passes."""
        self._answers = 0
        if self._is_terminal:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def _pass(self, text: str) -> None:
        if self._is_terminal:
            width = shutil.get_terminal_size((80, 24)).columns - 1
            self._stream.write(_CLEAR + output.clip(output.plain(text), width))
            self._stream.flush()

    def _say(self, progress: BringupProgress) -> None:
        if progress.applied is not None:
            self._say_stages(progress.applied)
            self._say_end(progress.text, progress.applied)
        elif progress.kind == "up":
            self._stages, self._began_s = 0, time.monotonic()
            count = len(progress.hosts)
            output.say("up", f"{progress.text}, {count} host{'s' if count > 1 else ''}")
        else:
            output.say(progress.kind, progress.text or ", ".join(progress.hosts))

    def _show_stages(self, applied: ApplyProgress) -> None:
        if sum(stage.state != "running" for stage in applied.stages) > self._stages:
            self.close()
            self._say_stages(applied)
        if applied.stages:
            self._pass(self._at_work(applied))

    def _at_work(self, applied: ApplyProgress) -> str:
        """Return what is done just now: which stage of how many, the task, hosts that have ended it, who is slow."""
        stage = applied.stages[-1].name
        ended, slow = sum(applied.at_task.values()), applied.slow()
        words = [f"{_place(applied, stage)} {applied.doing}".rstrip()]
        if applied.at_task:
            words.append(f"{ended} of {len(applied.at_task)} hosts")
        if slow:
            words.append(f"waits for {slow[0]}" + (f" and {len(slow) - 1} more" if len(slow) > 1 else ""))
        changed = sum(host.changed for host in applied.hosts.values())
        words += [f"{changed} changes", figures.duration(time.monotonic() - self._began_s)]
        return f"{stage:<10}{', '.join(words)}"

    def _say_stages(self, applied: ApplyProgress) -> None:
        over = [stage for stage in applied.stages if stage.state != "running"]
        for stage in over[self._stages :]:
            took = figures.duration(stage.took_s)
            words = f"{_place(applied, stage.name)} {stage.state}, {stage.changed} changes, {took}"
            output.say(stage.name, words.strip())
        self._stages = len(over)

    def _say_end(self, name: str, applied: ApplyProgress) -> None:
        for fault in applied.faults:
            output.say("failed", f"{fault.host}: {fault.stage}, {fault.task}: {fault.reason}")
        for step, hosts in applied.next_steps().items():
            output.say("next", f"{hosts}: {step}")
        if applied.faults:
            look = f"podwright pod status {self._pod}"
            return output.say("then", f"`podwright pod up` again: what is done stays done\n{look}")
        changed = sum(host.changed for host in applied.hosts.values())
        what = f"{changed} changes" if changed else "nothing had to change"
        return output.say("done", f"{name}: {what}, in {figures.duration(time.monotonic() - self._began_s)}")


def _place(applied: ApplyProgress, stage: str) -> str:
    """Return which of the stages this is; nothing where they are not known before."""
    return f"{applied.wanted.index(stage) + 1} of {len(applied.wanted)}" if stage in applied.wanted else ""
