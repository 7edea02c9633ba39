// The language of the page "Type an expression": lines of text become the graph that PyTorch makes of them, all that a figure
// says of it, and the same program in PyTorch. Every number comes from graph_live.js. Tested against PyTorch (tests/expression).
(() => {
  const { compute, filler } = globalThis.graphLive, MOST = 40; // operations: no figure has room for more
  let float32 = true; // as PyTorch computes if nothing else is said: exp(100) is inf
  const FUNCTIONS = [
    ["abs(x)", "x without its sign"], ["clamp(x, -1, 1)", "x, but no less than −1 and no more than 1"], ["cos(x)", "the cosine"],
    ["x.detach()", "the value of x as a constant: no gradient goes back"], ["exp(x)", "e to the power of x"],
    ["log(x)", "the natural logarithm"], ["max(x, y)", "the larger of the two"], ["min(x, y)", "the smaller of the two"], ["pow(x, y)", "x ** y"],
    ["relu(x)", "x where it is positive, else 0"], ["sigmoid(x)", "1 / (1 + exp(-x))"], ["sin(x)", "the sine"],
    ["sqrt(x)", "the square root"], ["tanh(x)", "the hyperbolic tangent"], ["where(x > 0, x, y)", "x if the comparison holds, else y"],
  ].map(([example, says]) => ({ name: example.match(/(\w+)\(/)[1], example, says }));
  const NAMES = FUNCTIONS.map(one => one.name), COUNTS = { clamp: [2, 3], max: [2, 2], min: [2, 2], pow: [2, 2], where: [3, 3] };
  // What backward of a node sends to its inputs, as conf/drawgrad/rules.py writes it.
  const RULES = Object.fromEntries(`
    AbsBackward0: grad * sign(a) | AddBackward0: grad; grad | ClampBackward1: grad * (a >= n) * (a <= m) | CosBackward0: -grad * sin(a)
    DivBackward0: grad / b; -grad * a / b**2 | ExpBackward0: grad * y | LogBackward0: grad / a | MulBackward0: grad * b; grad * a
    MaximumBackward0: grad * ((a > b) + (a == b) / 2); grad * ((a < b) + (a == b) / 2) | NegBackward0: -grad
    MinimumBackward0: grad * ((a < b) + (a == b) / 2); grad * ((a > b) + (a == b) / 2) | PowBackward0: grad * n * a**(n - 1)
    PowBackward1: grad * b * a**(b - 1); grad * y * log(a) | PowBackward2: grad * y * log(n) | ReciprocalBackward0: -grad * y**2
    ReluBackward0: grad * (a > 0) | RsubBackward1: -grad | SigmoidBackward0: grad * y * (1 - y) | SinBackward0: grad * cos(a)
    SqrtBackward0: grad / (2 * y) | SubBackward0: grad; -grad | TanhBackward0: grad * (1 - y**2)
    WhereBackward0: where(condition, grad, 0); where(condition, 0, grad)
  `.trim().split(/\s*[|\n]\s*/).map(line => line.split(": ")).map(([node, rules]) => [node, rules.split("; ")]));

  // -- Mistakes ---------------------------------------------------------------------------------------------------
  const fail = (message, { from, to }) => { throw Object.assign(new Error(message), { from, to }); };
  const countChanges = (a, b) => [...a].reduce((row, one) => row.reduce((next, up, at) => // letters to change, to add, to leave out
    [...next, at ? Math.min(up + 1, next[at - 1] + 1, row[at - 1] + (b[at - 1] !== one)) : up + 1], []), [...Array(b.length + 1).keys()]).at(-1);
  const suggest = (word, known) => {
    const [best] = known.toSorted((one, other) => countChanges(word, one) - countChanges(word, other));
    return best && countChanges(word, best) <= word.length / 2 ? ` Did you mean “${best}”?` : "";
  };

  // -- Tensors: each is computed when its operation is read, in Python’s order --------------------------------------
  // `inputs` are those of PyTorch’s node; `condition` is where’s; `from`: the leaves that it depends on.
  const give = (value, operation = "constant") => ({ operation, value, inputs: [], condition: [], numbers: [], from: [], names: [] });
  const shorten = operation => operation.replace(/Backward0$/, "");
  const record = (made, operation, inputs, numbers = [], condition = []) => {
    const all = [...inputs, ...condition], given = all.map(one => ["constant", 1, [], [], [one.value]]);
    const nodes = { ...given, [all.length]: [shorten(operation), 1, [...all.keys()], [[0]], numbers] };
    const [value] = compute({ float32, nodes, start: {}, backward: [] }, {}).values[all.length];
    const grad = operation.includes("Backward") && inputs.some(one => one.grad);
    const from = [...new Set(all.flatMap(one => one.from))], tensor = { ...give(Number(value), operation), inputs, condition, numbers, grad, from };
    return made[made.push({ ...tensor, number: made.length }) - 1];
  };

  // -- Reading ----------------------------------------------------------------------------------------------------
  const TOKEN = new RegExp(String.raw`(?<space>\s+|#.*)|(?<wrong>//|[-+*/]=(?!=))|(?<number>(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)|(?<name>[a-zα-ω][\wα-ω]*)`
    + String.raw`|(?<sign>\*\*|[<>=!]=|[-+*/()<>=,.−×·])|(?<other>.)`, "giu");
  const TYPED = { __proto__: null, "−": "-", "×": "*", "·": "*" }, SPECIAL = { __proto__: null, inf: Infinity, infinity: Infinity, nan: NaN };
  const RESERVED = ("and as assert async await break class continue def del elif else except finally for from global if import in "
    + "is lambda nonlocal not or pass print raise return torch try while with yield None True False inf nan").split(" ");
  const readTokens = (line, start) => [...line.matchAll(TOKEN)].map(({ 0: text, index, groups }) => {
    const token = { kind: Object.keys(groups).find(key => groups[key] !== undefined), text: TYPED[text] ?? text };
    return { ...token, from: start + index, to: start + index + text.length };
  }).filter(({ kind, text, ...place }) => kind !== "other" && kind !== "wrong" ? kind !== "space"
    : fail({ "^": "Write ** for a power.", "[": "A tensor is one number on this page." }[text] ?? `“${text}” has no meaning in an expression.`, place));
  const span = ({ from }, { to }) => ({ from, to });
  // What is read: {text, as Python has it: no integer too large for PyTorch, −0 as a float; of: the tensor or number; from, to}.
  const isPlain = value => Number.isFinite(value) && !Object.is(value, -0) && Math.abs(value) <= 2 ** 53;
  const giveNumber = (value, text, place) => ({ ...place, of: give(value), isNumber: true,
    text: isPlain(value) || !Number.isFinite(value) ? text : value ? value.toExponential() : "-0.0" });
  const asFloat = item => item.isNumber && isPlain(item.of.value) && Number.isInteger(item.of.value)
    ? { ...item, text: item.of.value.toFixed(1) } : item;
  const asTensor = item => item.isNumber ? { ...item, isNumber: false, text: `torch.tensor(${asFloat(item).text})` } : item;
  const use = item => item.isCondition ? fail("A comparison can only be the first argument of where.", item)
    : item.isLeaf ? fail("A tensor that requires grad needs a line of its own.", item) : item;
  // How tightly an operator binds: a sign before an operand does by 3, a comparison by 0. With numbers alone it is computed at once.
  const BINDS = { "<": 0, "<=": 0, ">": 0, ">=": 0, "==": 0, "!=": 0, "+": 1, "-": 1, "*": 2, "/": 2, "**": 4 };
  const FOLD = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "**": (a, b) => a ** b };
  const readLine = (tokens, known, later, made) => {
    const end = { kind: "end", text: "", from: tokens.at(-1).to, to: tokens.at(-1).to };
    let at = tokens[1]?.text === "=" ? 2 : 0;
    const now = () => tokens[at] ?? end, take = () => tokens[at++] ?? end, is = text => now().kind === "sign" && now().text === text;
    const make = (place, text, of, sign) => made.length > MOST ? fail(`There are more than ${MOST} operations.`, sign) : { ...place, text, of };
    const readSides = least => {
      let left = is("+") || is("-") ? signed(take(), use(readSides(3))) : readOperand();
      while (is(".")) left = take() && readCall(take(), asTensor(use(left)));
      while (BINDS[now().text] >= least) {
        const sign = take(), binds = BINDS[sign.text];
        if (left.isCondition && !binds) fail("Write one comparison at a time.", sign);
        left = combine(binds ? left : asTensor(left), sign, readSides(Math.min(binds + 1, 3)));
      }
      return left;
    };
    const signed = (sign, what) => {
      const place = span(sign, what), text = `-${what.text}`;
      if (sign.text === "+") return { ...what, ...place, isName: false };
      return what.isNumber ? giveNumber(-what.of.value, text, place) : make(place, text, record(made, "NegBackward0", [what.of]), sign);
    };
    const combine = (a, sign, b) => {
      const [x, y] = [use(a).of, use(b).of], text = `${a.text} ${sign.text} ${b.text}`, place = span(a, b), value = FOLD[sign.text]?.(x.value, y.value);
      if (a.isNumber && b.isNumber) return Number.isFinite(value) ? giveNumber(value, text, place) : fail(`“${text}” is no finite number.`, place);
      const node = (name, ...rest) => record(made, name, ...rest), isCondition = !BINDS[sign.text];
      return { isCondition, ...make(place, text, isCondition ? node(sign.text, [x, y]) : {
        "+": () => node("AddBackward0", a.isNumber ? [y, x] : [x, y]), "**": () => power(a, b),
        "*": () => node("MulBackward0", a.isNumber ? [y, x] : [x, y]),
        "-": () => a.isNumber ? node("RsubBackward1", [y], [x.value]) : node("SubBackward0", [x, y]),
        "/": () => a.isNumber ? node("MulBackward0", [node("ReciprocalBackward0", [y]), x]) : node("DivBackward0", [x, y]),
      }[sign.text](), sign) };
    };
    const power = (a, b) => a.isNumber ? record(made, "PowBackward2", [b.of], [a.of.value])
      : b.isNumber ? record(made, "PowBackward0", [a.of], [b.of.value]) : record(made, "PowBackward1", [a.of, b.of]);
    const readOperand = () => {
      const before = tokens[at - 1], token = take(), { kind, text } = token, special = SPECIAL[text.toLowerCase()];
      if (text === "(") return (inner => ({ ...inner, ...span(token, close(token)), text: `(${inner.text})`, isName: false }))(readSides(0));
      if (special !== undefined) return giveNumber(special, special ? "torch.inf" : "torch.nan", token);
      if (kind === "number") return Number(text) < Infinity
        ? giveNumber(Number(text), /^\d+$/.test(text) ? `${Number(text)}` : text, token) : fail(`“${text}” is too large.`, token);
      if (token === end) fail(`Something is missing after “${before.text}”.`, before);
      if (kind !== "name") fail(`Something is missing before “${text}”.`, token);
      if (text === "torch" && is(".")) return take() && now().text in SPECIAL ? readOperand() : readCall(take());
      if (is("(") || is("=")) return is("(") ? readCall(token) : failAt(now());
      if (known.has(text)) return { ...span(token, token), text, of: known.get(text), isName: true, isNumber: known.get(text).isNumber };
      fail(later.has(text) ? `“${text}” is used before it has a value.` : `“${text}” has no value.${suggest(text, [...known.keys()])}`, token);
    };
    const close = open => is(")") ? take() : now() === end ? fail("This parenthesis is never closed.", open) : failAt(now());
    const failAt = token => fail({ __proto__: null, ")": "This parenthesis was never opened.", "=": "An = can only follow the first name of a line.",
      ",": "A comma can only stand between the arguments of a function." }[token.text] ?? `An operator is missing before “${token.text}”.`, token);
    const readTensor = name => { // torch.tensor(2.0, requires_grad=True)
      const open = is("(") ? take() : fail("After “tensor” its number comes in parentheses.", name), number = readSides(0);
      if (!number.isNumber) fail("A tensor is made of a number.", number);
      const option = is(",") ? [take(), take(), take(), take()].slice(1) : [], said = option.map(({ text }) => text).join("");
      if (said && !/^requires_grad=(True|False)$/.test(said) || is(",")) fail("Only requires_grad=True can follow the number.", is(",") ? now() : option[0]);
      const place = span(name, close(open)), isLeaf = said.endsWith("True");
      if (isLeaf && /^[-\d() *]+$/.test(number.text)) fail(`Only a float can require grad: write ${number.of.value}.0.`, number);
      return { ...asTensor(number), ...place, isLeaf, number };
    };
    const readCall = (name, self) => {
      if (name.kind !== "name") fail("After a dot comes the name of a function.", name);
      if (name.text === "tensor" && !self) return readTensor(name);
      if (!NAMES.includes(name.text)) fail(`There is no function “${name.text}”.${suggest(name.text, NAMES)}`, name);
      if (!is("(")) fail(`After “${name.text}” its arguments come in parentheses.`, name);
      const open = take(), given = self ? [self] : [];
      for (let more = !is(")"); more; more = is(",") && take()) given.push(readSides(0));
      const place = span(self ?? name, close(open)), { of, texts } = call(name.text, given, place);
      const [before, ...inside] = self ? texts : ["torch", ...texts];
      return make(place, `${before}.${name.text}(${inside.join(", ")})`, of, name);
    };
    const call = (name, given, place) => {
      const [least, most] = COUNTS[name] ?? [1, 1], wanted = least === most ? least : `${least} or ${most}`;
      if (given.length < least || given.length > most) fail(`${name} takes ${wanted} argument${most > 1 ? "s" : ""}, not ${given.length}.`, place);
      const condition = name === "where" ? given.splice(0, 1) : [], bounds = name === "clamp" ? given.splice(1) : [];
      if (condition.some(one => !one.isCondition)) fail("The first argument of where is a comparison, such as x > 0.", condition[0]);
      for (const one of bounds) if (!one.isNumber) fail("A bound of clamp is a number.", one);
      const [low, high = give(Infinity)] = bounds.map(one => one.of), isKept = at => name === "pow" && (at || !given[1].isNumber);
      const items = given.map(use).map((one, at) => name === "where" ? asFloat(one) : isKept(at) ? one : asTensor(one));
      const node = { detach: "take", clamp: "ClampBackward1", max: "MaximumBackward0", min: "MinimumBackward0" }[name];
      const numbers = low ? [low, high].map(({ value }) => float32 ? Math.fround(value) : value) : [], ofOne = ({ of }) => of;
      const of = name === "pow" ? power(...items)
        : record(made, node ?? `${name[0].toUpperCase()}${name.slice(1)}Backward0`, items.map(ofOne), numbers, condition.map(ofOne));
      return { of, texts: [...condition, ...items, ...bounds].map(one => one.text) };
    };
    return (item => tokens[at] ? failAt(now()) : item.isLeaf ? item : use(item))(readSides(0));
  };
  // Of a pasted program, what has no part in the graph. Its y.backward() is the last line, y.
  const SKIPPED = /^\s*(import\s+\w|torch\.manual_seed\(|from\s+\S+\s+import\b|print\s*\(|\S+\.retain_grad\(\)|[^\s.=]+\.grad\s*(#|$))/;
  const BACKWARD = /\.backward\(\s*(retain_graph\s*=\s*\w+\s*)?\)\s*(#.*)?$/;
  const nameResult = (known, name = "result") => known.has(name) ? nameResult(known, `${name}_`) : name;
  const readProgram = text => {
    let root, rootName;
    const known = new Map(), made = [], leaves = [], program = ["import torch", ""], all = { from: 0, to: text.length };
    const lines = [...text.matchAll(/.+/g)].filter(([line]) => !SKIPPED.test(line))
      .map(({ 0: line, index }) => readTokens(line.replace(BACKWARD, ""), index)).filter(line => line.length);
    const isPasted = lines.flat().some(token => token.text === "requires_grad"); // then a number is a number, as in Python
    const later = new Set(lines.filter(([, sign]) => sign?.text === "=").map(([name]) => name.text));
    if (!lines.length) fail("Write a line such as x = 2.", all);
    for (const line of lines) {
      const [first, sign] = line, isNamed = sign?.text === "=", name = first.text;
      if (isNamed && first.kind !== "name") fail("Only a name can get a value.", first);
      if (isNamed && (RESERVED.includes(name) || name.toLowerCase() in SPECIAL)) fail(`“${name}” has a meaning of its own: take another name.`, first);
      if (isNamed && known.has(name)) fail(`“${name}” has a value already: take another name.`, first);
      if (!isNamed && line !== lines.at(-1)) fail(text.startsWith(".backward(", line.at(-1).to)
        ? "Only one backward can be drawn, and nothing after it." : "Only the last line can do without a name and =.", span(first, line.at(-1)));
      const item = readLine(line, known, later, made), { number = item } = item;
      const isLeaf = isNamed && (isPasted ? item.isLeaf : item.isNumber), isNumber = isNamed && item.isNumber && !isLeaf;
      rootName = isNamed ? name : item.isName ? item.text : nameResult(known);
      root = isLeaf ? { ...item.of, operation: "leaf", grad: true, place: span(number, number) } : item.of;
      if (isLeaf) root.from = [leaves[leaves.push(root) - 1]];
      else if (known.has(rootName)) continue;
      program.push(`${rootName} = ${isLeaf ? `torch.tensor(${asFloat(number).text}, requires_grad=True)` : (isNumber ? item : asTensor(item)).text}`);
      known.set(rootName, Object.assign(root, { names: [...root.names, rootName], isNumber }));
    }
    if (!leaves.length) fail("Nothing requires a gradient: begin with a line such as x = 2.", all);
    if (!root.grad) fail("This depends on no leaf that a gradient can go back to.", span(lines.at(-1)[0], lines.at(-1).at(-1)));
    program.push("", `${rootName}.backward()`, ...leaves.map(({ names: [name] }) => `print(${name}.grad)`), "");
    return { root, program: program.join("\n"), places: Object.fromEntries(leaves.map(({ names: [name], place }) => [name, place])) };
  };

  // -- The graph, as conf/drawgrad/read.py reads it -----------------------------------------------------------------
  const orderBackward = (root, order) => { // the engine takes leaves first, else what forward recorded last
    const called = [], ready = [root], missing = order.flatMap(one => one.inputs), rank = one => one.number ?? Infinity;
    while (ready.length) {
      const next = ready.reduce((best, one) => rank(one) > rank(best) ? one : best);
      called.push(...ready.splice(ready.indexOf(next), 1));
      for (const one of next.inputs) {
        missing.splice(missing.indexOf(one), 1);
        if (one.grad && !missing.includes(one)) ready.push(one);
      }
    }
    return called;
  };
  const makeGraph = root => {
    const order = [], visit = one => {
      if (!one.grad || order.includes(one)) return;
      one.inputs.forEach(visit);
      order.push(one);
    };
    visit(root);
    const keys = new Map(order.map((one, key) => [one, key])), called = orderBackward(root, order), isLeaf = one => one.operation === "leaf";
    const forward = order.filter(one => !isLeaf(one)).sort((a, b) => a.number - b.number), edges = [], constants = [], nodes = {};
    let fresh = order.length;
    const cards = order.flatMap((one, key) => {
      const first = constants.length, facts = { names: one.names, is_root: one === root, backward_at: called.indexOf(one) };
      one.inputs.forEach((tail, input) => {
        edges.push({ tail: tail.grad ? keys.get(tail) : fresh, head: key, input });
        if (!tail.grad) constants.push({ key: fresh++, of: tail });
      });
      return [...constants.slice(first).map(added => ({ key: added.key, kind: "constant", operation: "constant", names: [] })),
        { key, ...isLeaf(one) ? { kind: "leaf", operation: "" } : { kind: "function", operation: one.operation, forward_at: forward.indexOf(one) }, ...facts }];
    });
    // The program. What a condition or a constant is computed from has no card, but follows the leaves too.
    const instruct = (key, one, inputs) => {
      nodes[key] = inputs.length ? [shorten(one.operation), 1, inputs, one.operation === "take" ? [[0]] : [], one.numbers]
        : [order[key] === one ? "leaf" : "constant", 1, [], [], [Number.isFinite(one.value) ? one.value : `${one.value}`]];
      while (!nodes[key].at(-1).length) nodes[key].pop();
    };
    const follow = one => one.from.some(leaf => order.includes(leaf)) ? [...one.inputs, ...one.condition].map(keyOf) : [];
    const keyOf = one => {
      if (!keys.has(one)) instruct(keys.set(one, fresh++).get(one), one, follow(one));
      return keys.get(one);
    };
    for (const [key, one] of order.entries())
      instruct(key, one, [...edges.filter(({ head }) => head === key).map(({ tail }) => tail), ...one.condition.map(keyOf)]);
    for (const { key, of } of constants) instruct(key, of, follow(of));
    const backward = called.filter(one => !isLeaf(one)).map(one => keys.get(one));
    const program = { float32, nodes, start: { [keys.get(root)]: [1] }, backward }, found = compute(program, {});
    for (const edge of edges) [edge.derivative] = found.local[`${edge.head}.${edge.input}`] ?? [];
    for (const card of cards) if (card.names.length) [card.value] = found.values[card.key];
    for (const card of cards) if (card.kind === "leaf") [card.gradient] = found.gradients[card.key];
    return { graph: { cards, edges }, program, values: found.values };
  };

  // -- What a figure says, as conf/drawgrad/play.py and player.py write it ------------------------------------------
  const LISTED = 6, ADDED = 5, TITLES = { leaf: "a leaf", constant: "needs no gradient", function: "" };
  const write = x => filler({ values: { x: [x] } })("⟦vx⟧"), listSome = parts => parts.slice(0, LISTED).concat(parts[LISTED] ? "…" : []).join(", ");
  const isClose = (a, b) => a === b || Math.abs(a - b) < Infinity && Math.abs(a - b) <= Math.max(1e-4 * Math.abs(a), 1e-4 * Math.abs(b), 1e-6);
  const nameCards = cards => {
    const bare = cards.map(card => card.names.join(", ") || card.operation), count = (list, name) => list.filter(one => one === name).length;
    return new Map(bare.map((name, at) => [cards[at].key, count(bare, name) > 1 ? `${name} #${count(bare.slice(0, at + 1), name)}` : name]));
  };
  const pick = (list, change) => Object.fromEntries(list.map((one, at) => [one.key ?? at, change(one)]).filter(([, found]) => found));
  // All is written with places for the numbers, ⟦…⟧; those of the figure as it is are then filled.
  const describe = ({ graph: { cards, edges }, program, values }) => {
    const at = new Map(cards.map(card => [card.key, card])), root = cards.find(card => card.is_root), names = nameCards(cards);
    const enter = key => [...edges.keys()].filter(which => edges[which].head === key), nameEdge = ({ head, input }) => `${head}.${input}`;
    const ofKind = (...kinds) => cards.filter(({ kind }) => kinds.includes(kind)), leaves = ofKind("leaf"), taken = cards.flatMap(card => card.names);
    // By key, whence gradients arrive, in their order; and by source, what does.
    const arrived = Object.fromEntries(cards.map(({ key }) => [key, key === root.key ? [`r${key}`] : []])), moved = { [`r${root.key}`]: [1] };
    const total = key => arrived[key].reduce((sum, one) => sum + moved[one][0], 0), steps = [];
    const step = (kind, about, along, to, write) => {
      const came = to.map(key => [key, [...arrived[key]]]), got = came.map(([key, sources]) => [key, `⟦t${sources}⟧`]);
      steps.push((card => isKnown => ({ card, text: write(isKnown, came), cards: about.map(({ key }) => key), edges: along, kind,
        ...to.length && { got: Object.fromEntries(isKnown ? got : got.map(([key]) => [key, ""])) },
        ...isKnown && kind === "send" && { moved: along.map(which => `⟦t${nameEdge(edges[which])}⟧`) } }))(about[0]));
    };
    const mention = ({ key, names: { length } }) => `${names.get(key)}${length ? ` = ⟦v${key}⟧` : ""}`;
    step("leaves", ofKind("leaf", "constant"), [], [], () => `Before the first operation: ${listSome(leaves.map(mention))}.`);
    for (const card of ofKind("function").sort((a, b) => a.forward_at - b.forward_at)) step("compute", [card], enter(card.key), [], () =>
      `Forward: ${card.names.length ? mention(card) : "a result without a name"}, recorded as ${card.operation}.`);
    step("start", [root], [], [root.key], isKnown => `Backward starts at ${names.get(root.key)}${isKnown ? `, with the gradient ⟦tr${root.key}⟧` : ""}.`);
    for (const card of ofKind("function", "leaf").sort((a, b) => a.backward_at - b.backward_at)) {
      const name = names.get(card.key), whole = total(card.key);
      const along = enter(card.key).filter(which => edges[which].derivative !== undefined), sent = along.map(which => edges[which]);
      for (const edge of sent) moved[nameEdge(edge)] = [whole * edge.derivative];
      for (const edge of sent) arrived[edge.tail].push(nameEdge(edge));
      if (card.kind === "leaf") step("keep", [card], [], [card.key], (isKnown, [[, sources]]) =>
        `Backward: AccumulateGrad adds what has arrived to ${name}.grad${isKnown ? `: ⟦t${sources}⟧` : ""}.`);
      else step("send", [card], along, sent.map(({ tail }) => tail), (isKnown, came) => [
        `Backward: ${card.names.length ? `${card.operation} (${name})` : name} sends ${
          isKnown ? listSome(sent.map(edge => `⟦t${nameEdge(edge)}⟧ to ${names.get(edge.tail)}`))
            : `a gradient to ${listSome([...new Set(came.map(([key]) => names.get(key)))])}`}.`,
        ...[...new Map(came)].filter(([, { length }]) => length > 1).map(([key, sources]) => isKnown && sources.length <= ADDED
          ? `At ${names.get(key)} they add up: ⟦s${sources}⟧.` : `At ${names.get(key)}, ${sources.length} have arrived and are added.`),
      ].join(" "));
    }
    // Autograd’s gradients may be others, as NaN always is: then none is said.
    const agree = leaves.filter(({ key, gradient }) => isClose(total(key), gradient)), fill = filler({ values, moved });
    for (const card of agree) if (arrived[card.key].length > 1) card.terms = arrived[card.key].map(one => moved[one][0]);
    const settle = (text, { gradient }) => fill(gradient === undefined ? text : text.replace(/⟦t[^⟧]*⟧/, write(gradient)));
    const sumOf = ({ key, terms = [] }) => 1 < terms.length && terms.length < ADDED ? `⟦u${arrived[key]}⟧` : "";
    const listFacts = card => {
      const { key, kind, operation, names: [name, other] } = card, inputs = enter(key).map(which => edges[which]);
      const call = (letter, of) => at.get(of).names[0] ?? (taken.includes(letter) ? names.get(of) : letter); // no other tensor’s name
      const sends = inputs.filter(({ derivative }) => derivative !== undefined && !other).map(({ tail, input }) =>
        [`sends to ${names.get(tail)}`, RULES[operation][input].replace(/\b[aby]\b(?!\()/g, one => call(one, inputs["ab".indexOf(one)]?.tail ?? key))]);
      const gradient = kind === "leaf" ? `${sumOf(card) && `${sumOf(card)} = `}⟦t${arrived[key]}⟧` : "";
      return [[TITLES[kind], names.get(key)], ["node", name ? operation : ""], ["value", name ? `⟦v${key}⟧` : ""], ["gradient", gradient], ...sends]
        .filter(([, text]) => text);
    };
    const whole = { text: "", cards: [], edges: [], kind: "whole" }, moments = steps.map(one => one(true));
    const facts = cards.map(card => ({ card, key: card.key, list: listFacts(card) })), hasPlace = text => text.includes("⟦") && text;
    const live = {
      ...program, edges: pick(edges, edge => edge.derivative !== undefined && nameEdge(edge)), gradients: leaves.map(({ key }) => `${key}`),
      terms: pick(leaves, card => sumOf(card) && `= ${sumOf(card)}`), leaves: pick(leaves, ({ key }) => `Value of ${names.get(key)}`),
      values: cards.filter(card => card.names.length).map(({ key }) => `${key}`),
      texts: pick(moments, ({ text }) => hasPlace(text)), moved: pick(moments, one => one.moved), got: pick(moments, one => one.got),
      notes: pick(facts, ({ list }) => pick(list, ([, text]) => hasPlace(text))),
      here: `Computed in your browser: ${mention(root)}.${/"constant"/.test(JSON.stringify(program)) ? " Constants stay as they are." : ""}`,
    };
    const now = steps.map(one => one(agree.length === leaves.length)).map(({ card, text, got, moved, ...rest }) => ({ ...rest, text: settle(text, card),
      ...got && { got: Object.fromEntries(Object.entries(got).map(([key, one]) => [key, fill(one)])) }, ...moved && { moved: moved.map(one => fill(one)) } }));
    return { name: "typed", steps: [...now, whole], cards: pick(facts, ({ card, list }) => list.map(([title, text]) => [title, settle(text, card)])),
      words: { pause: "Pause", value: "value", gradient: "gradient", saved: "saved" }, live };
  };
  const build = (text, isFloat32 = true) => {
    try {
      float32 = isFloat32;
      const { root, program, places } = readProgram(text), made = makeGraph(root), said = describe(made);
      const leaves = made.graph.cards.filter(card => card.kind === "leaf").map(({ key, names: [name], value }) => ({ key, name, value, ...places[name] }));
      return { graph: made.graph, said, program, leaves };
    } catch (error) {
      const { message, from, to } = error instanceof RangeError ? { message: "This is too long.", from: 0, to: text.length } : error;
      if (from === undefined) throw error;
      return { error: { message, from, to } };
    }
  };
  // -- An exercise ------------------------------------------------------------------------------------------------
  const makeExercise = seed => {
    let state = (Math.abs(seed) % 1e9 + 1) * 48271 % 2147483647; // of Lehmer’s generator
    const draw = () => (state = state * 48271 % 2147483647) / 2147483647, pick = list => list[Math.floor(draw() * list.length)];
    for (;;) {
      const names = ["x", "y", "z"].slice(0, 2 + Math.round(draw())), left = [-3, -2, -1, 2, 3, 4];
      const lines = names.map(name => `${name} = ${left.splice(left.indexOf(pick(left)), 1)}`);
      for (const name of ["a", "b", "c", "d", "w"].slice(-3 - Math.floor(3 * draw()))) {
        const one = pick(names.slice(-3)), other = pick(names.filter(name => name !== one));
        const form = pick(["A * B", "A * B", "A + B", "A - B", "A**2", "relu(A)", "max(A, B)"]);
        lines.push(`${names[names.push(name) - 1]} = ${form.replace("A", one).replace("B", other)}`);
      }
      const text = lines.join("\n"), { graph, said } = build(text);
      if (!graph || graph.cards.length !== lines.length) continue;
      const { gradients, values } = compute(said.live, {}), numbers = [gradients, values].flatMap(Object.values).flat();
      const tails = graph.edges.map(({ tail }) => tail), questions = graph.cards.filter(card => !card.is_root).map(({ key }) => key);
      const isShort = numbers.every(x => Number.isInteger(x) && x && Math.abs(x) < 1000);
      if (isShort && new Set(tails).size < tails.length) return { text, questions };
    }
  };
  globalThis.expressions = { build, FUNCTIONS, makeExercise };
})();
