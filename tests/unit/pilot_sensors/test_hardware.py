"""CPU energy and InfiniBand."""

import pytest

ZONE = "/sys/class/powercap/intel-rapl:"


def zone(number, name, energy_uj, range_uj=1000000):
    folder = f"{ZONE}{number}"
    return {
        f"{folder}/name": f"{name}\n",
        f"{folder}/energy_uj": f"{energy_uj}\n",
        f"{folder}/max_energy_range_uj": f"{range_uj}\n",
    }


def port(device, number, **counters):
    folder = f"/sys/class/infiniband/{device}/ports/{number}"
    return {
        f"{folder}/rate": "200 Gb/sec (4X HDR)\n",
        **{f"{folder}/counters/{name}": f"{value}\n" for name, value in counters.items()},
    }


def test_packages_are_summed_and_nothing_is_counted_twice(plain, sampler):
    plain.write(zone("0", "package-0", 300000))
    plain.write(zone("1", "package-1", 500000))
    plain.write(zone("2", "psys", 900000))
    plain.write(zone("0:0", "dram", 900000))
    assert sampler(plain.scope()).sample(1.0)["cpu_energy_joules_total"] == pytest.approx(0.8)


def test_energy_grows_on_when_its_counter_starts_again(plain, sampler):
    plain.write(zone("0", "package-0", 900000))
    taken = sampler(plain.scope())
    taken.sample(1.0)
    plain.write(zone("0", "package-0", 100000))
    assert taken.sample(11.0)["cpu_energy_joules_total"] == pytest.approx(1.1)


def test_energy_is_read_every_ten_seconds_and_at_the_end(plain, sampler):
    plain.write(zone("0", "package-0", 900000))
    taken = sampler(plain.scope())
    read = ["cpu_energy_joules_total" in taken.sample(float(t)) for t in range(12)]
    assert read == [True, *[False] * 9, True, False]
    assert "cpu_energy_joules_total" in taken.final()


def test_a_broken_energy_counter_is_said_once_and_left_alone(plain, sampler, events):
    plain.write(zone("0", "package-0", "what"))
    taken = sampler(plain.scope())
    for t in range(30):
        assert "cpu_energy_joules_total" not in taken.sample(float(t))
    error = "invalid literal for int() with base 10: b'what\\n'"
    assert events == [("sensor", {"name": "cpu energy", "error": error})]


def test_an_energy_counter_that_cannot_be_opened_is_said_once(plain, sampler, events):
    plain.write(zone("0", "package-0", 1))
    path = plain.root / f"{ZONE[1:]}0/energy_uj"
    path.unlink()
    taken = sampler(plain.scope())
    assert "cpu_energy_joules_total" not in taken.sample(1.0)
    assert events == [("sensor", {"name": "cpu energy", "error": f"no such file or directory: {path}"})]


def test_ports_give_bytes_faults_and_rate(plain, sampler, events):
    counters = {"port_rcv_data": 10, "port_xmit_data": 20, "port_xmit_wait": 3, "link_downed": 1, "symbol_error": 2}
    plain.write(port("mlx5_0", 1, **counters)).write(port("mlx5_10", 1, port_rcv_data=7))
    taken = sampler(plain.scope())
    values = {name: value for name, value in taken.sample(1.0).items() if name.startswith("ib.")}
    assert values == {
        "ib.mlx5_0/1.received_bytes_total": 40,
        "ib.mlx5_0/1.sent_bytes_total": 80,
        "ib.mlx5_0/1.transmit_wait_total": 3,
        "ib.mlx5_0/1.link_downed_total": 1,
        "ib.mlx5_0/1.symbol_error_total": 2,
        "ib.mlx5_0/1.rate_gbps": 200,
        "ib.mlx5_10/1.received_bytes_total": 28,
        "ib.mlx5_10/1.rate_gbps": 200,
    }
    assert taken.describe()["nics"] == ["mlx5_0/1", "mlx5_10/1"]
    assert events == []


def test_a_link_that_goes_down_is_seen(plain, sampler, events):
    plain.write(port("mlx5_0", 1, link_downed=4))
    taken = sampler(plain.scope())
    taken.sample(1.0)
    plain.write(port("mlx5_0", 1, link_downed=5))
    taken.sample(11.0)
    text = "the link went down once"
    assert events == [("seen", {"what": "link_down", "device": "mlx5_0/1", "value": 1, "text": text})]
