// The filter above the list of all pages (conf/atlas/related/tagged.py). The address keeps it, as ?tag=memory&tag=GPU.
for (const list of document.querySelectorAll(".tagged")) {
  const chapters = [...list.querySelectorAll(".chapter")];
  const pages = [...list.querySelectorAll("li")].map(page => ({
    page, tags: page.querySelector("p + p")?.textContent.split(" · ") ?? [],
  }));
  const form = list.querySelector("form"), [count, reset] = form.querySelectorAll("output, button");
  const boxes = [...form.querySelectorAll("input")];
  const has = wanted => ({ tags }) => wanted.every(tag => tags.includes(tag));
  const show = () => {
    const wanted = boxes.filter(box => box.checked).map(box => box.value);
    for (const found of pages) found.page.hidden = !has(wanted)(found);
    for (const chapter of chapters) chapter.hidden = !chapter.querySelector("li:not([hidden])");
    // a tag that would leave nothing cannot be chosen
    for (const box of boxes) box.disabled = !box.checked && !pages.some(has([...wanted, box.value]));
    count.value = form.dataset.count.replace("{shown}", pages.filter(has(wanted)).length).replace("{all}", pages.length);
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
  show();
}
