// A filter above the table of operators. Without this script the table is whole, and the browser's own search finds a row.
// What is said comes from the build (conf/atlas/operators/table_directive.py). The address keeps what was asked, to be shared.
for (const box of document.querySelectorAll(".operators")) {
  const said = JSON.parse(box.querySelector("script").textContent);
  const parts = text => text.toLowerCase().replaceAll("backward0", "").split(/[\s._]+/).filter(Boolean);
  const rows = [...box.querySelectorAll("tbody tr")].map(row => ({
    row, kinds: row.dataset.kinds.split(" "),
    names: [row.cells[0], row.cells[1]].map(cell => cell.textContent).join(" ").toLowerCase(),
  }));
  const form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = '<label><input type="search" autocomplete="off"></label><label><select></select></label>'
    + '<output aria-live="polite"></output>';
  const [name, kind, count] = form.querySelectorAll("input, select, output");
  name.before(`${said.name} `);
  kind.before(`${said.kind} `);
  for (const [key, words] of Object.entries(said.kinds)) kind.add(new Option(words, key));
  const show = () => {
    const words = parts(name.value);
    let shown = 0;
    for (const { row, kinds, names } of rows) {
      row.hidden = !(words.every(word => names.includes(word)) && (!kind.value || kinds.includes(kind.value)));
      shown += !row.hidden;
    }
    count.value = shown ? said.count.replace("{shown}", shown).replace("{all}", rows.length) : said.none;
    box.hidden = !shown;
  };
  const asked = new URLSearchParams(location.search);
  name.value = asked.get("name") ?? "";
  kind.value = asked.get("that") ?? "";
  form.addEventListener("input", () => {
    const now = Object.entries({ name: name.value, that: kind.value }).filter(([, value]) => value);
    history.replaceState(null, "", `${location.pathname}${now.length ? "?" + new URLSearchParams(now) : ""}${location.hash}`);
    show();
  });
  form.addEventListener("submit", event => event.preventDefault());
  box.previousElementSibling.append(form);
  show();
}
