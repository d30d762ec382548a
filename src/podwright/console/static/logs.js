// A log that grows: its new bytes are fetched while somebody looks; a search goes on turn by turn until it is stopped.
const find = (id) => document.getElementById(id);
const log = find("log");
const follow = find("follow");
const MOST = 2_000_000;

function follows() {
  const url = log.dataset.url;
  let end = Number(log.dataset.end);
  const decoder = new TextDecoder();
  find("follow-label").hidden = false;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  toEnd();

  async function more() {
    if (document.hidden || !follow.checked) return;
    const answer = await fetch(url, { headers: { Range: `bytes=${end}-` } });
    const size = Number(answer.headers.get("X-Size"));
    // The file was turned: what is there is another one.
    if (size < end) { location.reload(); return; }
    if (answer.status !== 206 && !(answer.status === 200 && end === 0)) return;
    const bytes = await answer.arrayBuffer();
    end += bytes.byteLength;
    log.append(decoder.decode(bytes, { stream: true }));
    if (log.textContent.length > MOST) log.textContent = log.textContent.slice(-MOST / 2);
    find("place").textContent = `to byte ${end.toLocaleString("en-US")}`;
    toEnd();
  }

  setInterval(() => more().catch(() => {}), 2000);
  follow.addEventListener("change", () => more().catch(() => {}));
}

async function searches(list) {
  const stop = find("stop");
  const form = new URLSearchParams(location.search);
  const api = `${document.documentElement.dataset.base}/api/v1${location.pathname.slice(document.documentElement.dataset.base.length).replace(/\/log$/, "/search")}`;
  let next = list.dataset.next;
  let stopped = false;
  stop.hidden = next === "";
  stop.addEventListener("click", () => { stopped = true; stop.hidden = true; });
  find("more")?.remove();
  while (next !== "" && !stopped && list.children.length < 5000) {
    const asked = new URLSearchParams({ rank: form.get("rank") || "0", text: form.get("text"), begin: next });
    const answer = await fetch(`${api}?${asked}`);
    if (!answer.ok) break;
    const found = await answer.json();
    for (const hit of found.hits) list.append(entry(hit, form.get("rank") || "0"));
    next = found.next === null ? "" : String(found.next);
    const done = found.next ?? found.size;
    find("found").textContent = `${list.children.length.toLocaleString("en-US")} lines found in ${Math.floor((100 * done) / Math.max(1, found.size))} % of the log`;
  }
  stop.hidden = true;
}

function entry(hit, rank) {
  const line = document.createElement("li");
  const link = document.createElement("a");
  link.href = `?${new URLSearchParams({ rank, begin: String(Math.max(0, hit.offset - 2000)) })}`;
  link.textContent = hit.offset;
  const code = document.createElement("code");
  code.textContent = hit.text;
  line.append(link, code);
  return line;
}

if (log?.dataset.liveEnd) follows();
if (find("hits")) searches(find("hits"));
