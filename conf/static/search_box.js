// Opens the search: Ctrl-K, "/", the box in the sidebar, the magnifier in a phone's bar. What searches is loaded when somebody is
// about to, so that a page that is only read does not carry it. Without this script the box leads to search.html.
(() => {
  const root = new URL("..", document.currentScript.src);
  const load = name => new Promise((onload, onerror) => {
    const href = new URL(name, root), isStyle = name.endsWith(".css");
    const own = isStyle ? { rel: "stylesheet", href } : { src: href, async: false };
    document.head.append(Object.assign(document.createElement(isStyle ? "link" : "script"), { ...own, onload, onerror }));
  });
  const FILES = ["_static/search.css", "search-index.js", "_static/search_engine.js", "_static/search_dialog.js"];
  let loading;
  const ready = () => loading ??= Promise.all(FILES.map(load)).then(() => window.atlasSearchDialog(root), failure => {
    loading = undefined; // a network that fails now may answer the next time
    throw failure;
  });
  const form = document.querySelector(".sidebar-search-container"), box = form?.querySelector("input");
  const open = async () => {
    try {
      (await ready()).open(box?.value ?? "");
      if (box) box.value = "";
    } catch {
      location.assign(new URL("search.html", root));
    }
  };
  // Of an address that leads nowhere: the words of its last part.
  const wordsOf = path => path.split("/").filter(Boolean).slice(-1).map(decodeURIComponent)[0]
    ?.replace(/\.\w+$/, "").replace(/[_-]+/g, " ").replace(/^404$/, "");
  const boxes = document.querySelectorAll(".search-here");
  for (const here of boxes) {
    const start = () => ready().then(search => search.answer(here), wait);
    const wait = () => here.addEventListener("focusin", start, { once: true });
    const isPageOfSearch = new URL(here.action).pathname === location.pathname;
    const asked = "askedByAddress" in here.dataset ? wordsOf(location.pathname)
      : isPageOfSearch && new URLSearchParams(location.search).get("q");
    if (asked) {
      here.querySelector("textarea").value = asked;
      start();
    } else wait();
  }
  box?.addEventListener("focus", () => ready().catch(() => {}), { once: true });
  box?.addEventListener("click", open);
  box?.addEventListener("input", open);
  document.querySelector(".search-open")?.addEventListener("click", event => {
    event.preventDefault();
    open();
  });
  document.addEventListener("keydown", event => {
    const writes = event.target.closest("input, textarea, select, [contenteditable]");
    const asks = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
      || event.key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!asks) return;
    event.preventDefault();
    open();
  });
})();
