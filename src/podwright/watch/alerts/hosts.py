"""Alerts about hosts, and about what controls the pod: Prometheus itself, Slurm."""

from __future__ import annotations

from podwright.watch.alerts.alert import CRITICAL, WARNING, Alert

HOSTS = (
    Alert(
        "HostDown",
        # What a package of Prometheus watched before our configuration came has no host.
        'up{job="node", host!=""} == 0',
        "2m",
        CRITICAL,
        "{{ $labels.host }} does not answer",
        "it is off, cut off, or its exporter has ended",
        "podwright pod power POD --limit {{ $labels.host }}",
    ),
    Alert(
        "ExporterGone",
        'up{job="gpu"} == 0 unless on (host) up{job="node"} == 0',
        "2m",
        WARNING,
        "nothing is known of the GPUs of {{ $labels.host }}: its exporter does not answer",
        "podwright-exporter has ended, or its certificate or token is not that of the pod any more",
        "ssh {{ $labels.host }} systemctl status podwright-exporter",
    ),
    Alert(
        "ControllerAway",
        "podwright_bmc_up == 0",
        "15m",
        WARNING,
        "the management controller of {{ $labels.host }} does not answer",
        "it hangs, its password was changed, or the management network is cut",
        "podwright pod power POD --limit {{ $labels.host }}",
    ),
    Alert(
        "SensorFails",
        "podwright_exporter_sensor_up == 0",
        "5m",
        WARNING,
        "sensor {{ $labels.sensor }} of {{ $labels.host }} fails or hangs; its readings are gone",
        "a driver that hangs, or a device that went away",
        "ssh {{ $labels.host }} journalctl -u podwright-exporter --since -1h",
    ),
    Alert(
        "DiskFull",
        'node_filesystem_avail_bytes{fstype!~"tmpfs|ramfs"} / node_filesystem_size_bytes < 0.05',
        "10m",
        WARNING,
        "{{ $labels.mountpoint }} of {{ $labels.host }} is full",
        "caches of data, images or logs that nobody removes",
        "ssh {{ $labels.host }} du -xh --max-depth 2 {{ $labels.mountpoint }}",
    ),
    Alert(
        "StorageSlow",
        "rate(node_pressure_io_stalled_seconds_total[5m]) > 0.5",
        "10m",
        WARNING,
        "{{ $labels.host }} waits for storage more than half of the time",
        "a file server that is overloaded or away, or a disk that fails",
        "ssh {{ $labels.host }} cat /proc/pressure/io",
    ),
    Alert(
        "StorageAway",
        'podwright_exporter_sensor_up{sensor=~"mount .+"} == 0',
        "2m",
        CRITICAL,
        "file system {{ $labels.sensor }} of {{ $labels.host }} does not answer",
        "its server is away or overloaded; whatever touches it hangs",
        "ssh {{ $labels.host }} mount -t nfs,nfs4,lustre",
    ),
    Alert(
        "StorageFull",
        "min by (mountpoint, fstype) (podwright_storage_free_bytes / podwright_storage_bytes) < 0.05",
        "10m",
        WARNING,
        "{{ $labels.mountpoint }} is full: {{ $value | humanizePercentage }} left",
        "checkpoints and datasets that nobody removes",
        "podwright prune --dry-run",
    ),
    # A tenth of a second is what a disk that is overloaded takes; NFS answers from memory in less than one millisecond.
    Alert(
        "StorageSlowly",
        "rate(podwright_storage_operation_seconds_total[5m]) / rate(podwright_storage_operations_total[5m]) > 0.1",
        "10m",
        WARNING,
        "{{ $labels.mountpoint }} of {{ $labels.host }} takes {{ $value }} s for a {{ $labels.operation }}",
        "a file server or a network that is overloaded",
        "ssh {{ $labels.host }} nfsiostat 1 2 {{ $labels.mountpoint }}",
    ),
    # While drivers are brought up to date in turns, this is so for an hour; after it somebody was forgotten.
    Alert(
        "DriverDiffers",
        'podwright_exporter_info{driver!=""}'
        ' unless on (driver) topk(1, count by (driver) (podwright_exporter_info{driver!=""}))',
        "1h",
        WARNING,
        "{{ $labels.host }} has driver {{ $labels.driver }}, most hosts another",
        "it was away when the others were brought up to date, or somebody installed it by hand",
        "podwright pod status POD --limit {{ $labels.host }}",
    ),
    Alert(
        "FileDiffers",
        "podwright_host_file_differs == 1",
        "10m",
        WARNING,
        "{{ $labels.file }} of {{ $labels.host }} is not as `podwright pod up` wrote it: {{ $labels.how }}",
        "somebody changed it by hand",
        "podwright pod status POD --limit {{ $labels.host }}",
    ),
    Alert(
        "ClockOff",
        "abs(node_timex_offset_seconds) > 0.05 or node_timex_sync_status == 0",
        "10m",
        WARNING,
        "the clock of {{ $labels.host }} is not that of the pod",
        "chrony has ended or cannot reach the pod's time server",
        "ssh {{ $labels.host }} chronyc tracking",
    ),
    Alert(
        "CertificateEnds",
        "podwright_certificate_end_timestamp_seconds - time() < 14 * 86400",
        "",
        WARNING,
        "the certificate {{ $labels.file }} of {{ $labels.host }} ends within two weeks",
        "no `podwright pod up` for a year",
        "podwright pod up POD",
    ),
)
CONTROL = (
    Alert(
        "PrometheusBlind",
        "increase(prometheus_rule_evaluation_failures_total[15m]) > 0"
        " or prometheus_notifications_alertmanagers_discovered < 1",
        "5m",
        CRITICAL,
        "rules cannot be evaluated, or nobody can be told",
        "a full disk, or Alertmanager has ended",
        "ssh {{ $labels.host }} systemctl status prometheus prometheus-alertmanager",
    ),
)
SLURM = (
    Alert(
        "SlurmDown",
        'slurm_up == 0 or up{job="slurm"} == 0',
        "2m",
        CRITICAL,
        "Slurm's controller does not answer",
        "slurmctld has ended, or its host is overloaded",
        "ssh {{ $labels.host }} systemctl status slurmctld slurmdbd",
    ),
    Alert(
        "NodesDown",
        'slurm_nodes{state=~"down|fail.*"} > 0',
        "5m",
        WARNING,
        "{{ $value }} nodes are down in Slurm",
        "hosts that do not answer slurmctld",
        "podwright queue POD",
    ),
    Alert(
        "NodesDrained",
        'slurm_nodes{state=~"drain.*"} > 0',
        "1h",
        WARNING,
        "{{ $value }} nodes are drained in Slurm",
        "somebody, or a policy, took them out; the reason says why",
        "sinfo -R",
    ),
)
