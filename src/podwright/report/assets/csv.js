// Every chart and map as a file of comma-separated values, made in the page: nothing is asked of anybody.
const Csv = (() => {
  // A name that a program chose must not be a formula in a spreadsheet.
  function field(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function text(rows) { return rows.map((row) => `${row.map(field).join(",")}\r\n`).join(""); }

  // What is drawn, smoothed or not, is left aside: the file has the values as they are.
  function ofPlot(plot) {
    const { spec, figure } = plot;
    const title = figure.querySelector("h3, h4").textContent;
    const lines = spec.lines.map((line, i) => ({ line, values: (spec.raw || spec.data)[i + 1] })).filter((entry) => !entry.line.faint);
    const head = [spec.steps ? "step" : "seconds", ...lines.map((entry) => entry.line.label || title)];
    const places = (spec.raw || spec.data)[0];
    return [head, ...places.map((at, row) => [at, ...lines.map((entry) => entry.values[row])])];
  }

  function ofTable(table) {
    return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  }

  function save(name, rows) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text(rows)], { type: "text/csv" }));
    link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "chart"}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function button(place, name, rows) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "quiet csv";
    const what = document.createElement("span");
    what.className = "visually-hidden";
    what.textContent = ` of ${name}`;
    made.append("CSV", what);
    made.addEventListener("click", () => save(name, rows()));
    place.append(made);
  }

  return { button, ofPlot, ofTable };
})();
