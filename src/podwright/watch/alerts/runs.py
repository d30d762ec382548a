"""Alerts about runs."""

from __future__ import annotations

from podwright.watch.alerts.alert import GPU, LOOK_RUN, RUN, WARNING, Alert

RUNS = (
    Alert(
        "GpuHeldIdle",
        'max_over_time(podwright_gpu_utilization_ratio{run!=""}[30m]) < 0.01',
        "5m",
        WARNING,
        f"{RUN} of {{{{ $labels.user }}}} holds {GPU} and has not used it for half an hour",
        "a session that was left open, or a program that waits",
        LOOK_RUN,
    ),
    Alert(
        "RunHangs",
        "time() - podwright_run_step_timestamp_seconds > clamp_min(5 * podwright_run_report_interval_seconds, 60)",
        "1m",
        WARNING,
        f"{RUN} of {{{{ $labels.user }}}} has made no step for {{{{ $value | humanizeDuration }}}}",
        "a collective that waits for a rank, or storage that does not answer",
        "podwright logs {{ $labels.run }} --tail 50",
    ),
    Alert(
        "RunStraggler",
        "podwright_run_work_slowest_seconds > 1.2 * podwright_run_work_seconds",
        "5m",
        WARNING,
        f"a rank of {RUN} of {{{{ $labels.user }}}} works {{{{ $value | humanizeDuration }}}} on its part of a step,"
        " and the others wait for it",
        "a GPU held back by heat or power, a slow link or disk, or another program on the host",
        LOOK_RUN,
    ),
    Alert(
        "CheckpointOverdue",
        "time() - podwright_run_checkpoint_timestamp_seconds > 3 * podwright_run_checkpoint_interval_seconds",
        "5m",
        WARNING,
        f"{RUN} of {{{{ $labels.user }}}} has written no checkpoint for {{{{ $value | humanizeDuration }}}}",
        "storage that is full or slow, or a run that hangs",
        LOOK_RUN,
    ),
)
