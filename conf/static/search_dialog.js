// The dialog of the search, and the answers below a box that stands on a page (conf/atlas/search.py). What to say is in the index.
window.atlasSearchDialog = root => {
  const { find, words, pages } = window.atlasSearch, { said, begin } = window.atlasSearchIndex;
  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  // A text in which the words that were asked for are marked.
  const marked = (text, stands) => text.split(/([\p{L}\p{N}_]+)/u).map(part =>
    words(part).some(word => stands.get(word) > 0.3) ? element("mark", {}, part) : part);
  // -- Answers: the same links in the dialog, where they are options, and below a box ---------------
  const link = ({ page, section }, stands) => {
    const [, title, snippet] = pages[page];
    return element("a", { href: new URL(pages[page][0] + (section ? `#${section.anchor}` : ""), root) },
      element("span", { class: "search-title" }, ...marked(title, stands)),
      ...(section ? [element("span", { class: "search-section" }, "› ", ...marked(section.heading, stands))] : []),
      element("span", { class: "search-snippet" }, ...marked(snippet, stands)));
  };
  const card = ({ page, section, fix, isOwn }, stands) => {
    const made = link({ page, section }, stands);
    made.classList.add("search-card");
    made.prepend(element("span", { class: "search-kind" }, isOwn ? said.card : said.sibling));
    if (fix) made.append(element("span", { class: "search-fix" }, element("b", {}, said.fix), " ", fix));
    return made;
  };
  // [a heading or nothing, links]: the card, then the groups in the order of their best result
  const groups = ({ card: message, results, stands }) => {
    const made = message ? [["", [card(message, stands)]]] : [];
    for (const kind of new Set(results.map(({ page }) => pages[page][3])))
      made.push([said.kinds[kind], results.filter(({ page }) => pages[page][3] === kind).map(one => link(one, stands))]);
    return made;
  };
  const count = ({ card, results }) => results.length + (card ? 1 : 0);
  const summary = (answer, query) => !query.trim() ? "" : (answer.isUnknown ? `${said.unknown} ` : "")
    + (count(answer) ? said.count.replace("{count}", count(answer)) : said.none);
  // -- Below a box ------------------------------------------------------------------------------------
  const answer = form => {
    const box = form.querySelector("textarea");
    const asked = box.value;
    const status = element("p", { class: "search-status", role: "status" });
    const list = element("div", { class: "search-results" });
    form.after(status, list);
    const show = () => {
      const guesses = "askedByAddress" in form.dataset && box.value === asked;
      const found = find(box.value, guesses ? 3 : 8);
      status.textContent = !guesses ? summary(found, box.value) : count(found) ? said.nearest : "";
      list.replaceChildren(...(box.value.trim() ? groups(found) : []).map(([heading, links]) => element("div", {},
        ...(heading ? [element("p", { class: "search-kind" }, heading)] : []),
        element("ul", {}, ...links.map(one => element("li", {}, one))))));
    };
    box.addEventListener("input", show);
    box.addEventListener("keydown", event => {
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        list.querySelector("a")?.click();
      }
    });
    form.addEventListener("submit", event => {
      event.preventDefault();
      show();
      list.querySelector("a")?.focus();
    });
    show();
  };
  // -- The dialog: a combobox with a list, as https://www.w3.org/WAI/ARIA/apg/patterns/combobox/ describes it
  let dialog;
  const make = () => {
    const input = element("input", {
      type: "search", role: "combobox", "aria-label": said.hint, placeholder: said.hint, "aria-expanded": "false",
      "aria-controls": "search-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", enterkeyhint: "go",
    });
    const close = element("button", { type: "button", "aria-label": said.close }, "Esc");
    const status = element("p", { class: "search-status", role: "status" });
    const list = element("div", { id: "search-list", role: "listbox", "aria-label": said.search });
    dialog = element("dialog", { class: "search-dialog", "aria-label": said.search },
      element("div", { class: "search-bar" }, input, close), status, list);
    let options = [], active = -1;
    const point = to => {
      active = options.length && to !== undefined ? (to + options.length) % options.length : -1;
      options.forEach((option, number) => { option.ariaSelected = String(number === active); });
      options[active]?.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", options[active]?.id ?? "");
    };
    const show = () => {
      const query = input.value, found = find(query.trim() ? query : said.hint, 10); // the first takes longest: it waits for no key
      const shown = query.trim() ? groups(found) : [[said.begin, begin.map(page => link({ page }, new Map()))]];
      options = shown.flatMap(([, links]) => links);
      options.forEach((option, number) => Object.assign(option, {
        role: "option", id: `search-option-${number}`, tabIndex: -1, ariaSelected: "false",
      }));
      list.replaceChildren(...shown.map(([heading, links], number) => heading
        ? element("div", { role: "group", "aria-labelledby": `search-group-${number}` },
          element("p", { class: "search-kind", id: `search-group-${number}`, role: "presentation" }, heading), ...links)
        : element("div", { role: "presentation" }, ...links)));
      input.setAttribute("aria-expanded", String(options.length > 0));
      status.textContent = summary(found, query);
      list.scrollTop = 0;
      point(query.trim() ? 0 : undefined);
    };
    input.addEventListener("input", show);
    // A line of text drops the ends of lines: a sign stands for each, by which the engine tells lines apart.
    input.addEventListener("paste", event => {
      const text = event.clipboardData.getData("text");
      if (!/[\r\n]/.test(text)) return;
      event.preventDefault();
      input.setRangeText(text.replace(/\s*\n\s*/g, " ⏎ "), input.selectionStart, input.selectionEnd, "end");
      show();
    });
    input.addEventListener("keydown", event => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) point(active + step);
      else if (event.key === "Enter") options[active]?.click();
      else if (event.key === "Escape") dialog.close(); // a search field would be emptied first
      else return;
      event.preventDefault();
    });
    dialog.addEventListener("click", event => { // beside the dialog, or on a link to a place on this page
      if (event.target === dialog || event.target.closest("a, button")) dialog.close();
    });
    document.body.append(dialog);
    return text => {
      if (dialog.open) return; // each key that was typed while it was loading asks for it
      dialog.showModal();
      if (text) input.value = text;
      input.select();
      if (text) input.setSelectionRange(text.length, text.length);
      show();
    };
  };
  let opened;
  return { open: text => (opened ??= make())(text), answer };
};
