// The page "Type an expression": its lines become a graph with all its numbers. `expressions` (language.js) reads the lines, dagre says
// where the cards are, and the figure is drawn as conf/drawgrad/drawing.py draws, played and changed as all figures are.
(() => {
  const form = document.querySelector("form.typed"), area = form.querySelector("textarea");

  // -- Numbers, as in all figures ----------------------------------------------------------------------------------
  const fill = (values, moved, text) => graphLive.filler({ values, moved })(text);
  const write = number => fill({ x: [number] }, {}, "⟦vx⟧");
  const writeSum = terms => fill({}, terms.map(term => [term]), `⟦u${[...terms.keys()]}⟧`);
  // 0.25, .25, 1/4 with either minus
  const read = text => {
    const [over, under = 1] = text.replace(/[−–]/g, "-").replace(",", ".").split("/").map(part => part.trim() ? Number(part) : NaN);
    return over / under;
  };
  const isClose = (given, right) => Math.abs(given - right) <= 1e-6 * Math.abs(right) + 1e-9; // of whole numbers

  // -- Cards: what stands on each, and its size ---------------------------------------------------------------------
  const SIZES = { name: 14, operation: 12, value: 12.5, gradient: 12.5, small: 12, "small gradient": 12 };
  const ROOM = { value: 8, gradient: 13 }, PADDING = 9, LONGEST = 44; // ROOM: characters that a number may have when a leaf is changed
  const measure = (role, count) => count * SIZES[role] * 0.602, GAP = measure("name", 1);
  const linesOf = ({ kind, names = [], is_root, operation, value, gradient, terms = [] }) => {
    if (kind === "constant") return [[["small", "constant"]]];
    const about = [kind === "leaf" && "leaf", is_root && "root", operation].filter(Boolean).join(" · ");
    return [
      [["name", names.join(", ")], ["operation", about]],
      [["value", value === undefined ? "" : write(value)]],
      [["gradient", gradient === undefined ? "" : `grad ${write(gradient)}`]],
      [["small gradient", terms.length > 4 ? `= sum over ${terms.length} edges` : terms.length ? `= ${writeSum(terms)}` : ""]],
    ].map(line => line.filter(([, text]) => text)).filter(line => line.length);
  };
  const boxOf = card => {
    const cut = ([role, text]) => [role, text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text];
    const lines = linesOf(card).map(line => line.map(cut));
    const widths = lines.map(line => line.reduce((sum, [role, text]) => sum + measure(role, text.length) + GAP, -GAP));
    widths.push(...lines.flat().map(([role]) => measure(role, ROOM[role] ?? 0)));
    const line = card.kind === "leaf" ? 20 : 17;
    return { lines, line, width: Math.max(...widths) + 2 * PADDING, height: lines.length * line + 13 };
  };

  // PyTorch keeps the gradient of a leaf, and the value of what has a name. A reader sees both on every card, and NaN too.
  const complete = text => {
    const built = expressions.build(text);
    if (built.error) return built;
    const { graph: { cards, edges }, said: { steps, cards: notes, live } } = built, found = graphLive.compute(live, {});
    const now = text => fill(found.values, found.moved, text);
    for (const at in live.texts) steps[at].text = now(live.texts[at]);
    for (const at in live.moved) steps[at].moved = live.moved[at].map(now);
    for (const at in live.got) for (const key in live.got[at]) steps[at].got[key] = now(live.got[at][key]);
    const last = Object.fromEntries(cards.map(({ key, backward_at }) => [key, backward_at]));
    for (const card of cards.filter(({ kind }) => kind !== "constant")) {
      const { key } = card, [value] = found.values[key], [gradient] = found.gradients[key];
      const leaving = edges.filter(({ tail }) => tail === key).sort((one, other) => last[one.head] - last[other.head]);
      const sources = leaving.length ? leaving.map(({ head, input }) => `${head}.${input}`) : [`r${key}`];
      Object.assign(card, { value, gradient, terms: sources.length > 1 ? sources.map(one => found.moved[one][0]) : [] });
      const sum = sources.length > 1 && sources.length < 5 ? `⟦u${sources}⟧` : "", total = `⟦t${sources}⟧`;
      const said = [["value", `⟦v${key}⟧`], ["gradient", sum ? `${sum} = ${total}` : total]];
      const sends = notes[key].filter(([title]) => /^sends/.test(title)), about = notes[key].filter(([title]) => !/^(sends|value|gradient)/.test(title));
      notes[key] = [...about, ...said.map(([title, text]) => [title, now(text)]), ...sends];
      live.notes[key] = { [about.length]: said[0][1], [about.length + 1]: said[1][1] };
      if (sum) live.terms[key] = `= ${sum}`;
      for (const list of [live.values, live.gradients]) if (!list.includes(`${key}`)) list.push(`${key}`);
    }
    return { ...built, found };
  };

  // -- Layout -------------------------------------------------------------------------------------------------------
  const factorOf = ({ derivative }) => derivative === undefined ? "" : `× ${write(derivative)}`;
  // Data flows from left to right ("LR"), with numbers above their edges, or from top to bottom ("TB"), with numbers beside them. Where an
  // edge bends, its number stands on the outer side. The first leaf is before the last.
  const layOut = ({ cards, edges }, boxes, rankdir) => {
    const across = rankdir === "LR", side = across ? "y" : "x";
    const arrange = sides => {
      const net = new dagre.graphlib.Graph({ multigraph: true });
      net.setGraph({ rankdir, nodesep: across ? 18 : 12, edgesep: 12, ranksep: across ? 26 : 22 });
      for (const { key } of cards) net.setNode(key, { width: boxes[key].width, height: boxes[key].height });
      edges.forEach((edge, at) => {
        const width = measure("small", factorOf(edge).length) + 6;
        net.setEdge(edge.tail, edge.head, { width, height: 16, labelpos: sides[at], labeloffset: across ? 3 : 2 }, at);
      });
      dagre.layout(net);
      return [net.graph(), cards.map(({ key }) => net.node(key)), edges.map(({ tail, head }, at) => net.edge(tail, head, at))];
    };
    const [{ width }, boxed, first] = arrange(edges.map(() => "l")), leaves = boxed.filter((_box, at) => cards[at].kind === "leaf");
    const flips = leaves[0][side] > leaves.at(-1)[side];
    const finish = () => {
      const [size, middles, routes] = arrange(first.map(({ points }) => {
        const bend = points[0][side] + points.at(-1)[side] - 2 * points[points.length >> 1][side];
        return (Math.abs(bend) < 4 ? across !== flips : bend > 0) ? "l" : "r";
      }));
      const place = ({ x, y }) => !flips ? { x, y } : across ? { x, y: size.height - y } : { x: size.width - x, y };
      const places = Object.fromEntries(cards.map(({ key }, at) => [key, place(middles[at])]));
      return { ...size, upright: !across, cards: places, edges: routes.map(route => ({ points: route.points.map(place), ...place(route) })) };
    };
    return { width, finish };
  };
  // The B-spline that has these corners, as Bézier curves.
  const curve = points => {
    const all = [points[0], points[0], ...points, points.at(-1), points.at(-1)];
    const mix = (at, ...parts) => ["x", "y"].map(side => (parts.reduce((sum, part, on) => sum + part * all[at + on][side], 0) / 6).toFixed(1));
    return `M${mix(0, 6)}C${[...points, 0].map((_point, at) => [mix(at, 0, 4, 2), mix(at, 0, 2, 4), mix(at + 1, 1, 4, 1)].join(" ")).join(" ")}`;
  };

  // -- Drawing ------------------------------------------------------------------------------------------------------
  const make = (tag, attributes, ...parts) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, typeof value === "number" ? +value.toFixed(1) : value);
    made.append(...parts);
    return made;
  };
  const drawEdge = (edge, number, { points, x, y }, isDotted) => {
    const tip = points.at(-1), before = points.at(-2), far = Math.hypot(tip.x - before.x, tip.y - before.y) || 1;
    const [along, aside] = [(tip.x - before.x) / far, (tip.y - before.y) / far];
    const base = { x: tip.x - 11.4 * along, y: tip.y - 11.4 * aside };
    const corners = [tip, ...[3.6, -3.6].map(wide => ({ x: base.x - wide * aside, y: base.y + wide * along }))];
    const about = { "data-edge": number, "data-from": edge.tail, "data-to": edge.head }, text = factorOf(edge);
    return make("g", { class: isDotted ? "g-edge g-dotted" : "g-edge", ...about },
      make("path", { d: curve([...points.slice(0, -1), base]) }),
      make("polygon", { points: corners.map(corner => `${corner.x.toFixed(1)},${corner.y.toFixed(1)}`).join(" ") }),
      ...(text ? [make("text", { class: "g-gradient", x, y: y + 4, "text-anchor": "middle", "font-size": 12 }, text)] : []));
  };
  const drawCard = (card, { lines, line, width, height }, middle) => {
    const left = middle.x - width / 2, top = middle.y - height / 2;
    const texts = lines.flatMap((parts, number) => {
      let x = left + PADDING;
      return parts.map(([role, text]) => {
        const place = { x, y: top + PADDING + 9 + number * line };
        x += measure(role, text.length) + GAP;
        return make("text", { class: `g-${role.replace(" ", " g-")}`, ...place, "font-size": SIZES[role] }, text);
      });
    });
    return make("g", { class: `g-card g-${card.is_root ? "root" : card.kind}`, "data-card": card.key },
      make("rect", { x: left, y: top, width, height, rx: 7 }), ...texts);
  };
  // From left to right where that fits into `room`, else from top to bottom.
  const draw = (graph, label, room) => {
    const boxes = Object.fromEntries(graph.cards.map(card => [card.key, boxOf(card)]));
    const across = layOut(graph, boxes, "LR"), down = across.width + 4 <= room ? across : layOut(graph, boxes, "TB");
    const layout = (down.width < across.width ? down : across).finish();
    const [width, height] = [layout.width, layout.height].map(size => Math.ceil(size) + 4);
    const constants = new Set(graph.cards.filter(({ kind }) => kind === "constant").map(({ key }) => key));
    const size = { viewBox: `-2 -2 ${width} ${height}`, width, height };
    return make("svg", { role: "img", "aria-label": label, class: layout.upright ? "graph graph-upright" : "graph", ...size },
      ...graph.edges.map((edge, number) => drawEdge(edge, number, layout.edges[number], constants.has(edge.tail))),
      ...graph.cards.map(card => drawCard(card, boxes[card.key], layout.cards[card.key])));
  };

  // -- A figure of what was built, in the place of the one that is there ----------------------------------------------
  const figure = document.querySelector("figure.graph-figure:has(.graph-bar)"), caption = figure.querySelector(".caption-text").textContent;
  const controls = [...figure.querySelectorAll(".graph-bar, .graph-now, .graph-whose")].map(part => part.cloneNode(true));
  controls[2].firstElementChild.textContent = "Drag a number on a leaf, or press the arrow keys on it, and the others follow.";
  controls[2].querySelector("button").textContent = "Back to the numbers before";
  const roomOf = scroll => scroll.clientWidth - 2 * parseFloat(getComputedStyle(scroll).paddingLeft);
  const show = (place, { graph, said, found }, name) => {
    const old = place.querySelector(":scope > div"), scroll = old.querySelector(".graph-scroll");
    old.querySelector(".graph-playing")?.click();
    const fresh = Object.assign(document.createElement("div"), { id: name }), data = document.createElement("script");
    Object.assign(data, { type: "application/json", textContent: JSON.stringify({ ...said, name }) });
    scroll.replaceChildren(draw(graph, caption, roomOf(scroll)));
    fresh.append(scroll, ...controls.map(part => part.cloneNode(true)), data);
    const slider = fresh.querySelector("input");
    Object.assign(slider, { max: said.steps.length - 1, value: said.steps.length - 1 });
    fresh.querySelector(".graph-link").hash = name;
    old.replaceWith(fresh);
    const [graphed, go] = graphPlayer.start(fresh);
    graphed.computed = graphed.followed = found;
    graphLive.enliven(fresh, said.live);
    return go;
  };

  // -- The editor: what is typed is drawn after a short pause, and is in the address ----------------------------------
  const marks = form.querySelector(".typed-marks"), told = form.querySelector("#typed-error"), link = form.querySelector(".typed-link");
  const code = document.querySelector(".typed-program pre");
  const paint = program => {
    const kinds = [[/^#/, "c1"], [/^"/, "s1"], [/^[TF]/, "kc"], [/^\d/, "mf"], [/^print/, "nb"], [/^/, "kn"]];
    const word = text => Object.assign(document.createElement("span"), { className: kinds.find(([kind]) => kind.test(text))[1], textContent: text });
    const parts = program.split(/(#.*|"[^"]*"|\b(?:import|print|True|False|\d[\d.]*(?:e[+-]?\d+)?)\b)/);
    code.replaceChildren(...parts.map((text, at) => at % 2 ? word(text) : text));
  };
  const fit = () => { area.rows = Math.max(3, area.value.split("\n").length); };
  const share = () => {
    const query = area.value === area.defaultValue ? location.pathname : `?${new URLSearchParams({ expression: area.value })}`;
    history.replaceState(null, "", query + location.hash);
  };
  // The characters of an error are underlined below the text, which is transparent.
  const mark = error => {
    const { message = "", from = 0, to = 0 } = error ?? {}, text = area.value, end = Math.max(to, from + 1);
    const wrong = Object.assign(document.createElement("u"), { textContent: text.slice(from, end).trimEnd() || " " });
    marks.replaceChildren(...(error ? [text.slice(0, from), wrong, text.slice(end)] : []));
    marks.scrollLeft = area.scrollLeft;
    told.textContent = error ? `Line ${text.slice(0, from).split("\n").length}: ${message}` : "";
    area.ariaInvalid = `${Boolean(error)}`;
    figure.inert = Boolean(error);
  };
  let timer, shown;
  const update = () => {
    clearTimeout(timer);
    share();
    const built = complete(area.value);
    mark(built.error);
    if (built.error) return;
    const { names, value } = built.graph.cards.find(({ is_root }) => is_root);
    told.textContent = `${names[0]} = ${write(value)}`;
    figure.querySelector(".figure-alone")?.remove(); // it leads to the figure of the build, and graph_code.js knows the lines of that one
    Object.assign(code, { onpointermove: null, onpointerdown: null, className: "", style: "" });
    paint(built.program);
    shown = show(figure, built, "typed");
  };
  const type = text => {
    area.value = text;
    fit();
    update();
  };
  // A leaf has another number: its line and the address say it too.
  const follow = ({ target: { graph } }) => {
    if (graph?.computed === graph?.followed) return;
    const { values } = graph.followed = graph.computed;
    const leaves = expressions.build(area.value).leaves ?? [];
    for (const { name, value, from, to } of leaves.sort((one, other) => other.from - one.from)) { // the last first: no place moves
      const [key] = Object.entries(graph.notes).find(([, [[, names]]]) => names.split(", ")[0] === name) ?? [], number = values[key]?.[0] ?? value;
      if (Object.is(Math.fround(number), Math.fround(value))) continue;
      const [head, tail] = [area.value.slice(0, from), area.value.slice(to)];
      const written = `${+number.toPrecision(7)}`.replace("NaN", "torch.nan").replace("Infinity", "torch.inf");
      area.value = head + written + (/tensor\(\s*$/.test(head) && /^-?\d+$/.test(written) ? ".0" : "") + tail; // torch.tensor(2) is no float
    }
    const { program, error } = expressions.build(area.value);
    if (!error) paint(program);
    told.textContent = "";
    clearTimeout(timer);
    timer = setTimeout(share, 200);
  };
  figure.addEventListener("graph-cards", follow, true);
  area.addEventListener("input", () => {
    fit();
    marks.replaceChildren();
    clearTimeout(timer);
    timer = setTimeout(() => {
      share();
      if (!expressions.build(area.value).error) return update();
      timer = setTimeout(update, 500); // a line that is not finished is no error yet
    }, 200);
  });
  area.addEventListener("scroll", () => { marks.scrollLeft = area.scrollLeft; });
  // The browser's Back leads from an example to what was typed before.
  for (const example of form.querySelectorAll("[data-text]")) example.onclick = () => {
    share();
    history.pushState(null, "", location.href);
    type(example.dataset.text);
  };
  const findAsked = () => new URLSearchParams(location.search).get("expression");
  addEventListener("popstate", () => {
    const text = findAsked() ?? area.defaultValue;
    if (text !== area.value) type(text);
  });
  link.hidden = !navigator.clipboard;
  link.onclick = async () => {
    share();
    await navigator.clipboard.writeText(location.href.split("#")[0]);
    link.textContent = "Copied";
    setTimeout(() => { link.textContent = "Copy link"; }, 2000);
  };
  matchMedia("(max-width: 46em)").addEventListener("change", () => { if (shown) update(); });
  form.querySelector("fieldset").disabled = false;
  const asked = findAsked(), [, step] = location.hash.match(/^#typed\.?(\d*)$/) ?? [];
  if (asked !== null || step !== undefined) {
    type(asked ?? area.value);
    if (shown && step) shown(+step);
    if (step !== undefined) figure.scrollIntoView({ block: "center", behavior: "instant" });
  }

  // -- The exercise ---------------------------------------------------------------------------------------------------
  const part = name => document.querySelector(`.exercise-${name}`), frame = part("figure"), fields = part("fields"), result = part("result");
  let exercise; // what was built, its numbers, and for each tensor that is asked for: name, field, mark, right answer
  const give = () => {
    const { text, questions } = expressions.makeExercise(Math.floor(Math.random() * 2 ** 31)), built = complete(text);
    const { cards, edges } = built.graph, bareCards = cards.map(card => ({ ...card, gradient: undefined, terms: [] }));
    for (const box of [part("text"), frame, part("form")]) box.hidden = false;
    part("text").textContent = text;
    const scroll = frame.querySelector(".graph-scroll"), bare = Object.assign(document.createElement("div"), { id: "asked" });
    frame.querySelector(":scope > div").replaceWith(bare);
    bare.append(scroll);
    scroll.replaceChildren(draw({ cards: bareCards, edges }, "The graph of the exercise, without gradients", roomOf(scroll)));
    const first = cards.filter(({ key }) => questions.includes(key)).sort((one, other) => one.backward_at - other.backward_at);
    exercise = { ...built, asked: first.map(card => {
      const label = document.createElement("label"), field = document.createElement("input"), mark = document.createElement("output");
      mark.ariaLive = "off"; // the result is said
      Object.assign(field, { autocomplete: "off", size: 7, oninput: () => { mark.value = ""; field.removeAttribute("aria-invalid"); } });
      label.append(`${card.names[0]}.grad `, field, mark);
      return { key: card.key, name: card.names[0], label, field, mark, right: built.found.gradients[card.key][0] };
    }) };
    fields.replaceChildren(...exercise.asked.map(({ label }) => label));
    result.textContent = `Fill in ${first.length} gradients, then check. Each is a whole number.`;
  };
  // What would have given the right number, along the edges by which gradients come back to a card.
  const explain = ({ key, name, field }) => {
    const { graph, said, found } = exercise, given = read(field.value);
    const leaving = graph.edges.map((edge, number) => ({ ...edge, number })).filter(({ tail }) => tail === key);
    const paths = leaving.map(({ head, number, derivative: factor }) => {
      const [arrives] = found.gradients[head];
      return { from: said.cards[head][0][1], number, arrives, factor, gives: arrives * factor };
    });
    const taken = paths.length > 1 ? paths.findIndex(({ gives }) => isClose(given, gives)) : -1; // of several, the one that was found
    const wrong = paths.filter((_path, at) => at !== taken);
    for (const { number } of wrong) frame.querySelector(`[data-edge="${number}"]`).classList.add("g-active");
    if (!paths.length) return `Backward starts at ${name}, with the gradient 1.`;
    const along = wrong.map(({ from, arrives, factor }) =>
      `${write(arrives)} arrives at ${from}, and the edge from ${name} to ${from} has × ${write(factor)}`).join("; ");
    if (paths.length === 1) return `${along}. Multiply the two.`;
    const before = taken < 0 ? `${paths.length} edges lead back to ${name}.` : "Your number came along one edge only.";
    return `${before} ${along}. Multiply along each edge, then add: paths that meet add up.`;
  };
  const check = event => {
    event.preventDefault();
    frame.querySelectorAll(".g-edge.g-active").forEach(edge => edge.classList.remove("g-active"));
    const all = exercise.asked.length, wrong = exercise.asked.filter(({ field, mark, right }) => {
      const isRight = isClose(read(field.value), right);
      field.ariaInvalid = `${Boolean(field.value) && !isRight}`;
      mark.value = isRight ? "✓" : field.value ? "✗" : "";
      return !isRight;
    });
    result.textContent = !wrong.length ? `All ${all} right.`
      : `${all - wrong.length} of ${all} right. ${wrong[0].name}.grad: ${explain(wrong[0])}`;
  };
  const reveal = () => {
    show(frame, exercise, "asked");
    for (const { mark, right } of exercise.asked) mark.value = `= ${write(right)}`;
    result.textContent = "Play the figure to see where each gradient comes from.";
  };
  Object.assign(part("give"), { disabled: false, onclick: give });
  part("show").onclick = reveal;
  part("form").onsubmit = check;
})();
