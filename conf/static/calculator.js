// A function of the page's script as a form: its lines come from the build (conf/atlas/boxes.py), which has shown the first result.
for (const form of document.querySelectorAll("form.calculator")) {
  const { lines } = JSON.parse(form.querySelector("script").textContent), places = [...form.querySelectorAll("td"), form.querySelector("output")];
  const fields = form.querySelectorAll("input, select"), asked = new URLSearchParams(location.search);
  const does = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
    max: Math.max, list: (...all) => all, at: (table, key) => table?.[key],
  };
  const show = () => {
    if (!form.checkValidity()) return; // the field is marked, and the last result stays
    const names = {};
    for (const { name, type, value, valueAsNumber } of fields) names[name] = type === "number" ? valueAsNumber : value;
    const compute = said => Array.isArray(said) ? does[said[0]](...said.slice(1).map(compute)) : said.is ?? names[said];
    for (const [name, said] of lines) names[name] = compute(said);
    names.return.forEach((bytes, at) => { places[at].textContent = (bytes / 2 ** 30).toFixed(2); });
  };
  for (const field of fields) field.value = asked.get(field.name) ?? field.value;
  form.querySelector("fieldset").disabled = false;
  form.addEventListener("input", () => {
    show();
    history.replaceState(null, "", `?${new URLSearchParams(new FormData(form))}${location.hash}`);
  });
  show();
}
