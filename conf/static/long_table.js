// A filter above a table of hundreds of rows, and heads that sort it. Without this script the table is whole, and the browser's
// own search finds a row. What is said comes from the build (conf/atlas/directives/long_table.py). The address keeps what was
// asked, to be shared.
for (const box of document.querySelectorAll(".long-table")) {
  const said = JSON.parse(box.querySelector("script").textContent);
  const body = box.querySelector("tbody");
  const rows = [...body.rows].map(row => {
    const names = [row.cells[0], row.cells[1]].map(cell => cell.textContent.toLowerCase()).join(" ");
    return { row, names, words: names.split(/\s+/), kinds: (row.dataset.kinds ?? "").split(" ") };
  });

  const form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = '<label><input type="search" autocomplete="off"></label><label><select></select></label>'
    + '<output aria-live="polite"></output>';
  const [name, kind, count] = form.querySelectorAll("input, select, output");
  name.before(`${said.name} `);
  kind.before(`${said.kind ?? ""} `);
  for (const [key, words] of Object.entries(said.kinds ?? { "": "" })) kind.add(new Option(words, key));
  kind.parentElement.hidden = !said.kinds;

  // A node from a traceback ends in Backward0, which a table may leave out: then the rest must be a whole word.
  const fits = (row, word) => row.names.includes(word) || row.words.includes(word.replace("backward0", ""));
  const filter = () => {
    // A name as people write it: no row says of which module an operator is.
    const asked = name.value.toLowerCase().replace(/\b(?:torch|tensor|nn|functional|f)\.(?=\w)/g, "").split(/[\s,._()]+/).filter(Boolean);
    let shown = 0;
    for (const entry of rows) {
      entry.row.hidden = !(asked.every(word => fits(entry, word)) && (!kind.value || entry.kinds.includes(kind.value)));
      shown += !entry.row.hidden;
    }
    count.value = shown ? said.count.replace("{shown}", shown).replace("{all}", rows.length) : said.none;
    box.hidden = !shown;
  };

  // A second click on a head turns the order round, a third one brings back the build's.
  const heads = [...box.querySelectorAll("thead th")];
  let sorted = "";
  const textOf = ({ row }, column) => row.cells[column].textContent.trim();
  const compare = (a, b, turn) => {
    const [x, y] = [Number(a || NaN), Number(b || NaN)];
    if (!isNaN(x) && !isNaN(y)) return turn * (x - y);
    return isNaN(x) - isNaN(y) || turn * a.localeCompare(b, "en", { numeric: true });  // what has no number stays last
  };
  const sort = () => {
    const column = Math.abs(sorted) - 1, turn = Math.sign(sorted);
    const order = sorted
      ? rows.toSorted((a, b) => compare(textOf(a, column), textOf(b, column), turn))
      : rows;
    body.append(...order.map(({ row }) => row));
    heads.forEach((head, place) => {
      if (sorted && place === column) head.ariaSort = turn > 0 ? "ascending" : "descending";
      else head.removeAttribute("aria-sort");
    });
  };
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = said.sort;
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = String(place + 1);
      sorted = sorted === up ? `-${up}` : sorted === `-${up}` ? "" : up;
      sort();
      keep();
    });
  });

  const keep = () => {
    const now = Object.entries({ name: name.value, that: kind.value, sort: sorted }).filter(([, value]) => value);
    history.replaceState(null, "", `${location.pathname}${now.length ? "?" + new URLSearchParams(now) : ""}${location.hash}`);
  };
  const asked = new URLSearchParams(location.search);
  name.value = asked.get("name") ?? "";
  kind.value = asked.get("that") ?? "";
  if (heads[Math.abs(asked.get("sort")) - 1]) sorted = asked.get("sort");
  form.addEventListener("input", () => { keep(); filter(); });
  form.addEventListener("submit", event => event.preventDefault());
  box.previousElementSibling.append(form);
  if (sorted) sort();
  filter();
}
