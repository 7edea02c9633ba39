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
  const countChanges = (a, b) => [...a].reduce((row, one) => row.reduce((next, up, at) => // letters to change, to add, to leave out
    [...next, at ? Math.min(up + 1, next[at - 1] + 1, row[at - 1] + (b[at - 1] !== one)) : up + 1], []), [...Array(b.length + 1).keys()]).at(-1);
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
    const tensor = { ...give(Number(value), operation), inputs, condition, numbers, grad, from: [...new Set(all.flatMap(one => one.from))] };
    tensor.number = made.push(tensor);
    return tensor;
  };
  const shorten = operation => operation.replace(/Backward0$/, "");

  // -- Reading ----------------------------------------------------------------------------------------------------
  const TOKEN = new RegExp(String.raw`(?<space>\s+|#.*)|(?<number>(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)|(?<name>[a-zα-ω][\wα-ω]*)`
    + String.raw`|(?<sign>\*\*|[<>=!]=|[-+*/()<>=,.−×·])|(?<other>.)`, "giu");
  const TYPED = { "−": "-", "×": "*", "·": "*" }; // as figures write them
  const COMPARISONS = ["<", "<=", ">", ">=", "==", "!="], SPECIAL = { inf: Infinity, infinity: Infinity, nan: NaN };
  const RESERVED = ("and as assert async await break class continue def del elif else except finally for from global if import in "
    + "is lambda nonlocal not or pass print raise return torch try while with yield None True False").split(" ");
  const readTokens = (line, start) => [...line.matchAll(TOKEN)].map(({ 0: text, index, groups }) => {
    const token = { kind: Object.keys(groups).find(key => groups[key] !== undefined), text: TYPED[text] ?? text };
    return { ...token, from: start + index, to: start + index + text.length };
  }).filter(({ kind, text, ...place }) => kind !== "other" ? kind !== "space"
    : fail(text === "^" ? "Write ** for a power." : `“${text}” has no meaning in an expression.`, place));
  const span = (first, last) => ({ from: first.from, to: last.to });
  // What was read is {text: as Python has it, of: the tensor or the number, from, to}.
  // Of numbers none is an integer that is too large for PyTorch, or loses the sign of its zero.
  const isPlain = value => Number.isFinite(value) && !Object.is(value, -0) && Math.abs(value) <= 2 ** 53;
  const giveNumber = (value, text, place) => ({ ...place, of: give(value), isNumber: true,
    text: isPlain(value) || !Number.isFinite(value) ? text : value ? value.toExponential() : "-0.0" });
  const asFloat = item => item.isNumber && isPlain(item.of.value) && Number.isInteger(item.of.value)
    ? { ...item, text: item.of.value.toFixed(1) } : item;
  const asTensor = item => item.isNumber ? { ...item, isNumber: false, text: `torch.tensor(${asFloat(item).text})` } : item;
  const use = item => item.isCondition ? fail("A comparison can only be the first argument of where.", item) : item;
  const FOLD = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "**": (a, b) => a ** b };

  const readLine = (tokens, known, later, made) => {
    const end = { kind: "end", text: "", from: tokens.at(-1).to, to: tokens.at(-1).to };
    let at = tokens[1]?.text === "=" ? 2 : 0;
    const now = () => tokens[at] ?? end, take = () => tokens[at++] ?? end;
    const is = (...signs) => now().kind === "sign" && signs.includes(now().text);
    const make = (place, text, of, where) => made.length > MOST ? fail(`There are more than ${MOST} operations.`, where) : { ...place, text, of };
    const readComparison = () => {
      const left = readChain(0);
      if (!is(...COMPARISONS)) return left;
      const a = asTensor(use(left)), sign = take().text, b = use(readChain(0));
      if (is(...COMPARISONS)) fail("Write one comparison at a time.", now());
      return { ...span(a, b), text: `${a.text} ${sign} ${b.text}`, of: record(made, sign, [a.of, b.of]), isCondition: true };
    };
    const readChain = level => {
      if (level === 2) return readSigned();
      let left = readChain(level + 1);
      while (is(...["+-", "*/"][level])) left = combine(left, take(), readChain(level + 1));
      return left;
    };
    const readSigned = () => {
      if (!is("+", "-")) return readPower();
      const sign = take(), what = use(readSigned()), place = span(sign, what);
      if (sign.text === "+") return { ...what, ...place, isName: false };
      return what.isNumber ? giveNumber(-what.of.value, `-${what.text}`, place)
        : make(place, `-${what.text}`, record(made, "NegBackward0", [what.of]), sign);
    };
    const readPower = () => {
      let base = readOperand();
      while (is(".")) base = take() && readCall(take(), asTensor(use(base)));
      return is("**") ? combine(base, take(), readSigned()) : base;
    };
    const combine = (a, sign, b) => {
      const [x, y] = [use(a).of, use(b).of], text = `${a.text} ${sign.text} ${b.text}`, place = span(a, b);
      if (a.isNumber && b.isNumber) {
        const value = FOLD[sign.text](x.value, y.value);
        return Number.isFinite(value) ? giveNumber(value, text, place) : fail(`“${text}” is no finite number.`, place);
      }
      const both = a.isNumber ? [y, x] : [x, y];
      return make(place, text, {
        "+": () => record(made, "AddBackward0", both),
        "*": () => record(made, "MulBackward0", both),
        "-": () => a.isNumber ? record(made, "RsubBackward1", [y], [x.value]) : record(made, "SubBackward0", both),
        "/": () => a.isNumber ? record(made, "MulBackward0", [record(made, "ReciprocalBackward0", [y]), x]) : record(made, "DivBackward0", both),
        "**": () => a.isNumber ? record(made, "PowBackward2", [y], [x.value])
          : b.isNumber ? record(made, "PowBackward0", [x], [y.value]) : record(made, "PowBackward1", both),
      }[sign.text](), sign);
    };
    const readOperand = () => {
      const before = tokens[at - 1], token = take(), { kind, text } = token, special = SPECIAL[text.toLowerCase()];
      if (text === "(") {
        const inner = readComparison();
        return { ...inner, ...span(token, close(token)), text: `(${inner.text})`, isName: false };
      }
      if (special !== undefined) return giveNumber(special, special ? "torch.inf" : "torch.nan", token);
      if (kind === "number") return Number(text) < Infinity
        ? giveNumber(Number(text), /^\d+$/.test(text) ? `${Number(text)}` : text, token) : fail(`“${text}” is too large.`, token);
      if (token === end) fail(`Something is missing after “${before.text}”.`, before);
      if (kind !== "name") fail(`Something is missing before “${text}”.`, token);
      if (text === "torch" && is(".")) return take() && readCall(take());
      if (is("(")) return readCall(token);
      if (known.has(text)) return { ...span(token, token), text, of: known.get(text), isName: true };
      fail(later.has(text) ? `“${text}” is used before it has a value.` : `“${text}” has no value.${suggest(text, [...known.keys()])}`, token);
    };
    const close = open => is(")") ? take() : now() === end ? fail("This parenthesis is never closed.", open) : failAt(now());
    const failAt = token => fail({ ")": "This parenthesis was never opened.", "=": "A line has one = at most.",
      ",": "A comma can only stand between the arguments of a function." }[token.text] ?? `An operator is missing before “${token.text}”.`, token);
    const readCall = (name, self) => {
      if (!NAMES.includes(name.text)) fail(`There is no function “${name.text}”.${suggest(name.text, NAMES)}`, name);
      if (!is("(")) fail(`After “${name.text}” its arguments come in parentheses.`, name);
      const open = take(), given = self ? [self] : [];
      for (let more = !is(")"); more; more = is(",") && take()) {
        const keyword = tokens[at + 1]?.text === "=" ? take() : null;
        if (keyword) take();
        given.push({ ...readComparison(), keyword });
      }
      const place = span(self ?? name, close(open)), { of, texts: [first, ...rest] } = call(name.text, given, place);
      const text = self || name.text === "detach" ? `${first}.${name.text}(${rest.join(", ")})` : `torch.${name.text}(${[first, ...rest].join(", ")})`;
      return make(place, text, of, name);
    };
    const call = (name, given, place) => {
      const [least, most] = COUNTS[name] ?? [1, 1], wanted = least === most ? least : `${least} or ${most}`;
      if (given.length < least || given.length > most) fail(`${name} takes ${wanted} argument${most > 1 ? "s" : ""}, not ${given.length}.`, place);
      const condition = name === "where" ? given.splice(0, 1) : [], bounds = name === "clamp" ? given.splice(1) : [];
      for (const { keyword } of [...condition, ...given]) if (keyword) fail(`${name} has no argument “${keyword.text}”.`, keyword);
      if (condition.some(one => !one.isCondition)) fail("The first argument of where is a comparison, such as x > 0.", condition[0]);
      const words = bounds.map(({ keyword }, which) => keyword?.text ?? ["min", "max"][which]), limits = { min: -Infinity, max: Infinity };
      bounds.forEach((one, which) => {
        if (!one.isNumber) fail("A bound of clamp is a number.", one);
        if (!(words[which] in limits) || words.indexOf(words[which]) < which) fail("The bounds of clamp are min and max.", one.keyword ?? one);
        limits[words[which]] = one.of.value;
      });
      const items = given.map(use).map(name === "where" ? asFloat : asTensor), [letter, ...letters] = name;
      const node = { max: "Maximum", min: "Minimum" }[name] ?? letter.toUpperCase() + letters.join("");
      const of = record(made, name === "detach" ? "take" : `${node}Backward${bounds.length ? 1 : 0}`, items.map(one => one.of),
        bounds.length ? [limits.min, limits.max] : [], condition.map(one => one.of));
      const asTyped = bounds.map(({ text }, which) => bounds.some(one => one.keyword) ? `${words[which]}=${text}` : text);
      return { of, texts: [...[...condition, ...items].map(one => one.text), ...asTyped] };
    };
    const item = use(readComparison());
    return now() === end ? item : failAt(now());
  };

  const readProgram = text => {
    const known = new Map(), made = [], leaves = [], program = ["import torch", ""], all = { from: 0, to: text.length };
    let start = 0, root, rootName;
    const lines = text.split("\n").map(line => readTokens(line, (start += line.length + 1) - line.length - 1)).filter(line => line.length);
    const later = new Set(lines.filter(([, sign]) => sign?.text === "=").map(([name]) => name.text));
    if (!lines.length) fail("Write a line such as x = 2.", all);
    for (const line of lines) {
      const [first, sign] = line, isNamed = sign?.text === "=";
      if (isNamed && first.kind !== "name") fail("Only a name can get a value.", first);
      if (isNamed && (RESERVED.includes(first.text) || first.text.toLowerCase() in SPECIAL))
        fail(`“${first.text}” has a meaning of its own: take another name.`, first);
      if (isNamed && known.has(first.text)) fail(`“${first.text}” has a value already: take another name.`, first);
      if (!isNamed && line !== lines.at(-1)) fail("Only the last line can do without a name and =.", span(first, line.at(-1)));
      const item = readLine(line, known, later, made), isLeaf = isNamed && item.isNumber;
      rootName = isNamed ? first.text : item.isName ? item.text : ["result", "result_", "result__"].find(name => !known.has(name));
      root = isLeaf ? { ...item.of, operation: "leaf", grad: true } : item.of;
      if (isLeaf) root.from = [leaves[leaves.push(root) - 1]];
      if (known.has(rootName)) continue;
      program.push(`${rootName} = ${isLeaf ? `torch.tensor(${asFloat(item).text}, requires_grad=True)` : asTensor(item).text}`);
      root.names.push(rootName);
      known.set(rootName, root);
    }
    if (!leaves.length) fail("Nothing requires a gradient: begin with a line such as x = 2.", all);
    if (!root.grad) fail("This depends on no leaf that a gradient can go back to.", span(lines.at(-1)[0], lines.at(-1).at(-1)));
    program.push("", `${rootName}.backward()`, ...leaves.map(({ names: [name] }) => `print(${name}.grad)`), "");
    return { root, program: program.join("\n") };
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
    const isLeaf = one => one.operation === "leaf", keys = new Map(order.map((one, key) => [one, key])), called = orderBackward(root, order);
    const computed = order.filter(one => !isLeaf(one)), forward = computed.toSorted((a, b) => a.number - b.number);
    let fresh = order.length;
    const nodes = {}, edges = [], put = (key, ...instruction) => {
      while (!instruction.at(-1).length) instruction.pop();
      nodes[key] = instruction;
    };
    const fix = (key, { value }, kind) => put(key, kind, 1, [], [], [Number.isFinite(value) ? value : `${value}`]);
    // What a condition or a constant is computed from has no card, but follows the leaves too.
    const follows = one => one.from.some(leaf => order.includes(leaf));
    const keyOf = one => {
      if (one.operation === "take") return keyOf(one.inputs[0]);
      if (keys.has(one)) return keys.get(one);
      const key = fresh++, inputs = [...one.inputs, ...one.condition];
      keys.set(one, key);
      if (follows(one)) put(key, shorten(one.operation), 1, inputs.map(keyOf), [], one.numbers);
      else fix(key, one, "constant");
      return key;
    };
    const add = (key, kind, operation, facts) => ({ key, kind, operation, names: [], is_root: false, value: undefined, gradient: undefined,
      terms: [], forward_at: 0, backward_at: 0, ...facts });
    const constants = [], cards = order.flatMap((one, key) => {
      const added = one.inputs.flatMap((tail, input) => {
        edges.push({ tail: tail.grad ? keys.get(tail) : fresh++, head: key, input, derivative: undefined });
        return tail.grad ? [] : constants[constants.push({ ...add(edges.at(-1).tail, "constant", "constant"), of: tail }) - 1];
      });
      const facts = { names: one.names, is_root: one === root, value: one.names.length ? one.value : undefined, backward_at: called.indexOf(one) };
      return [...added.map(({ of, ...card }) => card), isLeaf(one) ? add(key, "leaf", "", facts)
        : add(key, "function", one.operation, { ...facts, forward_at: forward.indexOf(one) })];
    });
    order.forEach((one, key) => isLeaf(one) ? fix(key, one, "leaf") : put(key, shorten(one.operation), 1,
      [...edges.filter(({ head }) => head === key).map(({ tail }) => tail), ...one.condition.map(keyOf)], [], one.numbers));
    for (const { key, of } of constants)
      if (follows(of)) put(key, "take", 1, [keyOf(of)], [[0]]);
      else fix(key, of, "constant");
    const backward = called.filter(one => !isLeaf(one)).map(one => keys.get(one));
    const program = { float32: false, nodes, start: { [keys.get(root)]: [1] }, backward }, found = compute(program, {});
    for (const edge of edges) edge.derivative = found.local[`${edge.head}.${edge.input}`]?.[0];
    for (const card of cards) if (card.kind === "leaf") [card.gradient] = found.gradients[card.key];
    return { graph: { cards, edges }, program, values: found.values };
  };

  // -- What a figure says, as conf/drawgrad/play.py and player.py write it ------------------------------------------
  const LISTED = 6, ADDED = 5, TITLES = { leaf: "a leaf", constant: "needs no gradient", function: "" };
  const listSome = parts => [...parts.slice(0, LISTED), ...parts.length > LISTED ? ["…"] : []].join(", ");
  const isClose = (a, b) => a === b || Math.abs(a - b) < Infinity && Math.abs(a - b) <= Math.max(1e-4 * Math.abs(a), 1e-4 * Math.abs(b), 1e-6);
  const write = x => filler({ values: { x: [x] } })("⟦vx⟧");
  const nameCards = cards => {
    const bare = cards.map(card => card.names.join(", ") || card.operation);
    const count = (list, name) => list.filter(one => one === name).length;
    return new Map(cards.map(({ key }, at) => [key, count(bare, bare[at]) < 2 ? bare[at] : `${bare[at]} #${count(bare.slice(0, at + 1), bare[at])}`]));
  };
  const mapValues = (object, change) => Object.fromEntries(Object.entries(object).map(([key, one]) => [key, change(one, key)]));
  const pick = (list, change) => Object.fromEntries(list.map((one, at) => [one.key ?? at, change(one)]).filter(([, found]) => found));

  const describe = ({ graph: { cards, edges }, program, values }) => {
    const at = new Map(cards.map(card => [card.key, card])), root = cards.find(card => card.is_root), names = nameCards(cards);
    const enter = key => [...edges.keys()].filter(which => edges[which].head === key), isConstant = key => at.get(key).kind === "constant";
    // By key, whence gradients arrive, in their order; by source, what is moved.
    const arrived = Object.fromEntries(cards.map(({ key, is_root }) => [key, is_root ? [`r${key}`] : []])), moved = { [`r${root.key}`]: [1] };
    const add = sources => sources.reduce((sum, one) => sum + moved[one][0], 0), steps = [];
    const step = (kind, card, along, to) => steps.push({ kind, card, along, to: to.map(key => ({ key, sources: [...arrived[key]] })) });
    step("leaves", root, [], []);
    for (const card of cards.filter(card => card.kind === "function").sort((a, b) => a.forward_at - b.forward_at))
      step("compute", card, enter(card.key), []);
    step("start", root, [], [root.key]);
    for (const card of cards.filter(({ key }) => !isConstant(key)).sort((a, b) => a.backward_at - b.backward_at)) {
      const along = enter(card.key).filter(which => !isConstant(edges[which].tail)), whole = add(arrived[card.key]);
      for (const { tail, head, input, derivative } of along.map(which => edges[which])) {
        moved[`${head}.${input}`] = [whole * derivative];
        arrived[tail].push(`${head}.${input}`);
      }
      if (card.kind === "leaf") step("keep", card, [], [card.key]);
      else step("send", card, along, along.map(which => edges[which].tail));
    }
    const leaves = cards.filter(card => card.kind === "leaf"), fill = filler({ values, moved });
    const agree = leaves.filter(({ key, gradient }) => isClose(add(arrived[key]), gradient)), isKnown = agree.length === leaves.length;
    for (const card of agree) if (arrived[card.key].length > 1) card.terms = arrived[card.key].map(one => moved[one][0]);

    // All is written with places for the numbers, which are filled then.
    const mention = ({ key, names: { length } }) => `${names.get(key)}${length ? ` = ⟦v${key}⟧` : ""}`;
    const writeText = { // without gradients, if `put` gives none: one that autograd has is no sum of what was moved
      leaves: () => `Before the first operation: ${listSome(leaves.map(mention))}.`,
      compute: ({ card }) => `Forward: ${card.names.length ? mention(card) : "a result without a name"}, recorded as ${card.operation}.`,
      start: (_step, who, [total]) => `Backward starts at ${who}${total ? `, with the gradient ${total}` : ""}.`,
      keep: (_step, who, [total]) => `Backward: AccumulateGrad adds what has arrived to ${who}.grad${total ? `: ${total}` : ""}.`,
      send: ({ card, to }, who, _totals, numbers, put) => {
        const tails = to.map(({ key }) => names.get(key)), met = to.filter(({ key, sources }, which) => sources.length > 1
          && to.findIndex(one => one.key === key) === which);
        const sent = numbers ? listSome(numbers.map((one, which) => `${one} to ${tails[which]}`)) : `a gradient to ${listSome([...new Set(tails)])}`;
        return [`Backward: ${card.names.length ? `${card.operation} (${who})` : who} sends ${sent}.`, ...met.map(({ key, sources }) =>
          numbers && sources.length <= ADDED ? `At ${names.get(key)} they add up: ${put("s", sources)}.`
            : `At ${names.get(key)}, ${sources.length} have arrived and are added.`)].join(" ");
      },
    };
    const writeMoment = (one, isKnown) => {
      const put = (how, sources) => isKnown ? `⟦${how}${sources}⟧` : "", { kind, card, along, to } = one;
      const got = to.map(({ key, sources }) => [key, put("t", sources)]), totals = got.map(([, total]) => total);
      const numbers = isKnown && kind === "send" ? along.map(which => put("t", `${edges[which].head}.${edges[which].input}`)) : null;
      const about = kind === "leaves" ? cards.filter(other => other.kind !== "function") : [card];
      return { text: writeText[kind](one, names.get(card.key), totals, numbers, put), cards: about.map(({ key }) => key), edges: along, kind,
        ...to.length && { got: Object.fromEntries(got) }, ...numbers && { moved: numbers } };
    };
    // A tensor that keeps its gradient has the sum of what arrives.
    const settle = (text, { gradient }) => fill(gradient === undefined ? text : text.replace(/⟦t[^⟧]*⟧/, write(gradient)));
    const settleMoment = ({ text, got, moved, ...rest }, card) => ({ text: settle(text, card), ...rest,
      ...got && { got: mapValues(got, fill) }, ...moved && { moved: moved.map(one => fill(one)) } });
    const sumOf = ({ key, terms }) => 1 < terms.length && terms.length < ADDED ? `⟦u${arrived[key]}⟧` : "";
    const listFacts = card => {
      const { key, kind, operation, names: [name, other] } = card, sum = sumOf(card), inputs = enter(key).map(which => edges[which]);
      const letters = Object.fromEntries([...inputs.map(({ tail, input }) => ["abc"[input], at.get(tail).names[0]]), ["y", name]]);
      const sends = other ? [] : inputs.filter(({ tail }) => !isConstant(tail)).map(({ tail, input }) =>
        [`sends to ${names.get(tail)}`, RULES[operation][input].replace(/\b[abcy]\b(?!\()/g, letter => letters[letter] ?? letter)]);
      return [[TITLES[kind], names.get(key)], ["node", name ? operation : ""], ["value", name ? `⟦v${key}⟧` : ""],
        ["gradient", kind === "leaf" ? `${sum && `${sum} = `}⟦t${arrived[key]}⟧` : ""], ...sends].filter(([, text]) => text);
    };
    const whole = { text: "", cards: [], edges: [], kind: "whole" }, moments = [...steps.map(one => writeMoment(one, true)), whole];
    const facts = cards.map(card => ({ key: card.key, card, facts: listFacts(card) })), hasPlace = text => text.includes("⟦") && text;
    const live = {
      ...program, edges: pick(edges, ({ head, input, derivative }) => derivative !== undefined && `${head}.${input}`),
      terms: pick(leaves, card => sumOf(card) && `= ${sumOf(card)}`), gradients: leaves.map(({ key }) => `${key}`),
      values: cards.filter(card => card.names.length).map(({ key }) => `${key}`), leaves: pick(leaves, ({ key }) => `Value of ${names.get(key)}`),
      texts: pick(moments, ({ text }) => hasPlace(text)), moved: pick(moments, one => one.moved), got: pick(moments, one => one.got),
      notes: pick(facts, one => pick(one.facts, ([, text]) => hasPlace(text))),
      here: `Computed in your browser: ${mention(root)}.`
        + (Object.values(program.nodes).some(([kind]) => kind === "constant") ? " Constants stay as they are." : ""),
    };
    return {
      name: "typed", steps: [...steps.map(one => settleMoment(writeMoment(one, isKnown), one.card)), whole],
      cards: pick(facts, ({ card, facts }) => facts.map(([title, text]) => [title, settle(text, card)])),
      words: { pause: "Pause", value: "value", gradient: "gradient", saved: "saved" }, live,
    };
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
        const one = pick(names.slice(-3)), other = pick(names.filter(name => name !== one));
        const forms = [`${one} * ${other}`, `${one} * ${other}`, `${one} + ${other}`, `${one} - ${other}`, `${one}**2`, `relu(${one})`, `max(${one}, ${other})`];
        names.push(name);
        lines.push(`${name} = ${pick(forms)}`);
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
