// A filter above the list of errors. Without this script each group can be unfolded, and the search finds each page.
// What is said comes from the build (conf/atlas/search/symptoms.py).
for (const list of document.querySelectorAll(".symptoms")) {
  const said = JSON.parse(list.querySelector("script").textContent);
  const groups = [...list.querySelectorAll("details")].map(group => ({
    group, pages: [...group.querySelectorAll("li")].map(page => ({ page, text: page.textContent.toLowerCase() })),
  }));
  const form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = '<label><input type="search" autocomplete="off"></label><output aria-live="polite"></output>';
  const [typed, count] = form.querySelectorAll("input, output");
  typed.before(`${said.label} `);
  const show = () => {
    const words = typed.value.toLowerCase().split(/[\s:,.()'"]+/).filter(Boolean);
    let shown = 0, all = 0;
    for (const { group, pages } of groups) {
      for (const { page, text } of pages) page.hidden = !words.every(word => text.includes(word));
      const left = pages.filter(({ page }) => !page.hidden).length;
      group.hidden = !left;
      group.open = words.length > 0;
      shown += left;
      all += pages.length;
    }
    count.value = said.count.replace("{shown}", shown).replace("{all}", all);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  list.prepend(form);
  show();
}
