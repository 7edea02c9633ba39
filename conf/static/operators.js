// A filter above the table of operators. Without this script the table is whole, and the browser's own search finds a row.
// What is said comes from the build (conf/atlas/operators/table_directive.py).
for (const box of document.querySelectorAll(".operators")) {
  const said = JSON.parse(box.querySelector("script").textContent);
  const rows = [...box.querySelectorAll("tbody tr")].map(row => ({
    row, name: row.id.slice(3).toLowerCase(), cells: [...row.cells].map(cell => cell.textContent),
  }));
  const kinds = {
    all: () => true,
    nothing: cells => !/input|output|new/.test(cells[2]),
    input: cells => cells[2].includes("input"),
    output: cells => cells[2].includes("output"),
    shares: cells => cells[4] !== "never",
    works: cells => cells[5] === "works" && cells[6] === "works",
    wrong: cells => [cells[5], cells[6]].includes("wrong"),
    second: cells => cells[7] === "no",
    forward: cells => cells[8] === "no",
  };
  const form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = '<label><input type="search" autocomplete="off"></label><label><select></select></label>'
    + '<output aria-live="polite"></output>';
  const [name, kind, count] = form.querySelectorAll("input, select, output");
  name.before(`${said.name} `);
  kind.before(`${said.kind} `);
  for (const key of Object.keys(kinds)) kind.add(new Option(said.kinds[key], key));
  const show = () => {
    const words = name.value.toLowerCase().split(/[\s._-]+/).filter(Boolean);
    let shown = 0;
    for (const { row, name: id, cells } of rows) {
      row.hidden = !(words.every(word => id.includes(word)) && kinds[kind.value](cells));
      shown += !row.hidden;
    }
    count.value = said.count.replace("{shown}", shown).replace("{all}", rows.length);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  box.before(form);
  show();
}
