// The filters above long lists and tables: by words, a kind or tags, with a count, and an address that keeps what was asked. The form
// stands in the page and says what its entries are (conf/atlas/tables.py). Without this script it is hidden, and the page is whole.
const isPhone = matchMedia("(max-width: 46em)").matches;
for (const form of document.querySelectorAll("form.filter")) {
  const { items, groups, headOnly, count, none = count, cells = 2, sort: sortWords } = form.dataset;
  const [typed, choice, told, reset] = ["[type=search]", "[name=that]", "output", "[type=reset]"].map(part => form.querySelector(part));
  const tags = [...form.querySelectorAll("[type=checkbox]")], long = form.nextElementSibling, all = long?.nextElementSibling;
  // An entry, and what belongs to it: of a term, all of its definition. Of a row the first cells have its names.
  const partsOf = item => {
    const found = [item];
    while (item.localName === "dt" && found.at(-1).nextElementSibling?.localName === "dd") found.push(found.at(-1).nextElementSibling);
    return found;
  };
  const entries = [...document.querySelectorAll(items)].map(item => ({
    item, parts: partsOf(item),
    kinds: item.dataset.kinds?.split(" ") ?? item.querySelector("p + p")?.textContent.split(" · ") ?? [],
  }));
  // Read when something is asked: the cells of hundreds of rows take a phone a while.
  const textOf = entry => entry.text ??= (entry.item.cells ? [...entry.item.cells].slice(0, cells) : headOnly === undefined ? entry.parts
    : [entry.item]).map(part => part.textContent).join(" ").toLowerCase();
  const wordsOf = entry => entry.words ??= textOf(entry).split(/\s+/);
  const parents = [...(groups ? document.querySelectorAll(groups) : [])].map(group => ({
    group, inside: entries.filter(({ item }) => group.contains(item) && group !== item),
  })).filter(({ inside }) => inside.length);
  // A name as people write it: no row says of which module an operator is. A node from a traceback ends in Backward0, which a table
  // may leave out: then the rest must be a whole word.
  const asked = () => sortWords === undefined ? typed?.value.toLowerCase().split(/[\s:,()'"]+/) ?? []
    : typed.value.toLowerCase().replace(/\b(?:torch|tensor|nn|functional|f)\.(?=\w)/g, "").split(/[\s,._()]+/);
  const fits = (entry, word) => textOf(entry).includes(word) || sortWords && wordsOf(entry).includes(word.replace("backward0", ""));
  const show = () => {
    const words = asked().filter(Boolean), chosen = tags.filter(tag => tag.checked).map(tag => tag.value);
    if (choice?.value) chosen.push(choice.value);
    const has = wanted => ({ kinds }) => wanted.every(kind => kinds.includes(kind));
    for (const entry of entries) {
      entry.left = has(chosen)(entry) && words.every(word => fits(entry, word));
      for (const part of entry.parts) part.hidden = !entry.left;
      if (sortWords !== undefined) entry.item.style.order = words.length && wordsOf(entry)[0] === words.at(-1) && !form.elements.sort.value ? -1 : "";
    }
    for (const { group, inside } of parents) {
      group.hidden = !inside.some(({ left }) => left);
      if (group.localName === "details" && isPhone) group.open = words.length > 0; // all of them are forty screens
    }
    for (const tag of tags) tag.disabled = !tag.checked && !entries.some(has([...chosen, tag.value])); // it would leave nothing
    const number = entries.filter(({ left }) => left).length;
    const sentence = number < entries.length ? count : count.replace("{shown} of ", "");
    told.value = (number ? sentence : none).replace("{shown}", number).replace("{all}", entries.length);
    if (reset) reset.hidden = !chosen.length;
    if (sortWords !== undefined) Object.assign(all, { hidden: number < 31, textContent: `Show all ${number}` }); // atlas.css shows 30
  };
  const fields = [...form.elements].filter(({ name }) => name);
  const keep = () => {
    const address = new URL(location);
    for (const { name } of fields) address.searchParams.delete(name);
    for (const [name, value] of new FormData(form)) if (value) address.searchParams.append(name, value);
    history.replaceState(null, "", address);
  };
  const clear = () => {
    for (const field of [typed, choice]) if (field) field.value = "";
    for (const tag of tags) tag.checked = false;
    show();
    keep();
  };
  form.addEventListener("input", () => { show(); keep(); });
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", event => {
    event.preventDefault();
    clear();
    tags[0].focus(); // the button is gone
  });
  // A link within the page leads to its entry, though that may be hidden.
  addEventListener("hashchange", () => {
    const target = document.querySelector("[hidden]:target, [hidden] :target");
    if (!target) return;
    clear();
    target.scrollIntoView();
  });
  const address = new URLSearchParams(location.search);
  for (const field of fields) {
    if (tags.includes(field)) field.checked = address.getAll(field.name).includes(field.value);
    else field.value = address.get(field.name) ?? "";
  }
  show();
  long?.classList.add("is-filtered"); // the groups that a phone closes were out of sight until now
  if (sortWords === undefined) continue;
  all.onclick = () => { long.classList.add("is-whole"); all.remove(); };
  // The form stays in sight, and the rows that are left may end above the window.
  form.addEventListener("input", () => { if (long.getBoundingClientRect().top < 0) form.parentElement.scrollIntoView(); });

  // -- A second click on a head turns the order round, a third one brings back the build's ------------------------
  const table = document.querySelector(`${groups} table`), heads = [...table.querySelectorAll("thead th")], by = form.elements.sort;
  const compare = (a, b, turn) => {
    const [x, y] = [Number(a || NaN), Number(b || NaN)];
    if (!isNaN(x) && !isNaN(y)) return turn * (x - y);
    return isNaN(x) - isNaN(y) || !a - !b || turn * a.localeCompare(b, "en", { numeric: true }); // what has no number, or nothing, stays last
  };
  by.onchange = sort; // on a phone, where the heads are out of sight
  function sort() {
    const column = Math.abs(by.value) - 1, turn = Math.sign(by.value), textOf = ({ item }) => item.cells[column].textContent.trim();
    const order = turn ? entries.toSorted((a, b) => compare(textOf(a), textOf(b), turn)) : entries;
    table.tBodies[0].append(...order.map(({ item }) => item));
    long.classList.toggle("is-sorted", turn !== 0);
    heads.forEach((head, place) => { head.ariaSort = place !== column || !turn ? null : turn > 0 ? "ascending" : "descending"; });
  }
  for (const [place, head] of heads.entries()) {
    const button = Object.assign(document.createElement("button"), { type: "button", title: sortWords });
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      by.value = { [place + 1]: -place - 1, [-place - 1]: "" }[by.value] ?? place + 1;
      sort();
      form.dispatchEvent(new Event("input"));
    };
  }
  if (heads[Math.abs(by.value) - 1]) sort(); else by.value = "";
}
