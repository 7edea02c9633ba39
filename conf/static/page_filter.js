// Leaves those entries of a page that have all words which a reader types. The form is in the page, and says which entries there
// are (conf/atlas/tables.py).
for (const form of document.querySelectorAll("form.page-filter")) {
  const [typed, count] = form.querySelectorAll("input, output");
  // An entry, and what belongs to it: of a term, all of its definition.
  const parts = item => {
    const found = [item];
    while (item.localName === "dt" && found.at(-1).nextElementSibling?.localName === "dd") found.push(found.at(-1).nextElementSibling);
    return found;
  };
  const entries = [...document.querySelectorAll(form.dataset.items)].map(item => ({
    parts: parts(item), item, text: (form.dataset.headOnly === undefined ? parts(item) : [item]).map(part => part.textContent).join(" ").toLowerCase(),
  }));
  const groups = form.dataset.groups ? [...document.querySelectorAll(form.dataset.groups)].map(group => ({
    group, entries: entries.filter(({ item }) => group.contains(item) && group !== item),
  })).filter(({ entries: inside }) => inside.length) : [];
  const show = () => {
    const words = typed.value.toLowerCase().split(/[\s:,()'"]+/).filter(Boolean);
    for (const entry of entries) {
      entry.left = words.every(word => entry.text.includes(word));
      for (const part of entry.parts) part.hidden = !entry.left;
    }
    for (const { group, entries: inside } of groups) {
      group.hidden = !inside.some(({ left }) => left);
      if (group.localName === "details") group.open = words.length > 0;
    }
    count.value = form.dataset.count.replace("{shown}", entries.filter(({ left }) => left).length).replace("{all}", entries.length);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  // A link within the page leads to its entry, though that may be hidden.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !entries.some(({ parts: own, left }) => !left && own.some(part => part.contains(target)))) return;
    typed.value = "";
    show();
    target.scrollIntoView();
  });
  show();
}
