// Charts on one shared axis: one cursor, one zoom, for all of them and for the lanes.
const Charts = (() => {
  const TIME_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
  const BYTE_STEPS = Array.from({ length: 51 }, (_, i) => 2 ** i);
  const FROM_ZERO = new Set(["percent", "bytes", "bytes_per_s", "watts"]);
  const MOST_VALUES = 6;

  let probe = null;
  const colors = new Map();

  // light-dark() is only resolved in a real property, so an element that is not seen is asked for it.
  function color(name) {
    if (!probe) {
      probe = document.createElement("span");
      probe.hidden = true;
      document.body.append(probe);
    }
    if (!colors.has(name)) {
      probe.style.color = `var(${name})`;
      colors.set(name, getComputedStyle(probe).color);
    }
    return colors.get(name);
  }

  function faded(name, share) {
    const parts = color(name).match(/[\d.]+/g);
    return `rgba(${parts[0]}, ${parts[1]}, ${parts[2]}, ${share})`;
  }

  class Axis {
    constructor(end, format, start = 0) {
      this.full = [start, end > start ? end : start + 1];
      this.range = this.full;
      this.format = format;
      this.cursor = null;
      this.plots = new Set();
      this.listeners = [];
      this.busy = false;
    }

    zoom(from, to) {
      const least = (this.full[1] - this.full[0]) / 500;
      if (to - from < least) return;
      this.range = [Math.max(from, this.full[0]), Math.min(to, this.full[1])];
      for (const plot of this.plots) plot.chart.setScale("x", { min: this.range[0], max: this.range[1] });
      this.tell();
    }

    zoomOut() { this.zoom(...this.full); }

    point(at) {
      if (this.busy) return;
      this.busy = true;
      this.cursor = at;
      for (const plot of this.plots) plot.point(at);
      this.busy = false;
      this.tell();
    }

    tell() { for (const listener of this.listeners) listener(this); }
  }

  class Plot {
    constructor(figure, axis, spec) {
      this.figure = figure;
      this.box = figure.querySelector(".plot");
      this.out = figure.querySelector(".values");
      this.axis = axis;
      this.spec = spec;
      this.chart = new uPlot(options(this), spec.log ? aboveZero(spec.data) : spec.data, this.box);
      axis.plots.add(this);
      this.say();
    }

    size() { return { width: Math.max(160, this.box.clientWidth), height: this.box.clientHeight }; }

    resize(width) {
      const size = this.size();
      this.chart.setSize({ width: width || size.width, height: size.height });
    }

    point(at) {
      const left = at === null ? -10 : this.chart.valToPos(at, "x");
      this.chart.setCursor({ left, top: at === null ? -10 : 0 }, false);
      this.say();
    }

    show(visible) {
      this.spec.lines.forEach((line, i) => {
        const wanted = visible(line, this.spec);
        if (this.chart.series[i + 1].show !== wanted) this.chart.setSeries(i + 1, { show: wanted });
      });
      this.say();
    }

    // The values under the cursor; while there is none, the means, or of curves the last.
    say() {
      if (!this.chart) return;
      const at = this.axis.cursor;
      const shown = this.spec.lines
        .map((line, i) => ({ line, value: at === null ? this.atRest(i + 1) : this.valueAt(i + 1) }))
        .filter((entry, i) => this.chart.series[i + 1].show && !entry.line.silent);
      this.out.replaceChildren(lead(at, this), ...sayings(shown, this.spec));
    }

    atRest(i) {
      const values = this.chart.data[i];
      return this.spec.rest === "last" ? values.findLast(isKnown) ?? null : mean(values);
    }

    valueAt(i) {
      const index = this.chart.cursor.idxs?.[i];
      return index === null || index === undefined ? null : this.chart.data[i][index];
    }

    end() {
      this.axis.plots.delete(this);
      this.chart.destroy();
    }
  }

  function isKnown(value) { return value !== null && value !== undefined; }

  function mean(values) {
    let sum = 0;
    let count = 0;
    for (const value of values) if (isKnown(value)) { sum += value; count += 1; }
    return count ? sum / count : null;
  }

  function lead(at, plot) {
    const text = document.createElement("span");
    text.className = "at";
    text.textContent = at === null ? plot.spec.rest : `at ${plot.axis.format(at)}`;
    return text;
  }

  function sayings(shown, spec) {
    if (shown.length <= MOST_VALUES) return shown.map((entry) => saying(entry, spec));
    const known = shown.filter((entry) => entry.value !== null).sort((a, b) => a.value - b.value);
    if (!known.length) return [];
    const ends = [["least", known[0]], ["middle", known[known.length >> 1]], ["greatest", known[known.length - 1]]];
    return ends.map(([word, entry]) => saying(entry, spec, word));
  }

  function saying(entry, spec, word = "") {
    const item = document.createElement("span");
    item.className = "item";
    const value = document.createElement("b");
    value.textContent = Words.quantity(entry.value, spec.unit, spec.digits);
    item.append(key(entry.line), `${word ? `${word}, ` : ""}${entry.line.label}`, value);
    return item;
  }

  function key(line) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "key");
    svg.setAttribute("width", "16");
    svg.setAttribute("height", "8");
    svg.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    stroke.setAttribute("class", `line-${(line.color % 8) + 1}${line.dashed ? " dashed" : ""}`);
    for (const [name, at] of [["x1", 0], ["y1", 4], ["x2", 16], ["y2", 4]]) stroke.setAttribute(name, at);
    svg.append(stroke);
    return svg;
  }

  function options(plot) {
    const { spec, axis } = plot;
    const style = getComputedStyle(document.body);
    const gutter = parseInt(style.getPropertyValue("--gutter"), 10);
    const right = parseInt(style.getPropertyValue("--gutter-right"), 10);
    return {
      ...plot.size(),
      padding: [6, right, spec.labels ? 0 : 6, 0],
      legend: { show: false },
      cursor: cursor(axis),
      scales: { x: { time: false, range: () => axis.range }, y: yScale(spec) },
      axes: [xAxis(spec, axis), yAxis(spec, gutter)],
      series: [{}, ...spec.lines.map((line) => lineStyle(line, spec))],
      bands: spec.bands || [],
      hooks: { setCursor: [follow(plot)], setSelect: [zoomTo(axis)], drawClear: [boundaries(spec)], draw: [goal(spec)] },
    };
  }

  function cursor(axis) {
    return {
      y: false,
      points: { size: 7, width: 2, fill: () => color("--paper"), stroke: (u, i) => u.series[i].stroke() },
      drag: { x: true, y: false, setScale: false },
      hover: { skip: [null], prox: 40 },
      bind: { dblclick: () => () => { axis.zoomOut(); } },
    };
  }

  function follow(plot) {
    return (chart) => {
      if (plot.axis.busy) return;
      const left = chart.cursor.left;
      plot.axis.point(left === null || left < 0 ? null : chart.posToVal(left, "x"));
    };
  }

  function zoomTo(axis) {
    return (chart) => {
      if (chart.select.width < 4) return;
      const from = chart.posToVal(chart.select.left, "x");
      const to = chart.posToVal(chart.select.left + chart.select.width, "x");
      chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      axis.zoom(from, to);
    };
  }

  // What is not above zero has no place on a logarithmic scale.
  function aboveZero(data) {
    return [data[0], ...data.slice(1).map((values) => values.map((value) => (value > 0 ? value : null)))];
  }

  function yScale(spec) {
    if (!spec.log) return { range: (u, low, high) => extent(spec, low, high) };
    return { distr: 3, range: (u, low, high) => logExtent(spec, low, high) };
  }

  function logExtent(spec, low, high) {
    if (low === null || high === null) return [0.1, 1];
    if (spec.goal > 0) { low = Math.min(low, spec.goal); high = Math.max(high, spec.goal); }
    const pad = Math.pow(high / low || 1, 0.06) || 1;
    return low === high ? [low / 2, high * 2] : [low / pad, high * pad];
  }

  // 1, 2 and 5 of each power of ten; where hardly one of them is in sight, even steps.
  function logSplits(low, high) {
    const splits = [];
    if (!(low > 0 && high > low && isFinite(high))) return splits;
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      splits.push(...[1, 2, 5].map((digit) => digit * 10 ** power).filter((at) => at >= low && at <= high));
    }
    if (splits.length > 9) return splits.filter((at) => Number.isInteger(Math.round(Math.log10(at) * 1e6) / 1e6));
    if (splits.length > 2) return splits;
    const step = [1, 2, 5, 10].map((digit) => digit * 10 ** Math.floor(Math.log10(high - low) - 0.6)).find((size) => (high - low) / size <= 6);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
  }

  function extent(spec, low, high) {
    if (low === null || high === null) return [0, 1];
    if (spec.goal !== null && spec.goal !== undefined) {
      low = Math.min(low, spec.goal);
      high = Math.max(high, spec.goal);
    }
    if (FROM_ZERO.has(spec.unit)) return [0, Math.max(spec.top || 0, high * 1.08) || 1];
    const pad = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
    return [low >= 0 ? Math.max(0, low - pad) : low - pad, high + pad];
  }

  function axisStyle() {
    return {
      stroke: () => color("--ink-soft"),
      grid: { stroke: () => color("--line"), width: 1 },
      ticks: { show: false },
      font: `11px ${getComputedStyle(document.body).fontFamily}`,
    };
  }

  function xAxis(spec, axis) {
    return {
      ...axisStyle(),
      size: spec.labels ? 20 : 0,
      gap: 4,
      space: 72,
      incrs: spec.steps ? undefined : TIME_STEPS,
      values: (u, splits) => splits.map((at) => (spec.labels ? axis.format(at) : "")),
    };
  }

  function yAxis(spec, gutter) {
    return {
      ...axisStyle(),
      size: gutter,
      gap: 8,
      space: 30,
      incrs: spec.unit === "bytes" ? BYTE_STEPS : undefined,
      ...(spec.log ? { splits: (u, i, low, high) => logSplits(low, high), filter: (u, splits) => splits } : {}),
      values: (u, splits) => splits.map((at) => Words.quantity(at, spec.unit, 4)),
    };
  }

  function lineStyle(line, spec) {
    return {
      show: line.show !== false,
      stroke: () => strokeOf(line),
      width: line.hidden ? 0 : 1.5,
      dash: line.dashed ? [6, 3] : undefined,
      points: { show: Boolean(spec.dots), size: 5, fill: () => color("--paper") },
      gaps: (u, i, from, to, gaps) => gaps.filter((gap) => longGap(u, gap, spec.period)),
    };
  }

  function strokeOf(line) {
    const name = `--series-${(line.color % 8) + 1}`;
    if (line.hidden) return "transparent";
    return line.faint ? faded(name, 0.3) : color(name);
  }

  // Readings come a little early or late, which leaves a slot empty here and there; that is no gap.
  function longGap(chart, gap, period) {
    const ratio = window.devicePixelRatio || 1;
    const width = chart.posToVal(gap[1] / ratio, "x") - chart.posToVal(gap[0] / ratio, "x");
    return !period || width > 3.5 * period;
  }

  function boundaries(spec) {
    return (chart) => {
      const { ctx, bbox } = chart;
      ctx.save();
      ctx.strokeStyle = color("--line-strong");
      ctx.lineWidth = window.devicePixelRatio || 1;
      ctx.setLineDash([2 * ctx.lineWidth, 3 * ctx.lineWidth]);
      for (const boundary of spec.boundaries || []) {
        const x = Math.round(chart.valToPos(boundary.at, "x", true));
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    };
  }

  function goal(spec) {
    return (chart) => {
      if (spec.goal === null || spec.goal === undefined) return;
      const { ctx, bbox } = chart;
      const ratio = window.devicePixelRatio || 1;
      const y = Math.round(chart.valToPos(spec.goal, "y", true));
      ctx.save();
      ctx.strokeStyle = color("--ink");
      ctx.fillStyle = color("--ink");
      ctx.lineWidth = ratio;
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = "left";
      const wide = ctx.measureText(spec.goalText).width;
      const start = bbox.left + 8 * ratio;
      const below = y - bbox.top < 24 * ratio;
      const base = below ? y + 14 * ratio : y - 5 * ratio;
      ctx.fillStyle = color("--paper");
      ctx.fillRect(start - 4 * ratio, base - 10 * ratio, wide + 8 * ratio, 13 * ratio);
      ctx.fillStyle = color("--ink");
      ctx.fillText(spec.goalText, start, base);
      ctx.restore();
    };
  }

  function forget() { colors.clear(); }

  return { Axis, Plot, faded, forget };
})();
