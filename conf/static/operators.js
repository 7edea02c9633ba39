// A filter above the table of operators. Without this script the table is whole, and the browser's own search finds a row.
for (const box of document.querySelectorAll(".operators")) {
  const rows = [...box.querySelectorAll("tbody tr")].map(row => ({
    row, name: row.id.slice(3).toLowerCase(), cells: [...row.cells].map(cell => cell.textContent),
  }));
  const kinds = {
    "all operators": () => true,
    "keep nothing": cells => cells[2] === "nothing",
    "keep an input": cells => cells[2].includes("input"),
    "keep the result": cells => cells[2].includes("output"),
    "share memory": cells => cells[4] !== "never",
    "may be changed in place": cells => cells[5] === "works" && cells[6] === "works",
    "silently wrong after a change": cells => [cells[5], cells[6]].includes("wrong"),
    "have no second derivative": cells => cells[7] === "no",
    "have no forward mode": cells => cells[8] === "no",
  };
  const form = document.createElement("form");
  form.className = "operator-filter";
  form.innerHTML = '<label>Name <input type="search" autocomplete="off"></label>'
    + '<label>that <select></select></label><output aria-live="polite"></output>';
  const [name, kind, count] = form.querySelectorAll("input, select, output");
  for (const text of Object.keys(kinds)) kind.add(new Option(text));
  const show = () => {
    const words = name.value.toLowerCase().split(/[\s._-]+/).filter(Boolean);
    let shown = 0;
    for (const { row, name: id, cells } of rows) {
      row.hidden = !(words.every(word => id.includes(word)) && kinds[kind.value](cells));
      shown += !row.hidden;
    }
    count.value = `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  box.before(form);
  show();
}
