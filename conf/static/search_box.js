// Opens the search: Ctrl-K, "/", the box in the sidebar, the magnifier in a phone's bar. What searches is loaded when somebody is
// about to, so that a page that is only read does not carry it. Without this script the box leads to search.html.
(() => {
  const root = new URL("..", document.currentScript.src);
  const load = name => new Promise((done, failed) => {
    const script = Object.assign(document.createElement("script"), { src: new URL(name, root), onload: done, onerror: failed });
    document.head.append(script);
  });
  let loading;
  const ready = () => loading ??= (async () => {
    await load("search-index.js");
    await load("_static/search_engine.js");
    await load("_static/search_dialog.js");
    return window.atlasSearchDialog(root);
  })();
  const form = document.querySelector(".sidebar-search-container"), box = form?.querySelector("input");
  const open = async () => {
    try {
      (await ready()).open(box?.value ?? "");
      if (box) box.value = "";
    } catch {
      location.assign(new URL("search.html", root)); // a network that fails now may answer the page
    }
  };

  // Of an address that leads nowhere: the words of its last part.
  const wordsOf = path => path.split("/").filter(Boolean).slice(-1).map(decodeURIComponent)[0]
    ?.replace(/\.\w+$/, "").replace(/[_-]+/g, " ").replace(/^404$/, "");
  const boxes = document.querySelectorAll(".search-here");
  for (const here of boxes) {
    const start = async () => (await ready()).answer(here);
    const isPageOfSearch = new URL(here.action).pathname === location.pathname;
    const asked = "askedByAddress" in here.dataset ? wordsOf(location.pathname)
      : isPageOfSearch && new URLSearchParams(location.search).get("q");
    if (asked) {
      here.querySelector("textarea").value = asked;
      start();
    } else here.addEventListener("focusin", start, { once: true });
  }
  box?.addEventListener("focus", ready, { once: true });
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
