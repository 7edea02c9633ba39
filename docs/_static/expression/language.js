// The language of the page "Type an expression": lines of text become the graph that PyTorch makes of them, all that a figure
// says of it, and the same program in PyTorch. Every number comes from graph_live.js. Tested against PyTorch (tests/expression).
(() => {
  const { compute, filler } = globalThis.graphLive;
  const MOST = 40; // operations: no figure has room for more
  const FUNCTIONS = [
    ["abs(x)", "x without its sign"], ["clamp(x, -1, 1)", "x, but no less than −1 and no more than 1"], ["cos(x)", "the cosine"],
    ["x.detach()", "the value of x as a constant: no gradient goes back"], ["exp(x)", "e to the power of x"],
    ["log(x)", "the natural logarithm"], ["max(x, y)", "the larger of the two"], ["min(x, y)", "the smaller of the two"],
    ["relu(x)", "x where it is positive, else 0"], ["sigmoid(x)", "1 / (1 + exp(-x))"], ["sin(x)", "the sine"],
    ["sqrt(x)", "the square root"], ["tanh(x)", "the hyperbolic tangent"], ["where(x > 0, x, y)", "x if the comparison holds, else y"],
  ].map(([example, says]) => ({ name: example.match(/(\w+)\(/)[1], example, says }));
  const NAMES = FUNCTIONS.map(one => one.name), COUNTS = { clamp: [2, 3], max: [2, 2], min: [2, 2], where: [3, 3] };
  // What backward of a node sends to its inputs, as conf/drawgrad/rules.py writes it.
  const RULES = Object.fromEntries(`
    AbsBackward0: grad * sign(a)           | AddBackward0: grad; grad              | ClampBackward1: grad * (a >= n) * (a <= m)
    CosBackward0: -grad * sin(a)           | DivBackward0: grad / b; -grad * a / b**2 | ExpBackward0: grad * y
    LogBackward0: grad / a                 | MulBackward0: grad * b; grad * a      | NegBackward0: -grad
    MaximumBackward0: grad * ((a > b) + (a == b) / 2); grad * ((a < b) + (a == b) / 2)
    MinimumBackward0: grad * ((a < b) + (a == b) / 2); grad * ((a > b) + (a == b) / 2)
    PowBackward0: grad * n * a**(n - 1)    | PowBackward1: grad * b * a**(b - 1); grad * y * log(a) | PowBackward2: grad * y * log(n)
    ReciprocalBackward0: -grad * y**2      | ReluBackward0: grad * (a > 0)         | RsubBackward1: -grad
    SigmoidBackward0: grad * y * (1 - y)   | SinBackward0: grad * cos(a)           | SqrtBackward0: grad / (2 * y)
    SubBackward0: grad; -grad              | TanhBackward0: grad * (1 - y**2)
    WhereBackward0: where(condition, grad, 0); where(condition, 0, grad)
  `.trim().split(/\s*[|\n]\s*/).map(line => line.split(": ")).map(([node, rules]) => [node, rules.split("; ")]));

  // -- Mistakes ---------------------------------------------------------------------------------------------------
  const fail = (message, { from, to }) => { throw Object.assign(new Error(message), { from, to }); };
  const countChanges = (a, b) => { // letters to change, to add, to leave out
    let row = [...Array(b.length + 1).keys()];
    for (const one of a) row = row.reduce((next, up, at) =>
      [...next, at ? Math.min(up + 1, next[at - 1] + 1, row[at - 1] + (b[at - 1] !== one)) : up + 1], []);
    return row.at(-1);
  };
  const suggest = (word, known) => {
    const [best] = known.map(one => [countChanges(word, one), one]).sort(([a], [b]) => a - b);
    return best?.[0] <= Math.max(1, word.length / 2) ? ` Did you mean “${best[1]}”?` : "";
  };

  // -- Tensors: each is computed when its operation is read, in Python’s order --------------------------------------
  // `inputs` are those of PyTorch’s node; `condition` is where’s; `from`: the leaves that it depends on.
  const give = (value, operation = "constant") => ({ operation, value, inputs: [], condition: [], numbers: [], from: [], names: [] });
  const record = (made, operation, inputs, numbers = [], condition = []) => {
    const all = [...inputs, ...condition], nodes = all.map(one => ["constant", 1, [], [], [one.value]]);
    nodes.push([shorten(operation), 1, [...all.keys()], [[0]], numbers]);
    const [value] = compute({ nodes: { ...nodes }, start: {}, backward: [] }, {}).values[all.length];
    const grad = operation.includes("Backward") && inputs.some(one => one.grad);
    const tensor = { ...give(value, operation), inputs, condition, numbers, grad, from: [...new Set(all.flatMap(one => one.from))] };
    tensor.number = made.push(tensor);
    return tensor;
  };
  const shorten = operation => operation.replace(/Backward0$/, "");

  // -- Reading ----------------------------------------------------------------------------------------------------
  const TOKEN = new RegExp(String.raw`(?<space>\s+|#.*)|(?<number>(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)|(?<name>[a-zα-ω][\wα-ω]*)`
    + String.raw`|(?<sign>\*\*|[<>=!]=|[-+*/()<>=,.−×·])|(?<other>.)`, "giu");
  const TYPED = { "−": "-", "×": "*", "·": "*" }; // as figures write them
  const COMPARISONS = ["<", "<=", ">", ">=", "==", "!="];
  const SPECIAL = { inf: Infinity, infinity: Infinity, nan: NaN };
  const RESERVED = ("and as assert async await break class continue def del elif else except finally for from global if import in "
    + "is lambda nonlocal not or pass print raise return torch try while with yield None True False inf nan").split(" ");
  const readTokens = (line, start) => [...line.matchAll(TOKEN)].map(found => {
    const kind = Object.keys(found.groups).find(key => found.groups[key] !== undefined), from = start + found.index;
    return { kind, text: TYPED[found[0]] ?? found[0], from, to: from + found[0].length };
  }).filter(token => token.kind === "other"
    ? fail(token.text === "^" ? "Write ** for a power." : `“${token.text}” has no meaning in an expression.`, token) : token.kind !== "space");
  const span = (first, last, more) => ({ from: first.from, to: last.to, ...more });
  const isPlain = value => Number.isFinite(value) && !Object.is(value, -0) && Math.abs(value) <= 2 ** 53;
  // Numbers in Python: none is an integer that is too large, or loses the sign of its zero.
  const number = (value, text, place) => ({ ...place, of: give(value), isNumber: true,
    text: isPlain(value) || !Number.isFinite(value) ? text : value ? value.toExponential() : "-0.0" });
  const asFloat = item => item.isNumber && isPlain(item.of.value) && Number.isInteger(item.of.value)
    ? { ...item, text: item.of.value.toFixed(1) } : item;
  const asTensor = item => item.isNumber ? { ...item, isNumber: false, text: `torch.tensor(${asFloat(item).text})` } : item;
  const use = item => item.isCondition ? fail("A comparison can only be the first argument of where.", item) : item;

  // One line, or what follows its `name =`: {text: in Python, of: the tensor or number, from, to}.
  const readLine = (tokens, known, later, made) => {
    const end = { kind: "end", text: "", from: tokens.at(-1).to, to: tokens.at(-1).to };
    let at = tokens[1]?.text === "=" ? 2 : 0;
    const now = () => tokens[at] ?? end, take = () => tokens[at++] ?? end;
    const is = (...signs) => now().kind === "sign" && signs.includes(now().text);
    const make = (place, text, of, where = place) => made.length > MOST
      ? fail(`There are more than ${MOST} operations.`, where) : { ...span(place, place), text, of };
    const readComparison = () => {
      const left = readChain(0);
      if (!is(...COMPARISONS)) return left;
      const a = asTensor(use(left)), sign = take().text, b = use(readChain(0));
      if (is(...COMPARISONS)) fail("Write one comparison at a time.", now());
      return span(a, b, { text: `${a.text} ${sign} ${b.text}`, of: record(made, sign, [a.of, b.of]), isCondition: true });
    };
    const readChain = level => {
      if (level === 2) return readSigned();
      let left = readChain(level + 1);
      while (is(..."+-*/".slice(2 * level, 2 * level + 2))) left = combine(left, take(), readChain(level + 1));
      return left;
    };
    const readSigned = () => {
      if (!is("+", "-")) return readPower();
      const sign = take(), what = use(readSigned()), place = span(sign, what);
      if (sign.text === "+") return { ...what, ...place, isName: false };
      return what.isNumber ? number(-what.of.value, `-${what.text}`, place)
        : make(place, `-${what.text}`, record(made, "NegBackward0", [what.of]), sign);
    };
    const readPower = () => {
      let base = readOperand();
      while (is(".")) base = take() && readCall(take(), asTensor(use(base)));
      return is("**") ? combine(base, take(), readSigned()) : base;
    };
    const combine = (a, { text: sign, ...where }, b) => {
      const [x, y] = [use(a).of, use(b).of], text = `${a.text} ${sign} ${b.text}`, place = span(a, b);
      const node = (name, ...rest) => record(made, name, ...rest), both = b.isNumber || !a.isNumber ? [x, y] : [y, x];
      if (a.isNumber && b.isNumber) {
        const value = { "+": x.value + y.value, "-": x.value - y.value, "*": x.value * y.value, "/": x.value / y.value, "**": x.value ** y.value }[sign];
        return Number.isFinite(value) ? number(value, text, place) : fail(`“${text}” is no finite number.`, place);
      }
      return make(place, text, {
        "+": () => node("AddBackward0", both),
        "*": () => node("MulBackward0", both),
        "-": () => a.isNumber ? node("RsubBackward1", [y], [x.value]) : node("SubBackward0", [x, y]),
        "/": () => a.isNumber ? node("MulBackward0", [node("ReciprocalBackward0", [y]), x]) : node("DivBackward0", [x, y]),
        "**": () => b.isNumber ? node("PowBackward0", [x], [y.value])
          : a.isNumber ? node("PowBackward2", [y], [x.value]) : node("PowBackward1", [x, y]),
      }[sign](), where);
    };
    const readOperand = () => {
      const before = tokens[at - 1], token = take(), { kind, text } = token, special = SPECIAL[text.toLowerCase()];
      if (text === "(") {
        const inner = readComparison();
        return { ...inner, ...span(token, close(token)), text: `(${inner.text})`, isName: false };
      }
      if (special !== undefined) return number(special, special ? "torch.inf" : "torch.nan", token);
      if (kind === "number") return Number(text) < Infinity
        ? number(Number(text), /^\d+$/.test(text) ? `${Number(text)}` : text, token) : fail(`“${text}” is too large.`, token);
      if (token === end) fail(`Something is missing after “${before.text}”.`, before);
      if (kind !== "name") fail(`Something is missing before “${text}”.`, token);
      if (text === "torch" && is(".")) return take() && readCall(take());
      if (is("(")) return readCall(token);
      if (known.has(text)) return { ...span(token, token), text, of: known.get(text), isName: true };
      fail(later.has(text) ? `“${text}” is used before it has a value.` : `“${text}” has no value.${suggest(text, [...known.keys()])}`, token);
    };
    const close = open => is(")") ? take() : now() === end ? fail("This parenthesis is never closed.", open) : failAt(now());
    const failAt = token => fail({ ")": "This parenthesis was never opened.", ",": "A comma can only stand between the arguments of a function.",
      "=": "A line can only have one =." }[token.text] ?? `An operator is missing before “${token.text}”.`, token);
    const readCall = (name, self) => {
      if (!NAMES.includes(name.text)) fail(`There is no function “${name.text}”.${suggest(name.text, NAMES)}`, name);
      if (!is("(")) fail(`After “${name.text}” its arguments come in parentheses.`, name);
      const open = take(), given = self ? [self] : [];
      for (let more = !is(")"); more; more = is(",") && take()) {
        const keyword = tokens[at + 1]?.text === "=" ? take() : null;
        given.push(keyword ? take() && { ...readComparison(), keyword } : readComparison());
      }
      const place = span(self ?? name, close(open)), { of, items } = call(name.text, given, place);
      const write = list => list.map(one => `${one.keyword ? `${one.keyword.text}=` : ""}${one.text}`).join(", ");
      const isMethod = self || name.text === "detach", [first, ...rest] = items;
      return make(place, isMethod ? `${first.text}.${name.text}(${write(rest)})` : `torch.${name.text}(${write(items)})`, of, name);
    };
    const call = (name, given, place) => {
      const [least, most] = COUNTS[name] ?? [1, 1], wanted = least === most ? least : `${least} or ${most}`;
      if (given.length < least || given.length > most)
        fail(`${name} takes ${wanted} argument${most > 1 ? "s" : ""}, not ${given.length}.`, place);
      const odd = given.find(({ keyword }, which) => keyword && !(name === "clamp" && which && ["min", "max"].includes(keyword.text)));
      if (odd) fail(`${name} has no argument “${odd.keyword.text}”.`, odd.keyword);
      if (name === "where") {
        const [condition, ...items] = given;
        if (!condition.isCondition) fail("The first argument of where is a comparison, such as x > 0.", condition);
        const [a, b] = items.map(use).map(asFloat);
        return { items: [condition, a, b], of: record(made, "WhereBackward0", [a.of, b.of], [], [condition.of]) };
      }
      if (name === "clamp") {
        const bounds = { min: -Infinity, max: Infinity }, x = asTensor(use(given[0]));
        given.slice(1).forEach((one, which) => {
          if (!one.isNumber) fail("A bound of clamp is a number.", one);
          bounds[one.keyword?.text ?? ["min", "max"][which]] = one.of.value;
        });
        return { items: [x, ...given.slice(1)], of: record(made, "ClampBackward1", [x.of], [bounds.min, bounds.max]) };
      }
      const items = given.map(use).map(asTensor), node = { max: "Maximum", min: "Minimum" }[name] ?? name[0].toUpperCase() + name.slice(1);
      return { items, of: record(made, name === "detach" ? "take" : `${node}Backward0`, items.map(one => one.of)) };
    };
    const item = use(readComparison());
    return now() === end ? item : failAt(now());
  };

  const readProgram = text => {
    const known = new Map(), made = [], leaves = [], program = ["import torch", ""];
    let start = 0;
    const lines = text.split("\n").map(line => readTokens(line, (start += line.length + 1) - line.length - 1)).filter(line => line.length);
    const later = new Set(lines.filter(([, sign]) => sign?.text === "=").map(([name]) => name.text)), all = { from: 0, to: text.length };
    if (!lines.length) fail("Write a line such as x = 2.", all);
    let root, rootName;
    for (const line of lines) {
      const [first, sign] = line, isNamed = sign?.text === "=";
      if (isNamed && first.kind !== "name") fail("Only a name can get a value.", first);
      if (isNamed && RESERVED.includes(first.text)) fail(`“${first.text}” has a meaning in Python: take another name.`, first);
      if (isNamed && known.has(first.text)) fail(`“${first.text}” has a value already: take another name.`, first);
      if (!isNamed && line !== lines.at(-1)) fail("Only the last line can do without a name and =.", span(first, line.at(-1)));
      const item = readLine(line, known, later, made), isLeaf = isNamed && item.isNumber;
      rootName = isNamed ? first.text : item.isName ? item.text : ["result", "result_", "result__"].find(name => !known.has(name));
      root = isLeaf ? { ...item.of, operation: "leaf", grad: true } : item.of;
      if (isLeaf) root.from = leaves[leaves.push(root) - 1] && [root];
      if (!known.has(rootName)) {
        program.push(`${rootName} = ${isLeaf ? `torch.tensor(${asFloat(item).text}, requires_grad=True)` : asTensor(item).text}`);
        root.names.push(rootName);
      }
      known.set(rootName, root);
    }
    if (!leaves.length) fail("Nothing requires a gradient: begin with a line such as x = 2.", all);
    if (!root.grad) fail("This depends on no leaf that a gradient can go back to.", span(lines.at(-1)[0], lines.at(-1).at(-1)));
    program.push("", `${rootName}.backward()`, ...leaves.map(({ names: [name] }) => `print(${name}.grad)`), "");
    return { root, program: program.join("\n") };
  };

  // -- The graph, as conf/drawgrad/read.py reads it -----------------------------------------------------------------
  const makeGraph = root => {
    const order = [], visit = one => {
      if (!one.grad || order.includes(one)) return;
      one.inputs.forEach(visit);
      order.push(one);
    };
    visit(root);
    // The engine takes a leaf as soon as all has arrived, else the node that forward recorded last.
    const called = [], ready = [root], missing = order.flatMap(one => one.inputs), rank = one => one.number ?? Infinity;
    while (ready.length) {
      const next = ready.reduce((best, one) => rank(one) > rank(best) ? one : best);
      called.push(...ready.splice(ready.indexOf(next), 1));
      for (const one of next.inputs) {
        missing.splice(missing.indexOf(one), 1);
        if (one.grad && !missing.includes(one)) ready.push(one);
      }
    }
    const isLeaf = one => one.operation === "leaf", computed = order.filter(one => !isLeaf(one));
    const keys = new Map(order.map((one, key) => [one, key])), nodes = {}, edges = [], put = (key, ...instruction) => {
      while (!instruction.at(-1).length) instruction.pop();
      nodes[key] = instruction;
    };
    let fresh = order.length;
    const forward = computed.toSorted((a, b) => a.number - b.number);
    const write = x => Number.isFinite(x) ? x : `${x}`, fix = (key, one, kind) => put(key, kind, 1, [], [], [write(one.value)]);
    const moves = one => one.from.some(leaf => order.includes(leaf));
    // what a condition or a constant is computed from has no card, but follows the leaves too
    const keyOf = one => {
      if (one.operation === "take") return keyOf(one.inputs[0]);
      if (!keys.has(one)) {
        keys.set(one, fresh++);
        if (moves(one)) put(keys.get(one), shorten(one.operation), 1, [...one.inputs, ...one.condition].map(keyOf), [], one.numbers);
        else fix(keys.get(one), one, "constant");
      }
      return keys.get(one);
    };
    const blank = { operation: "", names: [], is_root: false, value: undefined, gradient: undefined, terms: [], forward_at: 0, backward_at: 0 };
    const constants = order.flatMap((one, head) => one.inputs.flatMap((tail, input) => {
      edges.push({ tail: tail.grad ? keys.get(tail) : fresh++, head, input, derivative: undefined });
      return tail.grad ? [] : { card: { ...blank, key: edges.at(-1).tail, kind: "constant", operation: "constant" }, head, of: tail };
    }));
    const cards = order.flatMap((one, key) => [...constants.filter(({ head }) => head === key).map(({ card }) => card), {
      ...blank, key, kind: isLeaf(one) ? "leaf" : "function", operation: isLeaf(one) ? "" : one.operation, names: one.names,
      is_root: one === root, value: one.names.length ? one.value : undefined, terms: [],
      forward_at: Math.max(0, forward.indexOf(one)), backward_at: called.indexOf(one),
    }]);
    order.forEach((one, key) => isLeaf(one) ? fix(key, one, "leaf") : put(key, shorten(one.operation), 1,
      [...edges.filter(({ head }) => head === key).map(({ tail }) => tail), ...one.condition.map(keyOf)], [], one.numbers));
    for (const { card: { key }, of } of constants)
      if (moves(of)) put(key, "take", 1, [keyOf(of)], [[0]]);
      else fix(key, of, "constant");
    const program = { float32: false, nodes, start: { [keys.get(root)]: [1] }, backward: called.filter(one => !isLeaf(one)).map(one => keys.get(one)) };
    const found = compute(program, {});
    for (const edge of edges) edge.derivative = found.local[`${edge.head}.${edge.input}`]?.[0];
    for (const card of cards) if (card.kind === "leaf") [card.gradient] = found.gradients[card.key];
    return { graph: { cards, edges }, program, values: found.values };
  };

  // -- What a figure says, as conf/drawgrad/play.py and player.py write it --------------------------------------------
  const LISTED = 6, ADDED = 5, TITLES = { leaf: "a leaf", constant: "needs no gradient", function: "" };
  const listSome = parts => [...parts.slice(0, LISTED), ...parts.length > LISTED ? ["…"] : []].join(", ");
  const isClose = (a, b) => a === b || Math.abs(a - b) <= Math.max(1e-4 * Math.max(Math.abs(a), Math.abs(b)), 1e-6) && Math.abs(a - b) < Infinity;
  const write = x => filler({ values: { x: [x] } })("⟦vx⟧");
  const describe = ({ graph: { cards, edges }, program, values }) => {
    const at = new Map(cards.map(card => [card.key, card])), root = cards.find(card => card.is_root), steps = [], moved = { [`r${root.key}`]: [1] };
    const bare = cards.map(card => card.names.join(", ") || card.operation), counted = {};
    const names = new Map(cards.map(({ key }, which) => [key, bare.filter(name => name === bare[which]).length < 2 ? bare[which]
      : `${bare[which]} #${counted[bare[which]] = (counted[bare[which]] ?? 0) + 1}`]));
    const enter = key => [...edges.keys()].filter(which => edges[which].head === key);
    const arrived = Object.fromEntries(cards.map(({ key }) => [key, key === root.key ? [`r${key}`] : []]));
    const add = sources => sources.reduce((sum, one) => sum + moved[one][0], 0);
    const step = (kind, card, along, to) => steps.push({ kind, cards: [card].flat().map(({ key }) => key), edges: along, card,
      to: to.map(key => ({ key, sources: [...arrived[key]] })) });
    step("leaves", cards.filter(card => card.kind !== "function"), [], []);
    for (const card of cards.filter(card => card.kind === "function").sort((a, b) => a.forward_at - b.forward_at))
      step("compute", card, enter(card.key), []);
    step("start", root, [], [root.key]);
    for (const card of cards.filter(card => card.kind !== "constant").sort((a, b) => a.backward_at - b.backward_at)) {
      if (card.kind === "leaf") {
        step("keep", card, [], [card.key]);
        continue;
      }
      const along = enter(card.key).filter(which => at.get(edges[which].tail).kind !== "constant"), whole = add(arrived[card.key]);
      for (const { tail, head, input, derivative } of along.map(which => edges[which])) {
        moved[`${head}.${input}`] = [whole * derivative];
        arrived[tail].push(`${head}.${input}`);
      }
      step("send", card, along, along.map(which => edges[which].tail));
    }
    const leaves = cards.filter(card => card.kind === "leaf"), fill = filler({ values, moved });
    const agrees = leaves.filter(({ key, gradient }) => isClose(add(arrived[key]), gradient)), isKnown = agrees.length === leaves.length;
    for (const card of agrees) if (arrived[card.key].length > 1) card.terms = arrived[card.key].map(one => moved[one][0]);

    const mention = ({ key, names: [name] }, isLive) => `${names.get(key)}${name ? ` = ${isLive ? `⟦v${key}⟧` : fill(`⟦v${key}⟧`)}` : ""}`;
    const writeMoment = ({ kind, cards: about, edges: along, card, to }, isLive) => {
      const put = (how, sources) => isLive ? `⟦${how}${sources}⟧` : isKnown ? fill(`⟦${how}${sources}⟧`) : null;
      const moment = { text: "", cards: about, edges: along, kind }, who = names.get(card.key);
      if (to.length || !["leaves", "compute"].includes(kind)) moment.got = Object.fromEntries(to.map(({ key, sources }) => [key, put("t", sources) ?? ""]));
      const kept = to.length && (isLive || !isKnown || card.gradient === undefined ? put("t", to[0].sources) : write(card.gradient));
      if (kind === "leaves") moment.text = `Before the first operation: ${listSome(card.filter(one => one.kind === "leaf").map(one => mention(one, isLive)))}.`;
      if (kind === "compute") moment.text = `Forward: ${card.names.length ? mention(card, isLive) : "a result without a name"}, recorded as ${card.operation}.`;
      if (kind === "start") moment.text = `Backward starts at ${who}${kept ? `, with the gradient ${kept}` : ""}.`;
      if (kind === "keep") moment.text = `Backward: AccumulateGrad adds what has arrived to ${who}.grad${kept ? `: ${kept}` : ""}.`;
      if (kind !== "send") return moment;
      const numbers = along.map(which => put("t", `${edges[which].head}.${edges[which].input}`)), tails = to.map(({ key }) => names.get(key));
      const sent = isLive || isKnown ? listSome(numbers.map((one, which) => `${one} to ${tails[which]}`)) : `a gradient to ${listSome([...new Set(tails)])}`;
      const sums = to.filter(({ key, sources }, which) => sources.length > 1 && to.findLastIndex(one => one.key === key) === which);
      moment.text = [`Backward: ${card.names.length ? `${card.operation} (${who})` : who} sends ${sent}.`, ...sums.map(({ key, sources }) => {
        const sum = sources.length > ADDED ? null : put("s", sources);
        return sum ? `At ${names.get(key)} they add up: ${sum}.` : `At ${names.get(key)}, ${sources.length} have arrived and are added.`;
      })].join(" ");
      if (isLive || isKnown) moment.moved = numbers;
      return moment;
    };
    const sumOf = ({ key, terms }, isLive) => 1 < terms.length && terms.length < ADDED ? isLive ? `⟦u${arrived[key]}⟧` : fill(`⟦u${arrived[key]}⟧`) : "";
    const listFacts = (card, isLive) => {
      const { key, kind, operation } = card, sum = sumOf(card, isLive), name = card.names[0], inputs = enter(key).map(which => edges[which]);
      const letters = Object.fromEntries([...inputs.map(({ tail, input }) => ["abc"[input], at.get(tail).names[0]]), ["y", name]]);
      const sends = card.names.length > 1 ? [] : inputs.filter(({ tail }) => at.get(tail).kind !== "constant").map(({ tail, input }) =>
        [`sends to ${names.get(tail)}`, RULES[operation][input].replace(/\b[abcy]\b(?!\()/g, letter => letters[letter] ?? letter)]);
      const gradient = kind === "leaf" ? `${sum && `${sum} = `}${isLive ? `⟦t${arrived[key]}⟧` : write(card.gradient)}` : "";
      const value = name ? isLive ? `⟦v${key}⟧` : fill(`⟦v${key}⟧`) : "";
      return [[TITLES[kind], names.get(key)], ["node", name ? operation : ""], ["value", value], ["gradient", gradient], ...sends].filter(([, text]) => text);
    };
    const pick = (list, what) => Object.fromEntries(list.map((one, key) => [key, what(one)]).filter(([, found]) => found));
    const whole = { text: "", cards: [], edges: [], kind: "whole" }, moments = [...steps.map(one => writeMoment(one, true)), whole];
    const facts = Object.fromEntries(cards.map(card => [card.key, listFacts(card)]));
    const by = (some, what) => Object.fromEntries(some.map(card => [card.key, what(card)]));
    const live = {
      ...program, edges: pick(edges, ({ head, input, derivative }) => derivative !== undefined && `${head}.${input}`),
      terms: by(leaves.filter(card => sumOf(card, true)), card => `= ${sumOf(card, true)}`), gradients: leaves.map(({ key }) => `${key}`),
      values: cards.filter(card => card.names.length).map(({ key }) => `${key}`), leaves: by(leaves, ({ key }) => `Value of ${names.get(key)}`),
      texts: pick(moments, ({ text }) => text.includes("⟦") && text), moved: pick(moments, one => one.moved), got: pick(moments, one => one.got),
      notes: by(cards, card => pick(listFacts(card, true), (fact) => fact[1].includes("⟦") && fact[1])),
      here: `Computed in your browser: ${names.get(root.key)} = ⟦v${root.key}⟧.`
        + (Object.values(program.nodes).some(([kind]) => kind === "constant") ? " Constants stay as they are." : ""),
    };
    return { name: "typed", steps: [...steps.map(one => writeMoment(one, false)), whole], cards: facts,
      words: { pause: "Pause", value: "value", gradient: "gradient", saved: "saved" }, live };
  };

  const build = text => {
    try {
      const { root, program } = readProgram(text), made = makeGraph(root), said = describe(made);
      const leaves = made.graph.cards.filter(card => card.kind === "leaf").map(({ key, names: [name], value }) => ({ key, name, value }));
      return { graph: made.graph, said, program, leaves };
    } catch (error) {
      if (error.from === undefined) throw error;
      return { error: { message: error.message, from: error.from, to: error.to } };
    }
  };

  // -- An exercise ------------------------------------------------------------------------------------------------
  const drawNumbers = seed => () => { // mulberry32
    seed = seed + 0x6D2B79F5 | 0;
    let x = Math.imul(seed ^ seed >>> 15, 1 | seed);
    x = x + Math.imul(x ^ x >>> 7, 61 | x) ^ x;
    return ((x ^ x >>> 14) >>> 0) / 2 ** 32;
  };
  const makeExercise = seed => {
    const draw = drawNumbers(seed), pick = list => list[Math.floor(draw() * list.length)];
    const isShort = x => Number.isInteger(x) && x && Math.abs(x) < 1000;
    for (;;) {
      const names = ["x", "y", "z"].slice(0, 2 + Math.round(draw())), lines = names.map(name => `${name} = ${pick([-3, -2, -1, 2, 3, 4])}`);
      for (const name of ["a", "b", "c", "d", "w"].slice(-3 - Math.floor(3 * draw()))) {
        const [one, other] = [pick(names.slice(-3)), pick(names)];
        lines.push(`${name} = ${pick([`${one} * ${other}`, `${one} * ${other}`, `${one} + ${other}`, `${one} - ${other}`, `${one}**2`, `relu(${one})`, `max(${one}, ${other})`])}`);
        names.push(name);
      }
      const text = lines.join("\n"), { graph, said } = build(text);
      if (!graph || graph.cards.length !== lines.length) continue;
      const { gradients, values } = compute(said.live, {}), numbers = [...Object.values(gradients), ...Object.values(values)].flat();
      const isShared = graph.cards.some(({ key }) => graph.edges.filter(({ tail }) => tail === key).length > 1);
      if (isShared && numbers.every(isShort)) return { text, questions: graph.cards.filter(card => !card.is_root).map(({ key }) => key) };
    }
  };
  globalThis.expressions = { build, FUNCTIONS, makeExercise };
})();
