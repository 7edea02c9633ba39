// Graph figures that answer: a card says what is known of it, and the figure plays forward and backward, step by step.
// What is said comes from the build (conf/atlas/directives/graph_player.py). Without this script the figure is complete.
(() => {
  // What a figure is made of. A card is `there` from a step on, and `settled` when all that it receives has arrived.
  const graphOf = figure => {
    const find = selector => figure.querySelector(selector);
    const { name, steps, cards: notes, pause } = JSON.parse(find("script").textContent);
    const svg = find("svg.graph"), there = new Map(), settled = new Map();
    const cards = new Map([...svg.querySelectorAll("[data-card]")].map(card => [card.dataset.card, card]));
    const edges = [...svg.querySelectorAll("[data-edge]")];
    steps.forEach(({ kind, cards: about, got }, at) => {
      if (kind === "leaves" || kind === "compute") about.forEach(key => there.set(`${key}`, at));
      for (const key in got ?? {}) settled.set(key, at);
    });
    return { figure, find, svg, box: find(".graph-scroll"), name, steps, notes, pause, cards, edges, there, settled };
  };

  // -- Steps: what is there at each, from the first to the whole graph --------------------------------------------
  const draw = ({ steps, cards, edges, there, settled }, at) => {
    const step = steps[at], whole = at === steps.length - 1;
    const backward = ["start", "send", "keep"].includes(step.kind);
    for (const [key, card] of cards) {
      card.classList.toggle("g-later", there.get(key) > at);
      card.classList.toggle("g-ungiven", !whole && !(settled.get(key) <= at));
      card.classList.toggle("g-active", step.cards.includes(+key));
      card.querySelector(".g-got")?.remove();
      const got = steps.slice(0, whole ? 0 : at + 1).findLast(({ got }) => got?.[key])?.got[key];
      if (got && !(settled.get(key) <= at && card.querySelector(".g-gradient"))) badge(card, got);
    }
    for (const edge of edges) {
      const active = step.edges.includes(+edge.dataset.edge);
      edge.classList.toggle("g-active", active);
      edge.classList.toggle("g-back", active && backward);
      edge.classList.toggle("g-later", there.get(edge.dataset.to) > at);
    }
  };

  const badge = (card, words) => {
    const { x, y, height } = card.querySelector("rect").getBBox(), place = card.querySelector(".g-gradient");
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.textContent = `grad ${words}`;
    text.setAttribute("class", "g-got g-gradient");
    text.setAttribute("x", place?.getAttribute("x") ?? x + 9);
    text.setAttribute("y", place?.getAttribute("y") ?? y + height + 12);
    text.setAttribute("font-size", 12.5);
    card.append(text);
  };

  // Makes the figure go to a step when it is asked to, and returns what asks it.
  const steppable = graph => {
    const { find, box, name, steps, cards } = graph, last = steps.length - 1;
    const slider = find("input"), now = find(".graph-now"), link = find(".graph-link");
    const show = at => {
      const step = steps[at];
      draw(graph, at);
      slider.value = at;
      slider.ariaValueText = `${at + 1} / ${last + 1}`;
      now.textContent = step.text;
      link.hash = `${name}.${at}`;
      const active = step.cards.length ? cards.get(`${step.cards[0]}`) : null;
      if (active && box.scrollWidth > box.clientWidth) {
        const middle = active.getBoundingClientRect(), view = box.getBoundingClientRect();
        box.scrollLeft += (middle.left + middle.right - view.left - view.right) / 2;
      }
    };
    const go = at => show(Math.max(0, Math.min(last, at)));
    const on = () => go(+slider.value === last ? 0 : +slider.value + 1);

    const playing = find(".graph-play"), play = playing.ariaLabel;
    let timer;
    const stop = () => {
      clearInterval(timer);
      timer = undefined;
      playing.classList.remove("graph-playing");
      playing.ariaLabel = playing.title = play;
    };
    playing.onclick = () => {
      if (timer) return stop();
      playing.classList.add("graph-playing");
      playing.ariaLabel = playing.title = graph.pause;
      on();
      timer = setInterval(() => { go(+slider.value + 1); if (+slider.value === last) stop(); }, 1600);
    };
    find(".graph-back").onclick = () => { stop(); go(slider.value - 1); };
    find(".graph-next").onclick = () => { stop(); on(); };
    slider.oninput = () => { stop(); go(+slider.value); };
    return go;
  };

  // -- Cards: a note beside the one under the pointer or in focus, its inputs and their paths to the leaves lit ---
  const light = ({ svg, cards, edges }, key) => {
    const lit = new Set([key]), paths = new Set();
    for (const end of lit) for (const edge of edges) {
      if (edge.dataset.to === end) { lit.add(edge.dataset.from); paths.add(edge); }
    }
    svg.classList.toggle("g-lighting", key !== undefined);
    for (const [other, card] of cards) card.classList.toggle("g-lit", lit.has(other));
    for (const edge of edges) edge.classList.toggle("g-lit", paths.has(edge));
  };

  const answering = graph => {
    const { figure, svg, notes, cards, there } = graph;
    const note = document.createElement("dl");
    note.className = "graph-note";
    note.hidden = true;
    figure.append(note);
    const ask = key => {
      note.replaceChildren(...notes[key].flatMap(([title, text], number) => {
        const [dt, dd] = ["dt", "dd"].map(tag => document.createElement(tag));
        dt.textContent = number ? title : text;
        dd.textContent = number ? text : title;
        return [dt, dd];
      }));
      note.hidden = false;
      const at = cards.get(key).getBoundingClientRect(), frame = figure.getBoundingClientRect();
      note.style.left = `${Math.max(0, Math.min(at.left - frame.left, frame.width - note.offsetWidth))}px`;
      note.style.top = `${at.bottom - frame.top + 8}px`;
      light(graph, key);
    };
    const leave = () => { note.hidden = true; light(graph); };
    svg.setAttribute("role", "group");
    const order = [...cards.keys()].sort((a, b) => there.get(a) - there.get(b));
    order.forEach((key, place) => {
      const card = cards.get(key);
      card.setAttribute("role", "img");
      card.setAttribute("aria-label", notes[key].map(fact => fact.join(" ").trim()).join("; "));
      card.setAttribute("tabindex", place ? -1 : 0);
      card.onpointerenter = card.onfocus = () => ask(key);
      card.onpointerleave = card.onblur = leave;
      card.onkeydown = event => {
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") leave();
        const next = way && cards.get(order[place + way]);
        if (!next) return;
        event.preventDefault();
        card.setAttribute("tabindex", -1);
        next.setAttribute("tabindex", 0);
        next.focus();
      };
    });
  };

  // -- Size: buttons, and the pointer drags what is larger than its box -------------------------------------------
  const scalable = ({ find, svg, box }) => {
    const [, , width] = svg.getAttribute("viewBox").split(" ").map(Number);
    const zoom = factor => {
      const shown = svg.getBoundingClientRect().width * factor;
      svg.style.width = `${Math.max(width / 4, Math.min(width * 4, shown))}px`;
      svg.style.maxWidth = "none";
      dispatchEvent(new Event("resize")); // what scrolls now must be reachable by keyboard
    };
    find(".graph-less").onclick = () => zoom(0.8);
    find(".graph-more").onclick = () => zoom(1.25);
    box.onpointermove = event => {
      if (event.buttons !== 1 || event.pointerType !== "mouse") return;
      box.scrollLeft -= event.movementX;
      event.preventDefault();
    };
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

  for (const figure of document.querySelectorAll(".graph-figure > div[id]:has(.graph-bar)")) {
    const graph = graphOf(figure);
    linked(graph, steppable(graph));
    answering(graph);
    scalable(graph);
    figure.graph = graph; // for graph_live.js
  }
})();
