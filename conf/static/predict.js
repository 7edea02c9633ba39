// A reader answers before the solution is opened. What is right comes from the build (conf/atlas/folds.py).
for (const form of document.querySelectorAll("form.predict")) {
  const said = JSON.parse(form.querySelector("script").textContent);
  const [typed, told] = form.querySelectorAll("input, select, output");
  // 0.25, .25, 1/4, -1e-3 with either minus, inf, nan; else undefined.
  const number = text => {
    const plain = text.trim().toLowerCase().replace(/\u2212/g, "-").replace(/^[+]/, "");
    if (/^-?inf(inity)?$/.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity;
    if (plain === "nan") return NaN;
    const [over, under, more] = plain.split("/").map(part => /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(part.trim()) ? +part : undefined);
    return more === undefined && plain.split("/").length <= 2 ? plain.includes("/") ? over / under : over : undefined;
  };
  // Whole numbers are exact. Of others a hundredth is forgiven: who answers 0.33 for 1/3 has understood.
  const isRight = (given, right) =>
    Number.isFinite(right)
      ? Math.abs(given - right) <= (Number.isInteger(right) ? 1e-6 : 0.01) * Math.abs(right) + 1e-9
      : Object.is(given, right);
  const judge = () => {
    if (typed.localName === "select") return typed.value ? typed.value === said.answer[0] ? said.right : said.wrong : said.unread;
    const given = typed.value.replace(/[[\]()]/g, "").split(/[,;]/).map(number), wanted = said.answer.map(number);
    if (given.length !== wanted.length || given.includes(undefined)) return said.unread;
    const right = given.filter((value, place) => isRight(value, wanted[place])).length;
    if (right === wanted.length) return said.right;
    return right ? said.part.replace("{right}", right).replace("{all}", wanted.length) : said.wrong;
  };
  form.addEventListener("submit", event => {
    event.preventDefault();
    told.value = judge();
    form.dataset.told = told.value === said.right ? "right" : "wrong";
  });
  typed.addEventListener("input", () => {
    told.value = "";
    delete form.dataset.told;
  });
  form.hidden = false;
}
