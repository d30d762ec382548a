"use strict";
// Values in words, the same as the tables' own.
const Words = (() => {
  const SCALES = {
    bytes: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]],
    bytes_per_s: [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  };
  const UNITS = { percent: "%", watts: "W", celsius: "°C", mhz: "MHz" };

  function number(value, digits = 3) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(2);
    if (Number.isInteger(value) || size >= 10 ** digits) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(digits)));
  }

  function quantity(value, unit, digits = 3) {
    if (value === null || value === undefined) return "–";
    const scale = SCALES[unit];
    if (!scale) return `${number(value, digits)}${UNITS[unit] ? ` ${UNITS[unit]}` : ""}`;
    const [base, names] = scale;
    let step = 0;
    while (Math.abs(value) >= base && step < names.length - 1) { value /= base; step += 1; }
    return `${number(value, digits)} ${names[step]}`;
  }

  function duration(seconds) {
    if (seconds <= -59.95) return `-${duration(-seconds)}`;
    if (seconds < 59.95) return `${Number(seconds.toFixed(1))} s`;
    const whole = Math.round(seconds);
    const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
    let left = whole;
    const said = [];
    for (const [size, name] of parts) {
      const count = Math.floor(left / size);
      left -= count * size;
      if (count) said.push(`${count}${name}`);
    }
    return said.slice(0, 2).join(" ");
  }

  function clock(unix) {
    return `${new Date(unix * 1000).toISOString().slice(11, 19)} UTC`;
  }

  return { number, quantity, duration, clock };
})();
