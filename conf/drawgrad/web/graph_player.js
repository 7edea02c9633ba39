// Graph figures that answer: a card says what is known of it, and the figure plays step by step (conf/drawgrad/player.py). Other scripts
// find a figure's graph as `graph` of its element, and hear "graph-cards" there: the cards that are asked or played.
(() => {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const backward = ({ kind }) => ["start", "send", "keep"].includes(kind);
  // What a figure is made of. A card is `there` from a step on, and `settled` when all that it receives has arrived.
  const graphOf = figure => {
    const find = selector => figure.querySelector(selector);
    const { name, steps, cards: notes, words } = JSON.parse(find("script").textContent);
    const svg = find("svg.graph"), there = new Map(), settled = new Map();
    const cards = new Map([...svg.querySelectorAll("[data-card]")].map(card => [card.dataset.card, card]));
    const edges = [...svg.querySelectorAll("[data-edge]")].map(element => {
      const [path, head] = element.children, { from, to } = element.dataset;
      const factor = element.querySelector("text")?.textContent.match(/×.*/)?.[0];
      return { element, path, head, from, to, factor, ahead: [path.getAttribute("d"), head.getAttribute("points")] };
    });
    steps.forEach(({ kind, cards: about, got }, at) => {
      if (kind === "leaves" || kind === "compute") about.forEach(key => there.set(`${key}`, at));
      for (const key in got ?? {}) settled.set(key, at);
    });
    const at = steps.length - 1, box = find(".graph-scroll");
    return { figure, find, svg, box, name, steps, notes, words, cards, edges, there, settled, at, last: at };
  };
  const make = (tag, attributes, ...parts) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    made.append(...parts);
    return made;
  };

  // -- Steps: what is there at each, from the first to the whole graph --------------------------------------------
  const gotBy = (steps, key, at) => steps.slice(0, at + 1).findLast(({ got }) => got?.[key])?.got[key];
  // `came` is the step whose gradients have reached their cards: those of `at` itself may still be on their way.
  const draw = ({ steps, cards, edges, there, settled, at, last }, came = at) => {
    const step = steps[at], whole = at === last;
    const gone = new Set(whole ? [] : steps.slice(0, at + 1).filter(backward).flatMap(({ edges }) => edges));
    for (const [key, card] of cards) {
      card.classList.toggle("g-later", there.get(key) > at);
      card.classList.toggle("g-ungiven", !whole && !(settled.get(key) <= came));
      card.classList.toggle("g-active", step.cards.includes(+key));
      card.querySelector(".g-got")?.remove();
      const got = !whole && gotBy(steps, key, came);
      if (got && !(settled.get(key) <= came && card.querySelector(".g-gradient"))) badge(card, got);
    }
    edges.forEach((edge, number) => {
      edge.element.classList.toggle("g-active", step.edges.includes(number));
      edge.element.classList.toggle("g-back", gone.has(number));
      edge.element.classList.toggle("g-later", there.get(edge.to) > at);
      turn(edge, gone.has(number));
    });
  };
  const badge = (card, words) => {
    const { x, y, height } = card.querySelector("rect").getBBox(), place = card.querySelector(".g-gradient");
    const at = { x: place?.getAttribute("x") ?? x + 9, y: place?.getAttribute("y") ?? y + height + 12 };
    card.append(make("text", { class: "g-got g-gradient", "font-size": 12.5, ...at }, `grad ${words}`));
  };
  // An edge that a gradient has gone along has its arrowhead at the other end.
  const turn = (edge, back) => {
    if (back && !edge.behind) {
      const [tip, base] = [0, 11].map(far => edge.path.getPointAtLength(far)), [d, points] = edge.ahead;
      const [x, y] = [(tip.y - base.y) / 3, (base.x - tip.x) / 3];
      const corners = [tip, { x: base.x + x, y: base.y + y }, { x: base.x - x, y: base.y - y }];
      edge.behind = [`${d}L${points.split(" ")[0]}`, corners.map(({ x, y }) => `${x},${y}`).join(" ")];
    }
    [[edge.path, "d"], [edge.head, "points"]].forEach(([part, name], at) => part.setAttribute(name, (back ? edge.behind : edge.ahead)[at]));
  };

  // -- Tokens: the gradients of a step, each on its edge: sent, multiplied on the way, and added where it arrives --
  const tokensOf = ({ svg, steps, edges, at, last }) => {
    svg.querySelectorAll(".g-token").forEach(token => token.remove());
    const { edges: along, moved = [], got = {} } = steps[at], met = {};
    return at === last || !backward(steps[at]) ? [] : along.map((number, place) => {
      const { path, from, to, factor } = edges[number], words = moved[place] ?? got[from] ?? "";
      const sent = gotBy(steps, to, at - 1) ?? words, before = met[from] ?? gotBy(steps, from, at - 1);
      met[from] = words;
      const box = make("rect", { height: 16, rx: 8 }), text = make("text", { "text-anchor": "middle", y: 12, "font-size": 12 });
      const token = make("g", { class: "g-token" }, box, text), upright = svg.matches(".graph-upright"); // below the factor, or beside it
      svg.append(token);
      const add = before && words ? `+ ${words.startsWith("\u2212") ? `(${words})` : words}` : words;
      const length = path.getTotalLength(), end = Math.min(length / 2, add.length * 3.5 + 12);
      // `part` of the way is done: what is multiplied waits at its factor for a moment
      return part => {
        const [far, says] = !factor || !words || part > 0.65 ? [part, part < 1 ? words : add]
          : part < 0.35 ? [part * 1.4, sent] : [0.5 + (part - 0.35) / 2, `${sent} ${factor}`];
        const width = Math.max(16, says.length * 7 + 10), { x, y } = path.getPointAtLength(length - far * (length - end));
        text.textContent = says;
        box.setAttribute("width", width);
        box.setAttribute("x", -width / 2);
        token.setAttribute("transform", `translate(${upright ? x - width / 2 - 3 : x} ${y})`);
      };
    });
  };
  // Shows the step at which the figure is: at once, or with its gradients under way.
  const present = (graph, moving) => {
    cancelAnimationFrame(graph.frame);
    clearTimeout(graph.arrival);
    const tokens = tokensOf(graph), place = part => tokens.forEach(token => token(part));
    if (!moving || !tokens.length || still.matches) {
      draw(graph);
      return place(1);
    }
    draw(graph, graph.at - 1);
    const begin = performance.now();
    const frame = now => {
      const part = Math.min(1, Math.max(0, (now - begin) / 1100));
      place(part);
      if (part < 1) graph.frame = requestAnimationFrame(frame);
      else graph.arrival = setTimeout(() => draw(graph), 300);
    };
    frame(begin);
  };
  // Makes the figure go to a step when it is asked to, and returns what asks it.
  const steppable = graph => {
    const { figure, find, box, name, steps, words, cards, last } = graph;
    const slider = find("input"), now = find(".graph-now"), link = find(".graph-link"), whole = [...now.childNodes];
    const show = at => {
      const step = steps[at], moving = at === graph.at + 1;
      graph.at = at;
      present(graph, moving);
      graph.tell();
      slider.value = at;
      slider.ariaValueText = `${at + 1} / ${last + 1}`;
      now.replaceChildren(...(at === last ? whole : [step.text]));
      link.hash = `${name}.${at}`;
      const active = step.cards.length ? cards.get(`${step.cards[0]}`) : null;
      const [middle, view] = [active ?? box, box].map(part => part.getBoundingClientRect());
      box.scrollLeft += (middle.left + middle.right - view.left - view.right) / 2;
    };
    const go = at => show(Math.max(0, Math.min(last, at)));
    const on = () => go(graph.at === last ? 0 : graph.at + 1);
    graph.redraw = () => go(graph.at); // from `steps` and `notes` as they are now
    const playing = find(".graph-play"), play = playing.ariaLabel;
    let timer;
    const mark = isPlaying => {
      playing.classList.toggle("graph-playing", isPlaying);
      playing.ariaLabel = playing.title = isPlaying ? words.pause : play;
    };
    const stop = () => { timer = clearTimeout(timer); mark(false); };
    playing.onclick = () => {
      if (timer) return stop();
      mark(true);
      const next = () => {
        on();
        if (graph.at === last) stop();
        else timer = setTimeout(next, 1600);
      };
      next();
    };
    const back = find(".graph-back").onclick = () => { stop(); go(graph.at - 1); };
    const forth = find(".graph-next").onclick = () => { stop(); on(); };
    slider.oninput = () => { stop(); go(+slider.value); };
    // The keys step wherever in the figure the focus is: the slider has them already, and cards lead to cards (below)
    figure.tabIndex = -1;
    figure.addEventListener("keydown", event => {
      const does = { ArrowLeft: back, ArrowRight: forth, " ": event.target.closest("button, a") ? null : playing.onclick }[event.key];
      if (!does || event.defaultPrevented || event.target === slider || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      does();
    });
    return go;
  };

  // -- Cards: a note on the one under the pointer or in focus. Lit are its inputs, back to the leaves, and of a leaf what depends on it
  const light = ({ svg, cards, edges }, key) => {
    const walk = (here, there) => {
      const lit = new Set([key]), paths = new Set();
      for (const end of lit) for (const edge of edges) {
        if (edge[here] === end) { lit.add(edge[there]); paths.add(edge); }
      }
      return [lit, paths];
    };
    const inputs = walk("to", "from"), [lit, paths] = inputs[1].size ? inputs : walk("from", "to");
    svg.classList.toggle("g-lighting", key !== undefined);
    for (const [other, card] of cards) card.classList.toggle("g-lit", lit.has(other));
    for (const edge of edges) edge.element.classList.toggle("g-lit", paths.has(edge));
  };
  // What is known of a card at the step at which the figure is.
  const factsOf = ({ notes, words, steps, there, settled, at, last }, key) => notes[key].map(([title, text]) => {
    if (at === last) return [title, text];
    if (title === words.gradient && !(settled.get(key) <= at)) return [title, gotBy(steps, key, at)];
    return [title, there.get(key) > at && [words.value, words.saved].includes(title) ? "" : text];
  }).filter(([, text]) => text);
  // Where a note on `card` covers least: below it, above it, or below the figure's controls.
  const place = ({ figure, find, cards }, note, card) => {
    const at = card.getBoundingClientRect(), frame = figure.getBoundingClientRect(), { offsetWidth: width, offsetHeight: height } = note;
    const left = Math.max(0, Math.min(at.left - frame.left, frame.width - width)), from = frame.left + left;
    const taken = [find(".graph-bar"), find(".graph-whose"), ...cards.values()].filter(other => other && other !== card);
    const covers = top => (top < Math.max(0, frame.top) || top + height > innerHeight ? 9 : 0) + taken.filter(part => {
      const other = part.getBoundingClientRect();
      return top < other.bottom && top + height > other.top && from < other.right && from + width > other.left;
    }).length;
    const tops = [at.bottom + 8, at.top - height - 8, (find(".graph-whose") ?? find(".graph-now")).getBoundingClientRect().bottom + 4];
    const [top] = tops.sort((one, other) => covers(one) - covers(other));
    note.style.left = `${left}px`;
    note.style.top = `${top - frame.top}px`;
  };
  const answering = graph => {
    const { figure, svg, steps, cards, there } = graph;
    const write = (tag, properties) => Object.assign(document.createElement(tag), properties);
    const note = write("dl", { className: "graph-note", hidden: true });
    figure.append(note);
    let waiting, asked;
    const ask = key => {
      clearTimeout(waiting);
      asked = key;
      note.replaceChildren(...factsOf(graph, key).flatMap(([title, text], number) => [
        write("dt", { textContent: number ? title : text }), write("dd", { textContent: number ? text : title }),
      ]));
      note.hidden = false;
      place(graph, note, cards.get(key));
      light(graph, key);
      graph.tell();
    };
    const leave = () => {
      clearTimeout(waiting);
      if (asked === undefined) return;
      [asked, note.hidden] = [undefined, true];
      light(graph);
      graph.tell();
    };
    graph.leave = leave;
    const label = ([key, card]) => card.setAttribute("aria-label", factsOf(graph, key).map(fact => fact.join(" ").trim()).join("; "));
    graph.tell = () => {
      [...cards].forEach(label);
      const step = steps[graph.at];
      const detail = asked === undefined ? { keys: step.cards.map(String), back: backward(step) } : { keys: [asked], back: false };
      figure.dispatchEvent(new CustomEvent("graph-cards", { detail }));
    };
    svg.role = "group";
    const order = [...cards.keys()].sort((a, b) => there.get(a) - there.get(b));
    order.forEach((key, place) => {
      const card = cards.get(key);
      card.role = "img";
      card.tabIndex = place ? -1 : 0;
      card.onfocus = () => ask(key);
      card.onpointerenter = () => { clearTimeout(waiting); waiting = setTimeout(ask, 150, key); }; // not on the way to elsewhere
      card.onpointerleave = card.onblur = leave;
      card.onkeydown = event => {
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") leave();
        const next = way && cards.get(order[place + way]);
        if (!next) return;
        event.preventDefault();
        [card.tabIndex, next.tabIndex] = [-1, 0];
        next.focus();
      };
    });
  };

  // -- A link to a step -------------------------------------------------------------------------------------------
  const linked = ({ figure, name }, go) => {
    const follow = () => {
      const [target, at] = location.hash.slice(1).split(".");
      if (target !== name || !/^\d+$/.test(at)) return;
      go(+at);
      figure.scrollIntoView({ block: "center", behavior: "instant" });
    };
    addEventListener("hashchange", follow);
    addEventListener("load", follow); // earlier, what stands above may still grow
  };
  const start = figure => {
    const graph = figure.graph = graphOf(figure);
    answering(graph);
    graph.tell();
    return [graph, steppable(graph)];
  };
  globalThis.graphPlayer = { start }; // for figures that come later
  for (const figure of document.querySelectorAll(".graph-figure > div[id]:has(.graph-bar)")) linked(...start(figure));
})();
