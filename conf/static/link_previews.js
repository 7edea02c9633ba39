// A link to another page or to a term of the glossary tells what is there, beside the pointer that rests on it, or when it is reached
// by keyboard: https://www.w3.org/WAI/WCAG22/Understanding/content-on-hover-or-focus.html. conf/atlas/site_files.py has the texts.
(() => {
  const article = document.querySelector("article"), root = new URL("..", document.currentScript.src);
  if (!article) return;
  const REST = 350, LEAVE = 250; // milliseconds until it comes and goes: who only crosses a link sees nothing
  const LINKS = "a.reference.internal:not(.card-title a, .sd-card > a)";
  let loading;
  const texts = () => loading ??= new Promise((onload, onerror) =>
    document.head.append(Object.assign(document.createElement("script"), { src: new URL("link-previews.js", root), onload, onerror }))
  ).then(() => window.atlasLinkPreviews, () => { loading = undefined; }); // a network that fails now may answer the next time
  const addressOf = url => url.pathname.slice(root.pathname.length);
  const previewOf = async link => {
    const url = new URL(link.href), found = await texts();
    return found?.[addressOf(url) + url.hash] ?? (addressOf(url) === addressOf(location) ? undefined : found?.[addressOf(url)]);
  };
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const note = make("div", { id: "link-preview", className: "link-preview", role: "tooltip", hidden: true });
  let described, wanted, timer;
  const soon = (act, wait) => { clearTimeout(timer); timer = setTimeout(act, wait); };
  const hide = () => {
    clearTimeout(timer);
    note.hidden = true;
    described?.removeAttribute("aria-describedby");
    described = wanted = undefined;
  };
  const leave = () => { if (!wanted?.matches(":hover, :focus-visible") && !note.matches(":hover")) hide(); };
  const show = async (link, pointer) => {
    wanted = link;
    const [title, text] = await previewOf(link) ?? [];
    if (wanted !== link) return; // something else was asked for meanwhile, or Escape was pressed
    hide();
    if (!text) return;
    note.replaceChildren(...(title === link.textContent ? [] : [make("strong", { textContent: title }), " "]), text);
    article.append(note);
    note.hidden = false;
    described = wanted = link;
    link.setAttribute("aria-describedby", note.id);
    place(link, pointer);
  };
  // Below the link, at the line that the pointer is on; above it where the window ends.
  const place = (link, pointer) => {
    const lines = [...link.getClientRects()], frame = note.offsetParent.getBoundingClientRect();
    const line = lines.find(({ top, bottom }) => top <= pointer?.y && pointer?.y <= bottom) ?? lines[0];
    const below = lines.at(-1).bottom + 6, above = lines[0].top - note.offsetHeight - 6;
    const fits = below + note.offsetHeight <= innerHeight || above < 0;
    const left = Math.max(8, Math.min(line.left, document.documentElement.clientWidth - note.offsetWidth - 8));
    note.style.left = `${left - frame.left}px`;
    note.style.top = `${(fits ? below : above) - frame.top}px`;
  };
  article.addEventListener("pointerover", event => {
    if (event.pointerType === "touch") return;
    const link = event.target.closest(LINKS);
    if (link && link !== described) soon(() => show(link, event), REST);
    else if (link) clearTimeout(timer);
    else soon(leave, LEAVE);
  });
  article.addEventListener("pointerleave", () => soon(leave, LEAVE));
  article.addEventListener("focusin", ({ target }) => { if (target.matches(LINKS) && target.matches(":focus-visible")) show(target); });
  article.addEventListener("focusout", () => soon(leave, 0));
  article.addEventListener("click", hide);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
  addEventListener("pagehide", hide);
})();
