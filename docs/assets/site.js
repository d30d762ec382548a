// Search over all pages, and a button that copies a block. Nothing is fetched: the index is a script of its own.
(() => {
  const box = document.getElementById("search");
  const list = document.getElementById("found");
  const up = document.documentElement.dataset.up;
  const MOST = 12;

  // Every word must be there; a title weighs more than a heading, a heading more than the text.
  function worth(entry, words) {
    const parts = [[entry.page.toLowerCase(), 4], [entry.title.toLowerCase(), 8], [entry.text.toLowerCase(), 1]];
    let sum = 0;
    for (const word of words) {
      const weights = parts.filter(([text]) => text.includes(word)).map(([, weight]) => weight);
      if (!weights.length) return 0;
      sum += Math.max(...weights);
    }
    return sum;
  }

  function around(text, word) {
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
    return (at ? "… " : "") + text.slice(at, at + 120) + (at + 120 < text.length ? " …" : "");
  }

  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const entries = words.length ? PAGES.map((entry) => [worth(entry, words), entry]).filter(([value]) => value) : [];
    entries.sort((a, b) => b[0] - a[0]);
    list.replaceChildren(...entries.slice(0, MOST).map(([, entry]) => item(entry, words[0])));
    list.hidden = !words.length;
    if (words.length && !entries.length) {
      const none = document.createElement("li");
      none.textContent = "Nothing has all of these words.";
      list.append(none);
    }
  }

  function item(entry, word) {
    const row = document.createElement("li");
    const link = document.createElement("a");
    link.href = up + entry.at;
    link.textContent = entry.title === entry.page ? entry.page : `${entry.page}: ${entry.title}`;
    const text = document.createElement("span");
    text.textContent = around(entry.text, word);
    row.append(link, text);
    return row;
  }

  box.parentElement.hidden = false;
  box.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      box.focus();
    }
    if (event.key === "Escape") { box.value = ""; show(); }
  });

  // Of a console only the commands are copied, without their prompts.
  function commands(block) {
    const text = block.textContent;
    if (!block.classList.contains("language-console")) return text;
    const lines = text.split("\n").filter((line) => line.startsWith("$ "));
    return lines.length ? lines.map((line) => line.slice(2)).join("\n") + "\n" : text;
  }

  for (const block of document.querySelectorAll("pre > code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(commands(block));
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(block);
        button.textContent = "Selected, press Ctrl-C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.parentElement.append(button);
  }

  // The heading that is being read is marked in the contents.
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const heads = [...links.keys()].map((id) => document.getElementById(id));
  const mark = () => {
    const here = heads.filter((head) => head.getBoundingClientRect().top < 120).pop();
    for (const [id, link] of links) link.toggleAttribute("aria-current", here?.id === id);
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
  document.documentElement.dataset.ready = "";
})();
