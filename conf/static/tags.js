// A filter above the list of all pages (conf/atlas/related/tagged.py). The address keeps it, as ?tag=memory&tag=GPU.
for (const list of document.querySelectorAll(".tagged")) {
  const said = JSON.parse(list.querySelector("script").textContent);
  const chapters = [...list.querySelectorAll(".chapter")];
  const pages = [...list.querySelectorAll("li")].map(page => ({
    page, tags: page.querySelector("p + p")?.textContent.split(" · ") ?? [],
  }));
  const form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = '<fieldset><legend></legend></fieldset><output aria-live="polite"></output><button type="reset"></button>';
  const [fieldset, legend, count, reset] = form.querySelectorAll("fieldset, legend, output, button");
  legend.textContent = said.label;
  reset.textContent = said.all;
  const boxes = said.tags.map(tag => {
    const label = document.createElement("label"), box = document.createElement("input");
    Object.assign(box, { type: "checkbox", name: "tag", value: tag });
    label.append(box, tag);
    fieldset.append(label);
    return box;
  });
  const has = wanted => ({ tags }) => wanted.every(tag => tags.includes(tag));
  const show = () => {
    const wanted = boxes.filter(box => box.checked).map(box => box.value);
    for (const found of pages) found.page.hidden = !has(wanted)(found);
    for (const chapter of chapters) chapter.hidden = !chapter.querySelector("li:not([hidden])");
    // a tag that would leave nothing cannot be chosen
    for (const box of boxes) box.disabled = !box.checked && !pages.some(has([...wanted, box.value]));
    count.value = said.count.replace("{shown}", pages.filter(has(wanted)).length).replace("{all}", pages.length);
    reset.hidden = !wanted.length;
  };
  const keep = () => {
    const address = new URL(location);
    address.searchParams.delete("tag");
    for (const box of boxes) if (box.checked) address.searchParams.append("tag", box.value);
    history.replaceState(null, "", address);
  };
  form.addEventListener("change", () => { show(); keep(); });
  form.addEventListener("reset", event => {
    event.preventDefault();
    for (const box of boxes) box.checked = false;
    show();
    keep();
    boxes[0].focus(); // the button is gone
  });
  form.addEventListener("submit", event => event.preventDefault());
  const wanted = new URL(location).searchParams.getAll("tag");
  for (const box of boxes) box.checked = wanted.includes(box.value);
  list.prepend(form);
  show();
}
