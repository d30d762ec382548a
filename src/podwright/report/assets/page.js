// The page around the charts: what is drawn, which lines, theme, copying, keyboard, print.
(() => {
  let data = JSON.parse(document.getElementById("data").textContent);
  const time = new Charts.Axis(data.to, (at) => Words.duration(at), data.from);
  let machines = [];
  let curves = [];

  function machine(figure) {
    const chart = data.charts.find((entry) => entry.key === figure.dataset.chart);
    const [start, step, count] = chart.x;
    const x = Array.from({ length: count }, (_, i) => start + i * step);
    const nodes = [...new Set(chart.lines.filter((line) => line.rank === null).map((line) => line.node))];
    const lines = chart.lines.map((line, i) => {
      const place = chart.band ? i + 1 : line.rank === null ? nodes.indexOf(line.node) : line.rank;
      return { ...line, color: place % 8, dashed: place % 16 >= 8, show: line.rank === null };
    });
    const values = chart.lines.map((line) => line.values);
    const spec = { ...chart, lines, data: [x, ...values], period: step, rest: "mean", digits: 3 };
    if (chart.band) addBand(spec, chart.band);
    spec.labels = "last" in figure.dataset;
    spec.boundaries = data.attempts.slice(1);
    machines.push(new Charts.Plot(figure, time, spec));
  }

  function addBand(spec, band) {
    const side = { silent: true, hidden: true, color: 0 };
    spec.lines = [{ label: "5th percentile", ...side }, { label: "95th percentile", ...side }, { label: "median", color: 0 }, ...spec.lines];
    spec.data = [spec.data[0], band.low, band.high, band.middle, ...spec.data.slice(1)];
    spec.bands = [{ series: [2, 1], fill: () => Charts.faded("--series-1", 0.2) }];
  }

  const look = { over: "step", log: false, smoothing: 0, off: new Set() };

  const hasSteps = (curve) => curve.lines.every((line) => line.step);

  // A curve whose values were reported without their step stays over time.
  function drawCurves() {
    curves.forEach((plot) => plot.end());
    const all = data.curves.filter(hasSteps).flatMap((curve) => curve.lines.flatMap((line) => line.step));
    const overSteps = new Charts.Axis(all.reduce((a, b) => Math.max(a, b), 1), (at) => `step ${Words.number(at)}`);
    curves = data.curves.map((curve) => {
      const steps = look.over === "step" && hasSteps(curve);
      const boundaries = steps ? [] : data.attempts.slice(1);
      const tables = curve.lines.map((line) => (steps ? byStep(line.step, line.values) : byTime(line.time, line.values, boundaries)));
      const joined = tables.length > 1 ? uPlot.join(tables) : tables[0];
      const few = tables.every((table) => table[0].length <= 60);
      return new Charts.Plot(figures("curve", curve.key), steps ? overSteps : time, {
        ...curve, ...drawn(curve, joined), raw: joined, steps, log: look.log, labels: true, dots: few && !look.smoothing, digits: 4, unit: "",
        rest: "last", boundaries,
      });
    });
  }

  // The lines as they are; smoothed ones have what they were made of behind them, faint.
  function drawn(curve, joined) {
    const lines = curve.lines.map((line) => ({
      label: curve.lines.length > 1 ? line.label : "", color: line.line % 8, dashed: line.line >= 8, show: !look.off.has(line.line),
    }));
    if (!look.smoothing) return { lines, data: joined };
    const behind = lines.map((line) => ({ ...line, faint: true, silent: true }));
    const smooth = joined.slice(1).map((values) => smoothed(values, look.smoothing));
    return { lines: [...lines, ...behind], data: [joined[0], ...smooth, ...joined.slice(1)] };
  }

  // A running mean that forgets; the first values weigh no more than they should.
  function smoothed(values, share) {
    let sum = 0;
    let weight = 0;
    return values.map((value) => {
      if (value === null || value === undefined) return value;
      sum = sum * share + value;
      weight = weight * share + 1;
      return sum / weight;
    });
  }

  function figures(kind, key) {
    return [...document.querySelectorAll(`[data-${kind}]`)].find((figure) => figure.dataset[kind] === key);
  }

  // After a retry steps are told twice; the later word counts.
  function byStep(x, y) {
    const at = new Map(x.map((place, i) => [place, y[i]]));
    return table([...at]);
  }

  // An attempt's first moment breaks the line. Values of one instant are all kept, a microsecond apart in their order.
  function byTime(x, y, breaks) {
    const seen = new Map();
    const rows = x.map((place, i) => {
      const before = seen.get(place) || 0;
      seen.set(place, before + 1);
      return [place + before * 1e-6, y[i]];
    });
    return table([...breaks.filter((boundary) => !seen.has(boundary.at)).map((boundary) => [boundary.at, null]), ...rows]);
  }

  function table(rows) {
    rows.sort((a, b) => a[0] - b[0]);
    return [rows.map((row) => row[0]), rows.map((row) => row[1])];
  }

  function lanes() {
    const box = document.getElementById("lanes");
    if (!box) return;
    const line = box.querySelector(".lane-cursor");
    const plot = box.querySelector(".lane-plot");
    const span = () => time.range[1] - time.range[0];
    box.addEventListener("pointermove", (event) => {
      const place = plot.getBoundingClientRect();
      const share = (event.clientX - place.left) / place.width;
      time.point(share < 0 || share > 1 ? null : time.range[0] + share * span());
    });
    box.addEventListener("pointerleave", () => time.point(null));
    time.listeners.push(() => {
      const share = time.cursor === null ? -1 : (time.cursor - time.range[0]) / span();
      line.hidden = share < 0 || share > 1;
      line.style.left = `${plot.offsetLeft + share * plot.clientWidth}px`;
      const full = time.full[1] - time.full[0];
      document.body.style.setProperty("--zoom-width", `${(100 * full) / span()}%`);
      document.body.style.setProperty("--zoom-left", `${(-100 * (time.range[0] - time.full[0])) / span()}%`);
    });
  }

  function picks() {
    const box = document.getElementById("machine-picks");
    if (!box) return;
    box.hidden = false;
    allOrNone(box);
    box.addEventListener("input", () => {
      const byRank = box.querySelector("input[name=by]:checked")?.value === "rank";
      for (const set of box.querySelectorAll(".chips")) set.hidden = (set.dataset.by === "rank") !== byRank;
      for (const note of document.querySelectorAll(".by-rank")) note.hidden = !byRank;
      const on = (kind) => new Set([...box.querySelectorAll(`[data-${kind}]:checked`)].map((input) => Number(input.dataset[kind])));
      const nodes = on("node");
      const ranks = on("rank");
      for (const plot of machines) plot.show((line, spec) => isShown(line, spec, byRank, nodes, ranks));
    });
  }

  // Where a thing is only read for a whole node, the node stands for its ranks.
  function isShown(line, spec, byRank, nodes, ranks) {
    const hasRanks = spec.lines.some((other) => other.rank !== null);
    if (line.rank !== null) return byRank && ranks.has(line.rank);
    return byRank && hasRanks ? false : nodes.has(line.node);
  }

  function curvePicks() {
    const box = document.getElementById("curve-picks");
    if (!box || !data.curves.length) return;
    box.hidden = false;
    box.querySelector("[data-over]").hidden = !data.curves.some(hasSteps);
    const said = box.querySelector("output");
    allOrNone(box);
    box.addEventListener("input", () => {
      look.over = box.querySelector("input[name=over]:checked").value;
      look.log = box.querySelector("input[name=scale]:checked").value === "log";
      look.smoothing = Number(box.querySelector("input[name=smoothing]").value);
      look.off = new Set([...box.querySelectorAll("[data-line]:not(:checked)")].map((input) => Number(input.dataset.line)));
      said.textContent = look.smoothing ? Words.number(look.smoothing, 2) : "none";
      drawCurves();
    });
  }

  function allOrNone(box) {
    box.addEventListener("click", (event) => {
      if (!("all" in event.target.dataset)) return;
      const boxes = event.target.closest("fieldset").querySelectorAll("input");
      for (const input of boxes) input.checked = Boolean(event.target.dataset.all);
      box.dispatchEvent(new Event("input"));
    });
  }

  function files() {
    for (const plot of [...machines, ...curves]) {
      const { figure } = plot;
      const current = () => [...machines, ...curves].find((entry) => entry.figure === figure) || plot;
      Csv.button(figure.querySelector("figcaption"), figure.querySelector("h3, h4").textContent, () => Csv.ofPlot(current()));
    }
    for (const map of document.querySelectorAll(".map")) {
      Csv.button(map.querySelector("figcaption"), map.querySelector("h3").textContent, () => Csv.ofTable(map.querySelector("table")));
    }
    for (const table of document.querySelectorAll(".sortable, .iou, .half > .scroll > table")) {
      const head = table.closest(".half, section").querySelector("h2, h3");
      Csv.button(head, head.textContent, () => Csv.ofTable(table));
    }
  }

  function keys() {
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    for (const plot of document.querySelectorAll(".plot")) {
      plot.addEventListener("keydown", (event) => {
        const axis = [...machines, ...curves].find((entry) => entry.box === plot)?.axis;
        if (!axis) return;
        const [from, to] = axis.range;
        const at = axis.cursor ?? (from + to) / 2;
        if (event.key in steps) axis.point(Math.min(to, Math.max(from, at + (steps[event.key] * (to - from)) / (event.shiftKey ? 20 : 100))));
        else if (event.key === "Home") axis.point(from);
        else if (event.key === "End") axis.point(to);
        else if (event.key === "+") axis.zoom(at - (to - from) / 4, at + (to - from) / 4);
        else if (event.key === "-") axis.zoom(at - (to - from), at + (to - from));
        else if (event.key === "Escape") { axis.point(null); axis.zoomOut(); }
        else return;
        event.preventDefault();
      });
      plot.addEventListener("blur", () => time.point(null));
    }
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") time.zoomOut(); });
  }

  function matrix(table) {
    const out = table.parentElement.nextElementSibling;
    const rest = out.textContent;
    const cells = [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")]);
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    table.addEventListener("pointerover", (event) => { out.textContent = event.target.dataset?.text || rest; });
    table.addEventListener("pointerleave", () => { out.textContent = rest; });
    table.addEventListener("focusin", (event) => { out.textContent = event.target.dataset.text || rest; });
    table.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      const row = cells.findIndex((line) => line.includes(event.target));
      if (!move || row < 0) return;
      event.preventDefault();
      const next = cells[row + move[0]]?.[cells[row].indexOf(event.target) + move[1]];
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  // A click on a column's head puts the rows in its order; a second click turns it round.
  function sorting(table) {
    const heads = [...table.tHead.rows[0].cells];
    const worth = (row, i) => row.cells[i].dataset.v ?? row.cells[i].textContent;
    const before = (a, b) => (a === "") - (b === "") || (isNaN(a) || isNaN(b) ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
    heads.forEach((head, i) => {
      const button = document.createElement("button");
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].sort((a, b) => before(worth(a, i), worth(b, i)));
        if (down) rows.reverse();
        table.tBodies[0].append(...rows);
      });
    });
  }

  function copies() {
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const source = document.getElementById(button.dataset.copy);
        const said = button.firstChild;
        said.textContent = (await copied(source.textContent, source)) ? "Copied" : "Selected, press Ctrl-C";
        setTimeout(() => { said.textContent = "Copy"; }, 2000);
      });
    }
  }

  // A page opened from disk may have no clipboard; then the text is selected, which is the next best thing.
  async function copied(text, source) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      getSelection().selectAllChildren(source);
      return false;
    }
  }

  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function repaint(width) {
    Charts.forget();
    for (const plot of [...machines, ...curves]) {
      plot.resize(width);
      plot.chart.redraw(false);
    }
  }

  // The console's pages have a switch of their own, and say when it was used.
  function theme() {
    document.addEventListener("repaint", () => repaint());
    const button = document.getElementById("theme");
    if (!button) return;
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const label = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    };
    button.hidden = false;
    button.removeAttribute("aria-pressed");
    label();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      label();
      repaint();
    });
    dark.addEventListener("change", () => { label(); repaint(); });
  }

  // On paper: light colours, the width of a page, every table open.
  function print() {
    const PAPER_WIDTH = 680;
    let before = null;
    addEventListener("beforeprint", () => {
      before = { theme: root.dataset.theme, opened: [...document.querySelectorAll("details:not([open], .on-screen)")] };
      root.dataset.theme = "light";
      time.point(null);
      for (const details of before.opened) details.open = true;
      repaint(PAPER_WIDTH);
    });
    addEventListener("afterprint", () => {
      if (!before) return;
      if (before.theme) root.dataset.theme = before.theme;
      else delete root.dataset.theme;
      for (const details of before.opened) details.open = false;
      before = null;
      repaint();
    });
  }

  function contents() {
    const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
    const sections = [...document.querySelectorAll("main > section")];
    const mark = () => {
      const here = sections.filter((section) => section.getBoundingClientRect().top < 160).pop() || sections[0];
      for (const [key, link] of links) {
        if (key === here.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  }

  // The console hands over what came since, of a run that goes on: the same charts, with more in them.
  function renew(fresh) {
    const wasWhole = time.range[0] === time.full[0] && time.range[1] === time.full[1];
    data = fresh;
    time.full = [data.from, data.to > data.from ? data.to : data.from + 1];
    if (wasWhole) time.range = [...time.full];
    for (const plot of machines) plot.end();
    machines = [];
    document.querySelectorAll("[data-chart]").forEach(machine);
    drawCurves();
    document.getElementById("machine-picks")?.dispatchEvent(new Event("input"));
    time.tell();
  }

  document.addEventListener("series", (event) => renew(event.detail));
  document.querySelectorAll("[data-chart]").forEach(machine);
  drawCurves();
  document.querySelectorAll(".matrix").forEach(matrix);
  document.querySelectorAll(".sortable").forEach(sorting);
  [lanes, picks, curvePicks, files, keys, copies, theme, print, contents].forEach((part) => part());
  new ResizeObserver(() => { for (const plot of [...machines, ...curves]) plot.resize(); }).observe(document.querySelector("main"));
  root.dataset.ready = "";
})();
