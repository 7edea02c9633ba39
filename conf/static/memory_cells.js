// A tensor beside its memory: a call makes a view or a copy, or raises, as PyTorch does. atlas/memory_cells.html has the words.
for (const box of document.querySelectorAll(".memory-cells")) {
  const said = JSON.parse(box.querySelector("script").textContent);
  const count = size => size.reduce((product, length) => product * length, 1);
  const packed = size => size.map((_length, place) => count(size.slice(place + 1)));
  const tuple = list => list.length === 1 ? `(${list[0]},)` : `(${list.join(", ")})`;
  const memory = Array.from({ length: count(said.size) }, (_value, place) => place);
  const fresh = (size, memory, copied) => ({ size, stride: packed(size), offset: 0, copied, memory }), first = () => fresh(said.size, memory, false);
  // The places in memory of all numbers, row by row.
  const places = ({ size, stride, offset }) => size.reduce(
    (starts, length, dim) => starts.flatMap(start => Array.from({ length }, (_v, index) => start + index * stride[dim])), [offset]);
  const isContiguous = ({ size, stride }) => size.every((length, dim) => length === 1 || stride[dim] === packed(size)[dim]);
  const copy = (x, size) => fresh(size, places(x).map(place => x.memory[place]), true);
  // The new size fits if strides, taken from the first numbers, lead to all of them. Null if not.
  const view = (x, size) => {
    const read = places(x), stride = packed(size).map((step, dim) => size[dim] > 1 ? read[step] - read[0] : x.stride.at(-1));
    return String(places({ ...x, size, stride })) === String(read) ? { ...x, size, stride } : null;
  };
  const slice = (x, dim, start, step) => ({
    ...x, offset: x.offset + start * x.stride[dim],
    size: x.size.with(dim, Math.ceil((x.size[dim] - start) / step)),
    stride: x.stride.with(dim, x.stride[dim] * step),
  });
  const refused = "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans "
    + "across two contiguous subspaces). Use .reshape(...) instead.";
  // What is called, when it can be, and the tensor that it returns, or the message that it raises.
  const isMatrix = x => x.size.length === 2;
  const calls = {
    ".t()": [isMatrix, x => ({ ...x, size: x.size.toReversed(), stride: x.stride.toReversed() })],
    "[1:]": [x => x.size[0] > 1, x => slice(x, 0, 1, 1)],
    "[:, ::2]": [x => isMatrix(x) && x.size[1] > 1, x => slice(x, 1, 0, 2)],
    "[:1].expand(3, -1)": [isMatrix, x => ({ ...x, size: [3, x.size[1]], stride: [0, x.stride[1]] })],
    ".view(-1)": [isMatrix, x => view(x, [count(x.size)]) ?? refused],
    ".view(2, -1)": [x => count(x.size) % 2 === 0, x => view(x, [2, count(x.size) / 2]) ?? refused],
    ".reshape(-1)": [isMatrix, x => view(x, [count(x.size)]) ?? copy(x, [count(x.size)])],
    ".contiguous()": [() => true, x => isContiguous(x) ? x : copy(x, x.size)],
  };
  const part = name => box.querySelector(`.cells-${name}`);
  const row = (values, marked) => {
    const line = document.createElement("tr");
    for (const [place, text] of values) {
      const cell = Object.assign(line.insertCell(), { textContent: text, className: marked?.has(place) ? "read" : "" });
      cell.dataset.place = place;
      cell.dataset.row = Math.floor(text / said.size.at(-1)); // of the first tensor, as the plot above colors them
    }
    return line;
  };
  let x = first(), code = "x";
  const show = message => {
    const read = places(x), width = x.size.at(-1);
    const values = read.map(place => [place, x.memory[place]]);
    part("code").textContent = `x = torch.arange(12).reshape${tuple(said.size)}` + (code === "x" ? "" : `;  x = ${code}`);
    part("tensor").replaceChildren(...Array.from({ length: read.length / width }, (_v, line) =>
      row(values.slice(line * width, (line + 1) * width))));
    part("memory").replaceChildren(row(x.memory.map((value, place) => [place, value]), new Set(read)));
    const facts = [`.shape ${tuple(x.size)}`, `.stride() ${tuple(x.stride)}`, `.storage_offset() ${x.offset}`,
      `.is_contiguous() ${isContiguous(x) ? "True" : "False"}`];
    part("facts").replaceChildren(...facts.flatMap(fact => [Object.assign(document.createElement("code"), { textContent: fact }), " "]));
    part("said").textContent = message ?? (x.copied ? said.copied : said.shares);
    part("said").classList.toggle("raised", Boolean(message));
    for (const button of box.querySelectorAll("button[data-call]")) button.disabled = !calls[button.dataset.call][0](x);
  };
  const button = (textContent, onclick) =>
    part("calls").appendChild(Object.assign(document.createElement("button"), { type: "button", textContent, onclick }));
  for (const [call, [, apply]] of Object.entries(calls)) {
    button(`x${call}`, () => {
      const result = apply(x);
      if (typeof result === "string") return show(result);
      [x, code] = [result, code + call];
      show();
    }).dataset.call = call;
  }
  button(said.again, () => { [x, code] = [first(), "x"]; show(); });
  // A number and its cell in memory are marked together.
  const point = event => {
    const { place } = event.target.closest("td")?.dataset ?? {};
    for (const cell of box.querySelectorAll("td"))
      cell.classList.toggle("pointed", event.type !== "mouseleave" && cell.dataset.place === place);
  };
  for (const table of [part("tensor"), part("memory")])
    for (const kind of ["mouseover", "mouseleave"]) table.addEventListener(kind, point);
  show();
}
