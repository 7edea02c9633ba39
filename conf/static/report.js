// Tells the link that opens an issue (conf/atlas/footer.py) which passage is meant: what a reader has selected, or what the mouse has
// rested on, beside which a second link appears, in the margin. Who has no mouse selects, and takes the link at the end of the page.
(() => {
  const link = document.querySelector(".report a"), article = document.querySelector("article");
  if (!link || !article) return;
  const PLAIN = link.href, LONGEST = 1500, REST = 700; // characters that an address takes everywhere; milliseconds
  const BLOCKS = "figure, .plot-scroll, .highlight, .output_html, .cell_output, p, dt, h1, h2, h3, h4";
  const words = block => (block.matches("figure") ? block.querySelector("figcaption") : block)?.innerText
    ?? block.querySelector("[aria-label]")?.ariaLabel ?? "";
  const about = (text, place) => {
    const to = new URL(PLAIN), fields = to.searchParams;
    const [title, body] = [...fields.keys()];
    const section = place?.closest("section[id]"), heading = section?.querySelector("h1, h2, h3, h4");
    const named = place?.closest("tr[id], figure")?.closest("[id]")?.id ?? section?.id;
    const clean = said => said.replace(/¶/g, "").trim();
    if (heading && heading.tagName !== "H1") fields.set(title, `${fields.get(title)}: ${clean(heading.innerText)}`);
    let said = fields.get(body);
    if (named) said = said.replace(link.dataset.page, `${link.dataset.page}#${named}`);
    const quoted = clean(text).slice(0, LONGEST).replace(/^/gm, "> ");
    fields.set(body, clean(text) ? `${quoted}\n\n${said}` : said);
    return to.href;
  };
  const chosen = () => {
    const selection = getSelection();
    if (selection.isCollapsed || !article.contains(selection.anchorNode)) return;
    return { text: selection.toString(), place: selection.anchorNode.parentElement };
  };
  let last; // a tap on the link takes the selection away before it is clicked
  document.addEventListener("selectionchange", () => {
    if (chosen()) last = chosen();
    else if (article.contains(getSelection().anchorNode)) last = undefined;
  });
  const fill = () => { link.href = last ? about(last.text, last.place) : PLAIN; };
  for (const event of ["pointerenter", "pointerdown", "focus"]) link.addEventListener(event, fill);
  // Hidden from readers' programs: the link at the end of the page is there for all who do not see this one.
  const mark = Object.assign(document.createElement("a"), {
    className: "report-mark", tabIndex: -1, hidden: true, ariaHidden: "true", title: link.dataset.beside, rel: link.rel,
  });
  const room = article.closest(".content"); // with the margin
  room.querySelector("footer").append(mark); // a landmark: what stands outside of all is lost to who goes by them
  let timer;
  const show = (block, y) => {
    const frame = article.getBoundingClientRect();
    mark.hidden = false;
    mark.hidden = frame.right + 12 + mark.offsetWidth > innerWidth;
    if (mark.hidden) return;
    const origin = mark.offsetParent.getBoundingClientRect();
    mark.style.left = `${frame.right - origin.left + 8}px`;
    mark.style.top = `${y - origin.top - mark.offsetHeight / 2}px`;
    const picked = chosen();
    const inside = picked && getSelection().containsNode(block, true);
    mark.href = about(inside ? picked.text : words(block), inside ? picked.place : block);
  };
  article.addEventListener("pointermove", event => {
    clearTimeout(timer);
    const block = event.pointerType === "mouse" && !event.buttons && (event.target.closest("tr") ?? event.target.closest(BLOCKS));
    if (block) timer = setTimeout(show, REST, block, event.clientY);
  });
  article.addEventListener("pointerleave", () => clearTimeout(timer));
  addEventListener("scroll", () => clearTimeout(timer), { passive: true });
  room.addEventListener("pointerleave", () => { mark.hidden = true; });
})();
