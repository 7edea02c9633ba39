// A page of the gallery counts as read when its end was on the screen. The names of such pages are kept in this browser and go nowhere
// else; lists of pages show a tick for them, and a chapter's page forgets them (conf/atlas/cards.py).
(() => {
  const KEY = "atlas-read", root = new URL("..", document.currentScript.src);
  const nameOf = url => url.href.startsWith(root.href) ? url.href.slice(root.href.length).replace(/[?#].*/, "") : "";
  let kept = [];
  const load = () => {
    try { kept = JSON.parse(localStorage.getItem(KEY)); } catch { /* it keeps nothing, or another program wrote there */ }
    if (!Array.isArray(kept)) kept = [];
  };
  const save = () => {
    try { kept.length ? localStorage.setItem(KEY, JSON.stringify(kept)) : localStorage.removeItem(KEY); } catch { /* it keeps nothing */ }
  };
  const here = nameOf(new URL(location)), end = document.querySelector("article .sphx-glr-footer");
  if (end && here) {
    new IntersectionObserver((found, seen) => {
      if (!found.some(one => one.isIntersecting)) return;
      seen.disconnect();
      load();
      if (!kept.includes(here)) { kept.push(here); save(); }
    }).observe(end);
  }
  const place = document.querySelector(".read-pages");
  if (!place) return;
  const said = JSON.parse(place.querySelector("script").textContent);
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const line = make("p"), count = make("span", { role: "status" }), forget = make("button", { type: "button", textContent: said.forget });
  line.append(count, " ", forget);
  place.append(line);
  const items = [...document.querySelectorAll(".map .card, .map .path > li, .symptoms li, .tagged li")].map(item => {
    const link = item.querySelector("a"), name = nameOf(new URL(link.href));
    return { item, link, chapter: /\/index\.html$/.test(name) ? name.replace(/index\.html$/, "") : "", name };
  });
  const pages = [...new Set(items.filter(({ chapter }) => !chapter).map(({ name }) => name))];
  const show = () => {
    load();
    for (const { item, link, name, chapter } of items) {
      const small = item.querySelector(".card-small");
      item.querySelector(".tick")?.remove();
      const number = chapter ? kept.filter(page => page.startsWith(chapter)).length : 0;
      const is = chapter ? number > 0 : kept.includes(name);
      item.classList.toggle("is-read", is && !chapter);
      if (!is) continue;
      const tick = make("span", { className: "tick" });
      if (chapter) tick.textContent = ` · ${number} ${said.read}`;
      else tick.innerHTML = `<span class="visually-hidden"> (${said.read})</span>`;
      (chapter ? small : link).append(tick);
    }
    const read = pages.length ? pages.filter(page => kept.includes(page)).length : kept.length;
    const words = !read ? said.none : pages.length ? said.count : said.counted;
    count.textContent = words.replace("{read}", read).replace("{all}", pages.length);
    forget.hidden = !read;
  };
  forget.addEventListener("click", () => {
    load();
    kept = pages.length ? kept.filter(page => !pages.includes(page)) : [];
    save();
    show();
  });
  window.addEventListener("pageshow", show); // also when a reader comes back to it
  window.addEventListener("storage", show);
})();
