// Manners of all pages: colours, times, keys, choosing; and one stream of changes for all tabs of a browser.
const root = document.documentElement;
const base = root.dataset.base;
const find = (id) => document.getElementById(id);

function kept(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`podwright-${name}`, value);
    return localStorage.getItem(`podwright-${name}`);
  } catch {
    return null;
  }
}

// -- colours and times

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

function colours(turn) {
  if (turn) root.dataset.theme = kept("colours", isDark() ? "light" : "dark") ?? (isDark() ? "light" : "dark");
  const button = find("colours");
  button.hidden = false;
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  document.dispatchEvent(new Event("repaint"));
}

const two = (number) => String(number).padStart(2, "0");

function local(moment) {
  const days = [moment.getFullYear(), two(moment.getMonth() + 1), two(moment.getDate())].join("-");
  return `${days} ${[moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(two).join(":")}`;
}

function times(within = document) {
  const isLocal = kept("clock") === "local";
  for (const time of within.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const utc = moment.toISOString().slice(0, 19).replace("T", " ");
    time.textContent = isLocal ? local(moment) : utc;
    time.title = isLocal ? `${utc} UTC` : `${local(moment)} here`;
  }
  const button = find("clock");
  button.hidden = false;
  button.textContent = isLocal ? "Local" : "UTC";
  button.setAttribute("aria-label", isLocal ? "Times are local: show UTC" : "Times are UTC: show local time");
}

function clock() {
  kept("clock", kept("clock") === "local" ? "utc" : "local");
  times();
}

// -- keys

let leading = false;
let row = -1;

function move(step) {
  const links = [...document.querySelectorAll("a.row")];
  if (!links.length) return;
  row = Math.min(links.length - 1, Math.max(0, row + step));
  links[row].focus();
  links[row].scrollIntoView({ block: "nearest" });
}

function choose() {
  const box = document.activeElement.closest("tr")?.querySelector("input[name=run]");
  if (!box) return;
  box.checked = !box.checked;
  count();
}

const KEYS = {
  "/": () => { find("search")?.focus(); find("search")?.select(); },
  "?": () => find("keys").showModal(),
  j: () => move(1),
  k: () => move(-1),
  x: choose,
  d: () => colours(true),
  u: clock,
  g: () => { leading = true; },
};

function pressed(event) {
  const typing = event.target.closest("input, select, textarea, [contenteditable], .plot");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || find("keys").open) return;
  if (leading) {
    leading = false;
    const link = [...document.querySelectorAll("nav [data-key]")].find((place) => place.dataset.key === event.key);
    if (link) link.click();
    return;
  }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

// -- choosing runs

function count() {
  const boxes = [...document.querySelectorAll("input[name=run][type=checkbox]")];
  const all = find("all");
  if (!all) return;
  const chosen = boxes.filter((box) => box.checked).length;
  all.hidden = false;
  all.checked = chosen > 0 && chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
  find("count").textContent = chosen ? `${chosen} chosen` : "With the chosen runs";
}

function chosenBy(event) {
  if (event.target.id === "all") {
    for (const box of document.querySelectorAll("input[name=run][type=checkbox]")) box.checked = event.target.checked;
  }
  if (event.target.id === "all" || event.target.name === "run") count();
}

// -- what is live: the page is asked for again, and what differs in it takes the place of what is there

// The proof in a form is another text each time, and no change.
const htmlOf = (part) => part.outerHTML.replace(/name="csrf" value="[^"]*"/g, "");
const served = new Map();
for (const part of document.querySelectorAll("[data-live]")) served.set(part.id, htmlOf(part));
let refreshing = null;
let again = false;

async function refresh() {
  if (refreshing) { again = true; return; }
  refreshing = fresh().catch(() => stale(true));
  await refreshing;
  await new Promise((done) => { setTimeout(done, 1500); });
  refreshing = null;
  if (again) { again = false; refresh(); }
}

async function fresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (answer.status === 401) { location.reload(); return; }
  if (!answer.ok) { stale(true); return; }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const kinds = (within) => [...within.querySelectorAll("[data-chart], [data-curve]")].map((part) => part.dataset.chart || part.dataset.curve).join();
  if (kinds(page) !== kinds(document)) { location.reload(); return; }
  for (const part of page.querySelectorAll("[data-live]")) swap(part);
  if (find("content").dataset.series !== undefined) series(page);
  if (page.getElementById("content").dataset.series === undefined) delete find("content").dataset.series;
  stale(false);
}

function swap(part) {
  const here = find(part.id);
  const html = htmlOf(part);
  if (!here || served.get(part.id) === html) return;
  served.set(part.id, html);
  const chosen = new Set([...here.querySelectorAll("input:checked")].map((box) => box.value));
  const open = [...here.querySelectorAll("details")].map((details) => details.open);
  const focused = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  here.replaceChildren(...document.importNode(part, true).childNodes);
  for (const box of here.querySelectorAll("input[type=checkbox]")) box.checked = chosen.has(box.value);
  here.querySelectorAll("details").forEach((details, i) => { details.open = open[i] ?? details.open; });
  if (focused) [...here.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  times(here);
  count();
}

function series(page) {
  const data = page.getElementById("data");
  if (data) document.dispatchEvent(new CustomEvent("series", { detail: JSON.parse(data.textContent) }));
}

function stale(is) { find("stale").hidden = !is; }

// -- one stream for all tabs: who holds the lock listens and tells the others; a tab that nobody looks at lets it go

const channel = new BroadcastChannel(`podwright${base}`);
let place = "";
let letGo = null;
let source = null;
let polling = null;

function heard(message) {
  place = message.id;
  if (document.hidden) return;
  const own = find("content").dataset.run;
  if (message.reset || message.runs.length === 0 ? message.reset : !own || message.runs.some((run) => run === own || run.startsWith(`${own}-`))) refresh();
}

function tell(message) {
  heard(message);
  channel.postMessage(message);
}

function listen() {
  source = new EventSource(`${base}/api/v1/events${place ? `?since=${encodeURIComponent(place)}` : ""}`);
  const event = (given) => { stopPolling(); tell(JSON.parse(given.data)); };
  source.addEventListener("change", event);
  source.addEventListener("reset", event);
  source.addEventListener("error", () => { stale(true); poll(); });
  source.addEventListener("open", () => stale(false));
  // A proxy that swallows streams lets nothing through: then we ask.
  setTimeout(() => { if (!place) poll(); }, 8000);
}

function poll() {
  polling ??= setInterval(async () => {
    try {
      const answer = await fetch(`${base}/api/v1/changes?since=${encodeURIComponent(place)}`);
      if (!answer.ok) throw new Error(answer.statusText);
      const changes = await answer.json();
      stale(false);
      if (changes.id !== place) tell(changes);
    } catch {
      stale(true);
    }
  }, 5000);
}

function stopPolling() {
  clearInterval(polling);
  polling = null;
}

function begin() {
  if (document.hidden || letGo || !find("keys") || !document.querySelector("[data-live]")) return;
  if (!navigator.locks) { letGo = () => {}; listen(); return; }
  const leave = new AbortController();
  letGo = () => leave.abort();
  navigator.locks.request(`podwright${base}`, { signal: leave.signal }, () => new Promise((done) => {
    letGo = done;
    listen();
  })).catch(() => {});
}

function end() {
  stopPolling();
  source?.close();
  source = null;
  letGo?.();
  letGo = null;
}

channel.addEventListener("message", (event) => heard(event.data));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) end();
  else { begin(); refresh(); }
});
addEventListener("pagehide", end);
addEventListener("pageshow", (event) => { if (event.persisted) begin(); });

find("help").hidden = false;
find("help").addEventListener("click", KEYS["?"]);
find("colours").addEventListener("click", () => colours(true));
find("clock").addEventListener("click", clock);
document.addEventListener("keydown", pressed);
document.addEventListener("change", chosenBy);
dark.addEventListener("change", () => colours(false));
colours(false);
times();
count();
begin();
root.dataset.live = "";
