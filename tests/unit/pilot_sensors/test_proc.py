"""CPU, memory, disks and network, with and without a control group."""

import pytest

V2_MOUNT = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


def v2_group(folder):
    return {
        f"{folder}/cgroup.type": "domain\n",
        f"{folder}/cpu.stat": "usage_usec 1000000\nuser_usec 1\n",
        f"{folder}/cpu.max": "max 100000\n",
        f"{folder}/memory.current": "5000\n",
        f"{folder}/memory.max": "8000\n",
        f"{folder}/memory.stat": "anon 3000\nfile 2000\ninactive_file 1500\nactive_file 500\n",
        f"{folder}/memory.events": "low 0\noom 0\noom_kill 0\n",
        f"{folder}/io.stat": "259:0 rbytes=4096 wbytes=8192 rios=1 wios=2\n253:0 rbytes=4096 wbytes=8192\n",
    }


def test_a_plain_machine_counts_all_its_cpus(plain, sampler, events):
    taken = sampler(plain.scope())
    first = taken.sample(1.0)
    plain.write({"/proc/stat": "cpu  150 0 100 850 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0\n"})
    assert first == {
        "load1": 1.25,
        "memory_used_bytes": 600 * 1024,
        "memory_total_bytes": 1000 * 1024,
        "disk_read_bytes_total": 100 * 512,
        "disk_written_bytes_total": 200 * 512,
        "net_received_bytes_total": 1000,
        "net_sent_bytes_total": 2000,
    }
    assert taken.sample(2.0)["cpu_percent"] == 50.0
    assert events == []


def test_only_the_cpus_a_run_may_use_are_counted(plain, sampler):
    taken = sampler(plain.scope(cpus=frozenset({1})))
    taken.sample(1.0)
    plain.write({"/proc/stat": "cpu  9 0 9 9 0 0 0 0\ncpu0 999 0 0 0 0 0 0 0\ncpu1 35 0 10 855 0 0 0 0\nintr 1\n"})
    assert taken.sample(2.0)["cpu_percent"] == 25.0


def test_time_that_is_too_short_gives_no_share(plain, sampler):
    taken = sampler(plain.scope())
    taken.sample(1.0)
    plain.write({"/proc/stat": "cpu  101 0 100 801 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0\n"})
    assert "cpu_percent" not in taken.sample(1.5)


def test_version_2_group(plain, sampler):
    folder = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_42"
    plain.write({"/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n"})
    plain.write(v2_group(folder))
    taken = sampler(plain.scope())
    first = taken.sample(1.0)
    plain.write({f"{folder}/cpu.stat": "usage_usec 2500000\n"})
    assert taken.sample(2.0)["cpu_percent"] == 75.0
    assert first["memory_used_bytes"] == 3500
    assert first["memory_total_bytes"] == 8000
    assert first["disk_read_bytes_total"] == 4096
    assert first["disk_written_bytes_total"] == 8192


def test_a_container_sees_its_own_group_as_the_top(plain, sampler):
    plain.write({"/proc/self/cgroup": "0::/\n", **v2_group("/sys/fs/cgroup")})
    assert sampler(plain.scope()).sample(1.0)["memory_used_bytes"] == 3500


def test_the_lowest_limit_above_a_group_counts(plain, sampler):
    plain.write({"/proc/self/cgroup": "0::/pod/box\n", **v2_group("/sys/fs/cgroup/pod/box")})
    plain.write({"/sys/fs/cgroup/pod/memory.max": "6000\n", "/sys/fs/cgroup/pod/cpu.max": "50000 100000\n"})
    about = sampler(plain.scope()).describe()
    assert about["memory_bytes"] == 6000
    assert about["cpus"] == 1


def test_a_share_is_of_the_quota(plain, sampler):
    plain.write({"/proc/self/cgroup": "0::/box\n", **v2_group("/sys/fs/cgroup/box")})
    plain.write({"/sys/fs/cgroup/box/cpu.max": "50000 100000\n"})
    taken = sampler(plain.scope())
    taken.sample(1.0)
    plain.write({"/sys/fs/cgroup/box/cpu.stat": "usage_usec 1500000\n"})
    assert taken.sample(2.0)["cpu_percent"] == 100.0


def test_version_1_and_hybrid_groups(plain, sampler):
    job = "/slurm/uid_7/job_42"
    cpu, memory = f"/sys/fs/cgroup/cpu,cpuacct{job}", f"/sys/fs/cgroup/memory{job}"
    plain.write(
        {
            "/proc/self/cgroup": f"4:memory:{job}/step_0\n2:cpu,cpuacct:{job}/step_0\n0::/\n",
            "/proc/self/mountinfo": V1_MOUNTS,
            f"{cpu}/cpuacct.usage": "1000000000\n",
            f"{cpu}/cpu.cfs_quota_us": "-1\n",
            f"{memory}/memory.usage_in_bytes": "9000\n",
            f"{memory}/memory.limit_in_bytes": "9223372036854771712\n",
            f"{memory}/memory.stat": "cache 1\ninactive_file 1\ntotal_inactive_file 4000\n",
            "/sys/fs/cgroup/memory/release_agent": "\n",
        }
    )
    taken = sampler(plain.scope())
    first = taken.sample(1.0)
    plain.write({f"{cpu}/cpuacct.usage": "2000000000\n"})
    assert taken.sample(2.0)["cpu_percent"] == 50.0
    assert first["memory_used_bytes"] == 5000
    assert first["memory_total_bytes"] == 1000 * 1024


def test_the_root_of_a_version_1_hierarchy_is_no_group(plain, sampler):
    plain.write(
        {
            "/proc/self/cgroup": "4:memory:/\n",
            "/proc/self/mountinfo": V1_MOUNTS,
            "/sys/fs/cgroup/memory/release_agent": "\n",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
            "/sys/fs/cgroup/memory/memory.stat": "cache 1\n",
        }
    )
    assert sampler(plain.scope()).sample(1.0)["memory_used_bytes"] == 600 * 1024


def test_without_hardware_every_interface_but_lo_counts(plain, sampler):
    (plain.root / "sys/class/net/eth0/device/vendor").unlink()
    (plain.root / "sys/class/net/eth0/device").rmdir()
    assert sampler(plain.scope()).sample(1.0)["net_received_bytes_total"] == 1500


@pytest.mark.parametrize("group", [True, False])
def test_a_process_killed_for_memory_is_seen(plain, sampler, events, group):
    path = "/proc/vmstat"
    if group:
        plain.write({"/proc/self/cgroup": "0::/box\n", **v2_group("/sys/fs/cgroup/box")})
        path = "/sys/fs/cgroup/box/memory.events"
    taken = sampler(plain.scope())
    taken.sample(1.0)
    plain.write({path: "oom 2\noom_kill 2\n"})
    taken.sample(6.0)
    taken.sample(11.0)
    text = "the kernel killed 2 processes for want of memory"
    assert events == [("seen", {"what": "oom", "device": "memory", "value": 2, "text": text})]
