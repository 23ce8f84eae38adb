"use strict";
// Draws the report from the one block of data in the page. Nothing is fetched; names are set as text, never as markup.
// The page of `bica serve` uses the same file: it waits (data-waits) until that page starts it, with what the page adds.
(() => {
  const block = document.getElementById("bica-data");
  const data = block ? JSON.parse(block.textContent) : { sensors: [], sources: [], words: { sensor: ["sensor", "sensors"], source: ["source", "sources"], row: ["row", "rows"] } };
  const { sensors, sources, words } = data;
  const SVG = "http://www.w3.org/2000/svg";
  const PAGE = 20; // lines of a list that are drawn at once
  const state = { query: "", sort: "probability", sensor: -1, least: 1, shown: PAGE, open: -1, focus: null };
  const place = (id) => document.getElementById(id);

  // ---- small helpers ------------------------------------------------------------------------------------------------
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    return fill(element, attributes, children);
  }
  function draw(tag, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }
  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  const named = (text) => make("bdi", {}, text);
  const withCode = (text) => text.split("`").map((part, k) => (k % 2 ? make("code", {}, part) : named(part)));
  const many = (n, [one, more]) => `${count(n)} ${n === 1 ? one : more}`;
  const big = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  function count(n) {
    if (n >= 100 || Number.isInteger(n)) return whole.format(n);
    return n >= 0.05 || n === 0 ? n.toFixed(1) : n >= 0.001 ? n.toFixed(3) : n.toExponential(0);
  }
  function rate(p) {
    if (p === 0) return "0";
    return p < 0.001 ? p.toPrecision(2).replace("e-", "e−") : p.toFixed(p < 0.1 ? 4 : 3);
  }
  const percent = (share) => `${share > 0 && share < 0.01 ? "< 1" : share < 1 && share > 0.99 ? "> 99" : Math.round(100 * share)} %`;
  const cut = (text, n) => (text.length > n ? `${text.slice(0, Math.max(1, n - 1))}…` : text);
  const say = (text) => { place("live").textContent = text; };
  const fold = (text) => text.toLowerCase().normalize("NFKD");

  function section(id, title, lede, ...content) {
    const heading = `${id}-title`;
    place("contents").append(make("a", { href: `#${id}` }, title));
    const part = make("section", { id, "aria-labelledby": heading }, make("h2", { id: heading }, title),
      lede ? make("p", { class: "lede" }, lede) : null, ...content);
    place("report").append(part);
    return part;
  }
  function showTip(event, text) {
    const tip = place("tip");
    tip.textContent = text;
    tip.hidden = false;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${y}px`;
  }
  const hideTip = () => { place("tip").hidden = true; };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const redrawn = []; // what must be drawn again when the width or the colours change
  const relabelled = []; // what must be written again when a name changes
  const added = { detail: () => null, row: null, after: {} }; // what a live page adds

  const reachedBy = sensors.map(() => []);
  sources.forEach((source, j) => source.on.forEach((i) => reachedBy[i].push(j)));
  const sensorPlace = new Map(sensors.map((name, i) => [fold(name), i]));
  let sourcePlace, searched;
  function learnNames() {
    sourcePlace = new Map(sources.map((source, j) => [fold(source.name), j]));
    searched = sources.map((source) => fold([source.name, source.id, ...source.on.map((i) => sensors[i])].join("\n")));
  }
  learnNames();
  function rename(names) {
    names.forEach((name, j) => { sources[j].name = name; });
    learnNames();
    relabelled.forEach((write) => write());
    redraw();
  }

  // ---- verdict ------------------------------------------------------------------------------------------------------
  function verdict() {
    const { reasons, next } = data.verdict;
    const home = place("verdict");
    if (reasons.length) home.append(make("ul", { class: "reasons" }, reasons.map((reason) => make("li", {}, withCode(reason)))));
    home.append(make("dl", { class: "figures" }, data.figures.map(([label, value, small]) =>
      make("div", {}, make("dt", {}, label), make("dd", {}, value, small ? make("small", {}, small) : null)))));
    if (next.length) {
      home.append(make("div", { class: "next" }, make("h2", {}, "What to do next"),
        make("ul", {}, next.map(([step, command]) => make("li", {}, withCode(step), command ? [" ", make("code", {}, command)] : null)))));
    }
  }

  // ---- sources: search, sort, filter ----------------------------------------------------------------------------------
  const SORTS = {
    probability: ["probability", (a, b) => sources[b].p - sources[a].p],
    size: [`number of ${words.sensor[1]}`, (a, b) => sources[b].on.length - sources[a].on.length],
    support: ["support", (a, b) => (sources[b].support ?? -1) - (sources[a].support ?? -1)],
    name: ["name", (a, b) => sources[a].name.localeCompare(sources[b].name, "en", { numeric: true })],
  };
  const hasSupport = sources.some((source) => source.support !== null);
  const hasInterval = sources.some((source) => source.lo !== null);
  // the bars go up to the end of the longest interval, unless that of an uncertain source would make all others tiny
  const widest = Math.max(1e-9, Math.min(1.5 * Math.max(...sources.map((source) => source.p)), Math.max(...sources.map((source) => source.hi ?? source.p))));

  function chosen() {
    const query = fold(state.query).split(/\s+/).filter(Boolean);
    const found = sources.map((_, j) => j).filter((j) =>
      sources[j].on.length >= state.least
      && (state.sensor < 0 || sources[j].on.includes(state.sensor))
      && query.every((word) => searched[j].includes(word)));
    return found.sort((a, b) => SORTS[state.sort][1](a, b) || a - b);
  }
  function gauge(source) {
    const bar = make("i");
    bar.style.width = `${100 * source.p / widest}%`;
    const line = source.lo === null ? null : make("b");
    if (line) {
      line.style.left = `${100 * source.lo / widest}%`;
      line.style.width = `${100 * (source.hi - source.lo) / widest}%`;
    }
    return make("div", { class: "gauge", "aria-hidden": "true" }, bar, line);
  }
  function chips(places, most, onclick, labels = null) {
    const shown = places.length <= most + 1 ? places : places.slice(0, most);
    const list = shown.map((i, k) => make("button", { type: "button", class: `chip${i === state.sensor ? " match" : ""}`,
      title: sensors[i], onclick: () => onclick(i) }, named(sensors[i]), labels && labels[k] ? ` ${labels[k]}` : null));
    if (shown.length < places.length) list.push(make("span", { class: "chip more" }, `and ${places.length - shown.length} more`));
    return make("div", { class: "chips" }, list);
  }
  function sourceLine(j) {
    const source = sources[j];
    const opened = state.open === j;
    const line = make("tr", {},
      make("td", { class: "name" }, make("button", { type: "button", class: "link", "aria-expanded": String(opened),
        onclick: () => { state.open = opened ? -1 : j; list(); place("sources").querySelector(`[data-source="${j}"] .link`)?.focus(); } }, named(source.name))),
      make("td", { class: "num" }, rate(source.p)),
      make("td", { class: "line" }, gauge(source)),
      hasInterval ? make("td", { class: "small line" }, source.lo === null ? "" : `${rate(source.lo)} – ${rate(source.hi)}`) : null,
      hasSupport ? make("td", { class: "num", "data-label": "support" }, source.support === null ? "" : percent(source.support)) : null,
      make("td", { class: "wide" }, chips(source.on, 8, filterBy, source.reach_words)));
    line.dataset.source = j;
    return opened ? [line, detail(j)] : [line];
  }
  function detail(j) {
    const source = sources[j];
    const facts = [[source.reach ? `Reaches, while it is on` : big(words.sensor[1]), chips(source.on, 200, filterBy, source.reach_words)],
      ["Active in", `${percent(source.p)} of ${words.row[1]}${source.lo === null ? "" : ` (95 % interval ${rate(source.lo)} to ${rate(source.hi)})`}`]];
    if (source.support !== null) facts.push(["Support", source.resampled ? `returned in ${percent(source.support)} of the resamples` : `${percent(source.support)} probable, given the ${words.row[1]}`]);
    if (source.stay !== null) facts.push(["Stays on for", `${count(source.stay)} ${words.row[1]} on average`]);
    if (source.note) facts.push(["Note", named(source.note)]);
    facts.push(["Id", source.id]);
    return make("tr", { class: "detail" }, make("td", { colspan: 4 + hasSupport + hasInterval },
      make("dl", {}, facts.flatMap(([title, value]) => [make("dt", {}, title), make("dd", {}, value)])),
      make("button", { type: "button", onclick: () => look("source", j, true) }, "Show its neighbours"), added.detail(j)));
  }
  let tableBody, counter, more;
  function list() {
    const found = chosen();
    const shown = found.slice(0, state.shown);
    tableBody.replaceChildren(...shown.flatMap(sourceLine));
    const whole = many(sources.length, words.source), isChoice = found.length < sources.length;
    if (shown.length === found.length) counter.textContent = isChoice ? `${count(found.length)} of ${whole}` : whole;
    else counter.textContent = `${count(shown.length)} of ${isChoice ? `${count(found.length)} found among ${whole}` : whole} shown`;
    more.hidden = shown.length === found.length;
    more.textContent = `Show ${Math.min(PAGE * 4, found.length - shown.length)} more`;
  }
  function refresh(changes) {
    Object.assign(state, { shown: PAGE }, changes);
    list();
    say(counter.textContent);
  }
  let sensorField;
  function filterBy(i) {
    sensorField.value = sensors[i];
    refresh({ sensor: i });
    place("sources").scrollIntoView();
  }
  function sourceSection() {
    const options = Object.entries(SORTS).filter(([key]) => key !== "support" || hasSupport);
    tableBody = make("tbody");
    counter = make("p", { class: "count", id: "source-count" });
    more = make("button", { type: "button", onclick: () => { state.shown += PAGE * 4; list(); } });
    sensorField = make("input", { type: "text", list: "sensor-names", id: "filter-sensor", autocomplete: "off", placeholder: "any",
      oninput: (event) => {
        const typed = fold(event.target.value.trim());
        const i = sensorPlace.get(typed) ?? -1;
        event.target.setAttribute("aria-invalid", String(Boolean(typed) && i < 0));
        refresh({ sensor: i });
      } });
    const headings = [big(words.source[0]), "Probability", "", ...(hasInterval ? ["95 % interval"] : []), ...(hasSupport ? ["Support"] : []), big(words.sensor[1])];
    section("sources", big(words.source[1]),
      `Every hidden ${words.source[0]} with the ${words.sensor[1]} that it switches on, and the share of ${words.row[1]} in which it is active${hasInterval ? "; the thin line is its 95 % interval" : ""}.`
      + (hasSupport ? (sources.some((source) => source.resampled) ? ` Support says how often exactly this ${words.source[0]} returned when the ${words.row[1]} were drawn again.`
        : ` Support says how probable exactly this ${words.source[0]} is, given the ${words.row[1]}.`) : ""),
      make("div", { class: "tools", role: "search" },
        make("label", {}, "Search", make("input", { type: "search", id: "search", placeholder: "name, id or part of it", oninput: (event) => refresh({ query: event.target.value }) })),
        make("label", {}, "Sort by", make("select", { id: "sort", onchange: (event) => refresh({ sort: event.target.value }) },
          options.map(([key, [title]]) => make("option", { value: key }, title)))),
        make("label", {}, `With ${words.sensor[0]}`, sensorField),
        make("label", {}, `${big(words.sensor[1])}, at least`, make("input", { type: "number", id: "least", min: 1, value: 1, oninput: (event) => refresh({ least: Math.max(1, Number(event.target.value) || 1) }) })),
        make("button", { type: "button", class: "quiet", id: "clear", onclick: clear }, "Clear")),
      make("datalist", { id: "sensor-names" }, sensors.map((name) => make("option", { value: name }))),
      counter,
      make("table", { class: "cards list" }, make("thead", {}, make("tr", {}, headings.map((title, k) =>
        make("th", { scope: "col", class: title === "Probability" || title === "Support" ? "num" : null }, title || make("span", { class: "unseen" }, "bar"))))), tableBody),
      make("div", { class: "more-row" }, more));
    list();
    relabelled.push(list);
  }
  function clear() {
    for (const id of ["search", "filter-sensor"]) place(id).value = "";
    place("sort").value = "probability";
    place("least").value = 1;
    refresh({ query: "", sort: "probability", sensor: -1, least: 1, open: -1 });
    place("search").focus();
  }

  // ---- matrix ---------------------------------------------------------------------------------------------------------
  const FEW_COLUMNS = 12; // with larger cells
  function matrixSection() {
    const lines = data.order.sources, columns = data.order.sensors;
    const canvas = make("canvas", { tabindex: 0, role: "img", "aria-describedby": "matrix-help",
      "aria-label": `Matrix of ${many(lines.length, words.source)} by ${many(columns.length, words.sensor)}` });
    const home = make("div", { class: "board" }, canvas);
    const on = lines.map((j) => new Set(sources[j].on));
    const linePlace = new Map(lines.map((j, row) => [j, row]));
    let size = 1, height = 1, left = 0, above = 0, cursor = null;

    const font = (pixels) => `${pixels}px system-ui, sans-serif`;
    function measure() {
      const width = home.clientWidth || 800;
      const pen = canvas.getContext("2d");
      pen.font = font(13);
      const widest = (names, most) => Math.max(24, ...names.map((name) => Math.min(pen.measureText(name).width, most)));
      const roomy = columns.length <= 60;
      left = lines.length <= 80 ? Math.min(widest(sources.map((source) => source.name), 190) + 16, width * 0.34) : 0;
      size = Math.min(columns.length <= FEW_COLUMNS ? 34 : 24, (width - left - 2) / Math.max(1, columns.length));
      if (roomy) size = Math.max(size, 10.5);
      const fewest = Math.max(size, 1);
      height = lines.length <= 80 ? Math.max(15, fewest) : Math.max(Math.min(fewest, 900 / lines.length), 640 / lines.length, 0.7);
      above = size >= 10 ? widest(sensors, 150) + 14 : 0;
    }
    function paint() {
      measure();
      const dense = devicePixelRatio || 1;
      const width = Math.ceil(left + size * columns.length + 2), tall = Math.ceil(above + height * lines.length + 2);
      canvas.width = width * dense;
      canvas.height = tall * dense;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${tall}px`;
      const pen = canvas.getContext("2d");
      pen.scale(dense, dense);
      pen.clearRect(0, 0, width, tall);
      const gap = Math.min(size, height) > 6 ? 1.5 : Math.min(size, height) > 3 ? 0.5 : 0;
      pen.fillStyle = colour("--cell");
      if (gap) for (let row = 0; row < lines.length; row++) for (let column = 0; column < columns.length; column++) pen.fillRect(left + column * size, above + row * height, size - gap, height - gap);
      else pen.fillRect(left, above, size * columns.length, height * lines.length);
      pen.fillStyle = colour("--accent");
      columns.forEach((i, column) => reachedBy[i].forEach((j) => {
        const row = linePlace.get(j);
        if (sources[j].reach) pen.globalAlpha = 0.25 + 0.75 * sources[j].reach[sources[j].on.indexOf(i)];
        pen.fillRect(left + column * size, above + row * height, Math.max(size - gap, 1), Math.max(height - gap, 1));
      }));
      pen.globalAlpha = 1;
      pen.font = font(size < 13 ? 11.5 : 13);
      pen.fillStyle = colour("--ink");
      pen.textBaseline = "middle";
      if (left) lines.forEach((j, row) => { pen.textAlign = "right"; pen.fillText(fitted(pen, sources[j].name, left - 12), left - 9, above + (row + 0.5) * height); });
      if (above) columns.forEach((i, column) => {
        pen.save();
        pen.translate(left + (column + 0.5) * size - gap / 2, above - 7);
        pen.rotate(-Math.PI / 2);
        pen.textAlign = "left";
        pen.fillStyle = colour("--soft");
        pen.fillText(fitted(pen, sensors[i], above - 10), 0, 0);
        pen.restore();
      });
      if (cursor) {
        pen.strokeStyle = colour("--ink");
        pen.lineWidth = 2;
        pen.strokeRect(left + cursor[1] * size - 1, above + cursor[0] * height - 1, Math.max(size - gap, 2) + 2, Math.max(height - gap, 2) + 2);
      }
    }
    function fitted(pen, text, room) {
      let short = text;
      while (short.length > 2 && pen.measureText(short).width > room) short = cut(text, short.length - 1);
      return short;
    }
    function at(event) {
      const box = canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top - above) / height), column = Math.floor((event.clientX - box.left - left) / size);
      return row >= 0 && column >= 0 && row < lines.length && column < columns.length ? [row, column] : null;
    }
    const told = ([row, column]) => `${sources[lines[row]].name} ${on[row].has(columns[column]) ? "switches on" : "does not reach"} ${sensors[columns[column]]}`;
    canvas.addEventListener("mousemove", (event) => { const cell = at(event); if (cell) showTip(event, told(cell)); else hideTip(); });
    canvas.addEventListener("mouseleave", hideTip);
    canvas.addEventListener("click", (event) => { const cell = at(event); if (cell) look("source", lines[cell[0]], true); });
    canvas.addEventListener("blur", () => { cursor = null; paint(); });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (event.key === "Enter" && cursor) look("source", lines[cursor[0]], true);
      if (!step || !lines.length) return;
      event.preventDefault();
      const [row, column] = cursor ?? [0, -step[1] || 0];
      cursor = [Math.min(lines.length - 1, Math.max(0, row + step[0])), Math.min(columns.length - 1, Math.max(0, column + step[1]))];
      paint();
      say(told(cursor));
    });
    section("matrix", "Matrix", `One line per ${words.source[0]}, one column per ${words.sensor[0]}; filled where the ${words.source[0]} switches the ${words.sensor[0]} on. Both are ordered so that those with much in common are neighbours.`,
      home, make("p", { class: "small noprint", id: "matrix-help" }, "Point at a cell to read it, or use the arrow keys; Enter or a click shows the neighbours. The list above says the same in words."));
    redrawn.push(paint);
  }

  // ---- network --------------------------------------------------------------------------------------------------------
  const ALL_SOURCES = 26, ALL_SENSORS = 40, NEAR = 22; // more nodes than that in a column cannot be read
  const canShowAll = sources.length <= ALL_SOURCES && sensors.length <= ALL_SENSORS && sources.length > 0;
  let networkHome, networkField, networkTitle;
  function look(kind, number, go = false) {
    state.focus = kind === null ? null : { kind, number };
    networkField.value = kind === null ? "" : kind === "source" ? sources[number].name : sensors[number];
    network();
    if (go) {
      place("network").scrollIntoView();
      networkField.focus({ preventScroll: true });
    }
  }
  const nodeOf = {
    source: (j) => ({ kind: "source", number: j, name: sources[j].name, links: sources[j].on, label: rate(sources[j].p) }),
    sensor: (i) => ({ kind: "sensor", number: i, name: sensors[i], links: reachedBy[i], label: many(reachedBy[i].length, words.source) }),
  };
  const otherKind = { source: "sensor", sensor: "source" };
  function neighbourhood({ kind, number }) {
    const first = nodeOf[kind](number), middle = otherKind[kind];
    const near = [...first.links].sort((a, b) => (middle === "source" ? sources[b].p - sources[a].p : reachedBy[b].length - reachedBy[a].length) || a - b);
    const shownNear = new Set(near.slice(0, NEAR));
    const shared = new Map();
    for (const between of near) for (const far of nodeOf[middle](between).links) if (far !== number) shared.set(far, (shared.get(far) ?? 0) + 1);
    const far = [...shared.keys()].sort((a, b) => shared.get(b) - shared.get(a) || a - b);
    const order = (list, kindOf) => { const rank = new Map((kindOf === "source" ? data.order.sources : data.order.sensors).map((x, k) => [x, k])); return list.sort((a, b) => rank.get(a) - rank.get(b)); };
    return {
      columns: [[first], order([...shownNear], middle).map(nodeOf[middle]), order(far.slice(0, NEAR), kind).map(nodeOf[kind])],
      left: [0, near.length - shownNear.size, Math.max(0, far.length - NEAR)],
      words: [words[kind], words[middle], words[kind]],
    };
  }
  function network() {
    const focus = state.focus ?? (canShowAll ? null : { kind: "source", number: 0 });
    const whole = { columns: [data.order.sources.map(nodeOf.source), data.order.sensors.map(nodeOf.sensor)], left: [0, 0], words: [words.source, words.sensor] };
    const view = focus ? neighbourhood(focus) : whole;
    networkTitle.textContent = focus ? neighbourWords(focus, view) : `All ${many(sources.length, words.source)} and ${many(sensors.length, words.sensor)}.`;
    networkHome.replaceChildren(picture(view, focus));
  }
  function neighbourWords({ kind, number }, view) {
    const [, near, far] = view.columns;
    const n = [near.length + view.left[1], far.length + view.left[2]];
    const name = kind === "source" ? sources[number].name : sensors[number];
    return kind === "source"
      ? `${name} switches on ${many(n[0], words.sensor)}, ${n[1] ? `which ${many(n[1], ["other " + words.source[0], "other " + words.source[1]])} also reach${n[1] === 1 ? "es" : ""}` : `which no other ${words.source[0]} reaches`}.`
      : `${name} is switched on by ${many(n[0], words.source)}, which ${n[1] ? `also reach ${many(n[1], ["other " + words.sensor[0], "other " + words.sensor[1]])}` : `reach nothing else`}.`;
  }
  function picture({ columns, left, words: titles }, focus) {
    const width = Math.max(280, networkHome.clientWidth || 800), gap = 27, top = 34;
    const most = Math.max(...columns.map((column, k) => column.length + (left[k] ? 1 : 0)));
    const tall = top + most * gap + 10, narrow = width < 560;
    const x = columns.length === 2 ? [width * 0.36, width * 0.64] : [narrow ? 8 : width * 0.2, width * (narrow ? 0.4 : 0.46), width * (narrow ? 0.72 : 0.72)];
    const y = (k, line) => top + ((most - columns[k].length - (left[k] ? 1 : 0)) / 2 + line + 0.5) * gap;
    const where = new Map();
    columns.forEach((column, k) => column.forEach((node, line) => where.set(`${k}${node.kind}${node.number}`, [x[k], y(k, line)])));
    const edges = [], nodes = [];
    for (let k = 1; k < columns.length; k++) columns[k].forEach((node) => columns[k - 1].forEach((other) => {
      if (!other.links.includes(node.number)) return;
      const [fromX, fromY] = where.get(`${k - 1}${other.kind}${other.number}`), [toX, toY] = where.get(`${k}${node.kind}${node.number}`);
      const start = k === 2 && !narrow ? fromX + 18 + 7.3 * Math.min(other.name.length + (other.kind === "source" ? other.label.length + 3 : 0), Math.floor(width * 0.24 / 7.3)) : fromX;
      const middle = (start + toX) / 2;
      edges.push(draw("path", { class: `edge${focus && k === 1 ? " hot" : ""}`, d: `M${start} ${fromY}C${middle} ${fromY} ${middle} ${toY} ${toX} ${toY}`, "data-ends": `${other.kind}${other.number} ${node.kind}${node.number}` }));
    }));
    columns.forEach((column, k) => {
      const toLeft = columns.length === 2 ? k === 0 : k === 0 && !narrow;
      const room = narrow ? (columns.length === 2 ? width * 0.34 : k === 0 ? width * 0.36 : width * 0.26) : columns.length === 2 ? width * 0.34 : k === 0 ? width * 0.18 : width * 0.24;
      nodes.push(draw("text", { class: "dim", x: x[k] + (toLeft ? -9 : k === 0 && narrow ? -6 : 9), y: 16, "text-anchor": toLeft ? "end" : "start" }, big(titles[k][k === 0 && focus ? 0 : 1])));
      column.forEach((node, line) => nodes.push(nodeMark(node, x[k], y(k, line), toLeft, room, focus)));
      if (left[k]) nodes.push(draw("text", { class: "dim", x: x[k] + 12, y: y(k, column.length) + 4 }, `and ${left[k]} more`));
    });
    const svg = draw("svg", { width, height: tall, viewBox: `0 0 ${width} ${tall}`, role: "group", "aria-label": networkTitle.textContent }, edges, nodes);
    return svg;
  }
  function nodeMark(node, x, y, toLeft, room, focus) {
    const above = x < 20; // no room beside it
    const own = focus && node.kind === focus.kind && node.number === focus.number;
    const label = node.kind === "source" && room > 150 ? `${node.name} · ${node.label}` : node.name;
    const key = `${node.kind}${node.number}`;
    const lit = (on) => networkHome.querySelectorAll(".edge").forEach((edge) => { if (edge.dataset.ends.split(" ").includes(key)) edge.classList.toggle("hot", on || Boolean(focus && edge.dataset.ends.split(" ").includes(`${focus.kind}${focus.number}`))); });
    const mark = node.kind === "source" ? draw("circle", { class: "source", cx: x, cy: y, r: own ? 8 : 6 }) : draw("rect", { class: "sensor", x: x - 5, y: y - 5, width: 10, height: 10 });
    const group = draw("g", { class: `node${own ? " focus" : ""}`, tabindex: 0, role: "button",
      "aria-label": `${words[node.kind][0]} ${node.name}, ${node.label}; show its neighbours` },
    draw("rect", { class: "ring", x: toLeft ? x - room : x - 10, y: y - 12, width: room + 10, height: 24, rx: 6 }), mark,
    draw("text", { x: above ? x - 7 : x + (toLeft ? -12 : 12), y: above ? y - 13 : y + 4.5, "text-anchor": toLeft ? "end" : "start" }, cut(label, Math.floor(room / 7.3))), draw("title", {}, `${node.name} (${node.label})`));
    const go = () => { look(node.kind, node.number); networkHome.querySelector(".node.focus")?.focus(); say(networkTitle.textContent); };
    group.addEventListener("click", go);
    group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); go(); } });
    for (const [name, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]]) group.addEventListener(name, () => lit(on));
    return group;
  }
  function networkSection() {
    networkHome = make("div", { class: "board" });
    networkTitle = make("p", { class: "count", id: "network-words" });
    networkField = make("input", { type: "text", id: "network-focus", list: "all-names", autocomplete: "off", placeholder: canShowAll ? "everything" : "a name", oninput: (event) => {
      const typed = fold(event.target.value.trim());
      const [j, i] = [sourcePlace.get(typed), sensorPlace.get(typed)];
      if (!typed) look(null);
      else if (j !== undefined || i !== undefined) { state.focus = j !== undefined ? { kind: "source", number: j } : { kind: "sensor", number: i }; network(); say(networkTitle.textContent); }
      event.target.setAttribute("aria-invalid", String(Boolean(typed) && j === undefined && i === undefined));
    } });
    section("network", "Network", canShowAll ? `Which ${words.source[0]} reaches which ${words.sensor[0]}. Choose one to see it with its neighbours alone.`
      : `There are too many to draw all at once, so one ${words.source[0]} or ${words.sensor[0]} is shown with its neighbours. Choose another by clicking it, or by its name.`,
    make("div", { class: "tools" }, make("label", {}, "Neighbours of", networkField), canShowAll ? make("button", { type: "button", class: "quiet", id: "network-all", onclick: () => look(null) }, "Show all") : null),
    make("datalist", { id: "all-names" }),
    make("div", { class: "legend", "aria-hidden": "true" }, make("span", {}, make("i", { class: "key round" }), words.source[0]), make("span", {}, make("i", { class: "key square" }), words.sensor[0])),
    networkTitle, networkHome);
    const offer = () => place("all-names").replaceChildren(...[...sources.map((source) => source.name), ...sensors].map((name) => make("option", { value: name })));
    offer();
    redrawn.push(network);
    relabelled.push(offer);
  }

  // ---- patterns -------------------------------------------------------------------------------------------------------
  const DOTS = 26; // sensors that are drawn as dots; more are named
  function patternSection() {
    const { list: patterns, other, n_rows: n, n_draws: draws, masked } = data.patterns;
    const used = data.order.sensors.filter((i) => patterns.some((pattern) => pattern.on.includes(i)));
    const asDots = used.length > 0 && used.length <= DOTS && (place("report").clientWidth || 900) > 40 + used.length * 17 + 260;
    const sizes = patterns.map((pattern) => Math.max(pattern.observed ?? 0, pattern.expected)).sort((a, b) => b - a);
    const limit = sizes.length > 2 && sizes[0] > 4 * sizes[1] ? sizes[1] * 1.25 : (sizes[0] || 1) * 1.01; // room for the mark
    const told = (expected) => (draws && expected < n / draws ? `< ${count(n / draws)}` : count(expected));
    const line = (label, observed, expected, quiet = false) => {
      const top = Math.max(limit, 1e-9), value = observed ?? 0;
      const bar = make("i"), mark = make("b");
      bar.style.width = `${Math.min(100, 100 * value / top)}%`;
      mark.style.left = `${Math.min(99.5, 100 * expected / top)}%`;
      return make("tr", {}, make("td", { class: "wide" }, label),
        make("td", { class: "wide" }, quiet ? null : make("div", { class: `bar${value > top ? " cut" : ""}`, "aria-hidden": "true" }, bar, expected > top && value > top ? null : mark)),
        make("td", { class: "num", "data-label": "observed" }, observed === null ? `< ${data.small}` : count(observed)),
        make("td", { class: "num", "data-label": "expected" }, told(expected)));
    };
    const label = (pattern) => {
      if (!pattern.on.length) return make("span", { class: asDots ? "dots" : "" }, asDots ? used.map(() => make("i")) : `every ${words.sensor[0]} is quiet`, asDots ? make("span", { class: "unseen" }, `every ${words.sensor[0]} is quiet`) : null);
      const names = pattern.on.map((i) => sensors[i]);
      if (!asDots) return chips(pattern.on, 6, filterBy);
      return make("span", { class: "dots", title: names.join(", ") }, used.map((i) => make("i", { class: pattern.on.includes(i) ? "on" : null })), make("span", { class: "unseen" }, names.join(" · ")));
    };
    const heads = asDots ? make("span", { class: "dots heads" }, used.map((i) => make("span", { title: sensors[i] }, named(cut(sensors[i], 22))))) : big(words.sensor[1]) + " that are on";
    section("patterns", "Patterns", `Which ${words.sensor[1]} were on together, and in how many of ${many(n, words.row)}: as observed, and as the model expects.`,
      patterns.length ? null : make("p", {}, `No pattern was observed in ${data.small} ${words.row[1]} or more, so none is listed: the ${words.row[1]} are too varied to be compared one by one.`),
      !patterns.length ? null : make("div", { class: "legend", "aria-hidden": "true" }, make("span", {}, make("i", { class: "key" }), "observed"), make("span", {}, make("i", { class: "key mark" }), "expected"),
        sizes[0] > limit ? make("span", {}, make("i", { class: "break" }), "the bar goes on; its number is beside it") : null),
      !patterns.length ? null : make("table", { class: `cards patterns${asDots ? "" : " named"}` }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, heads), make("th", { scope: "col" }, make("span", { class: "unseen" }, "bar")), make("th", { scope: "col", class: "num" }, "Observed"), make("th", { scope: "col", class: "num" }, "Expected"))),
        make("tbody", {}, patterns.map((pattern) => line(label(pattern), pattern.observed, pattern.expected)),
          make("tr", {}, make("td", { class: "wide", colspan: 2 }, make("span", { class: "small" }, `everything else: ${other.n_patterns ? many(other.n_patterns, ["more distinct pattern was", "more distinct patterns were"]) : "no other pattern was"} observed`)),
            make("td", { class: "num", "data-label": "observed" }, count(other.observed)), make("td", { class: "num", "data-label": "expected" }, count(other.expected))))),
      masked && patterns.length ? make("p", { class: "small" }, `Patterns of fewer than ${data.small} ${words.row[1]} are not listed, so that nobody can be recognised; they are counted under “everything else”.`) : null,
      draws && patterns.length ? make("p", { class: "small" }, `The model is too large for exact sums; the expected numbers are estimated from ${count(draws)} simulated ${words.row[1]}.`) : null);
  }

  // ---- fit, noise -----------------------------------------------------------------------------------------------------
  function pull(z, most) {
    const bar = make("i", { class: z < 0 ? "less" : null }), width = Math.min(50, 50 * Math.abs(z) / most);
    bar.style.left = z < 0 ? `${50 - width}%` : "50%";
    bar.style.width = `${width}%`;
    return make("div", { class: "pull", "aria-hidden": "true" }, bar);
  }
  function oddTable(caption, lines, label) {
    const most = Math.max(4, ...lines.map((line) => Math.abs(line.z ?? 0)));
    return make("div", {}, make("h3", {}, caption), make("div", { class: "scroll" }, make("table", { class: "odd" }, make("thead", {}, make("tr", {}, [big(words.sensor[1]), "Observed", "Expected", "", "More than chance?"].map((title, k) => make("th", { scope: "col", class: k === 1 || k === 2 ? "num" : null }, title || make("span", { class: "unseen" }, "deviation"))))),
      make("tbody", {}, lines.map((line) => make("tr", {}, make("td", {}, label(line)), make("td", { class: "num" }, line.observed === null ? `< ${data.small}` : count(line.observed)), make("td", { class: "num" }, count(line.expected)),
        make("td", {}, line.z === null ? null : pull(line.z, most)), make("td", { class: "small" }, line.odd ? "yes" : "no")))))));
  }
  function fitSection() {
    const parts = [];
    const tested = data.pairs ? `${count(data.pairs.n_tests)} ${words.sensor[1]} and pairs of ${words.sensor[1]}` : "";
    if (data.pairs) parts.push(make("p", {}, `${data.pairs.n_odd ? `${count(data.pairs.n_odd)} of ${tested} ${data.pairs.n_odd === 1 ? "is" : "are"}` : `None of ${tested} is`} on more often or less often than chance explains (5 % level, corrected for all of them).`));
    if (data.pairs?.list.length) parts.push(oddTable(`Pairs of ${words.sensor[1]} furthest from the model`, data.pairs.n_odd ? data.pairs.list : data.pairs.list.slice(0, 5), (pair) => make("div", { class: "chips" }, (pair.a === pair.b ? [pair.a] : [pair.a, pair.b]).map((i) => make("button", { type: "button", class: "chip", title: sensors[i], onclick: () => filterBy(i) }, named(sensors[i]))))),
      make("p", { class: "small" }, "The bar is the deviation in standard errors: to the right, more often than expected; to the left, less often."));
    if (data.odd_patterns.length) parts.push(oddTable("Patterns furthest from the model", data.odd_patterns, (pattern) => pattern.on.length ? chips(pattern.on, 6, filterBy) : `every ${words.sensor[0]} is quiet`));
    for (const fact of data.fit_facts) parts.push(make("p", {}, named(fact)));
    section("fit", "Fit", `Where the ${words.row[1]} differ most from what the model expects.`, ...parts);
  }
  function noiseSection() {
    const { false_alarm: alarms, miss: misses, words: sentence } = data.noise;
    const single = !Array.isArray(alarms) && !Array.isArray(misses);
    const of = (rates, i) => (Array.isArray(rates) ? rates[i] : rates);
    const parts = [make("p", {}, sentence)];
    if (data.observed || !single) {
      const columns = [...(data.observed ? ["On", "On, by the model"] : []), ...(single ? [] : ["False alarms", "Misses"]), big(words.source[1])];
      const order = sensors.map((_, i) => i).sort((a, b) => single ? b_off(b) - b_off(a) || a - b : of(alarms, b) + of(misses, b) - of(alarms, a) - of(misses, a) || a - b);
      function b_off(i) { return Math.abs(data.observed.z[i]); }
      const body = make("tbody");
      let shown = 20;
      const button = make("button", { type: "button", onclick: () => { shown += 200; write(); } });
      const most = Math.max(1e-9, ...sensors.map((_, i) => Math.max(of(alarms, i), of(misses, i))));
      const cell = (p) => { const bar = make("i"); bar.style.width = `${100 * p / most}%`; return make("td", { class: "num" }, rate(p), make("div", { class: "gauge", "aria-hidden": "true" }, bar)); };
      const write = () => {
        body.replaceChildren(...order.slice(0, shown).map((i) => make("tr", {}, make("td", { class: "name" }, named(sensors[i])),
          data.observed ? [make("td", { class: "num" }, `${(100 * data.observed.on[i]).toFixed(1)} %`), make("td", { class: "num" }, `${(100 * data.observed.expected[i]).toFixed(1)} %`)] : null,
          single ? null : [cell(of(alarms, i)), cell(of(misses, i))], make("td", { class: "num" }, String(reachedBy[i].length)))));
        button.hidden = shown >= sensors.length;
        button.textContent = `Show ${Math.min(200, sensors.length - shown)} more`;
      };
      write();
      parts.push(make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, big(words.sensor[0])), columns.map((title) => make("th", { scope: "col", class: "num" }, title)))), body)), make("div", { class: "more-row" }, button));
    }
    section("noise", "Noise", `How often ${words.sensor[1]} err: a false alarm shows 1 where nothing is active, a miss shows 0 where something is.${data.observed && single ? ` Below, how often each ${words.sensor[0]} was on, and how often the model expects it; the largest differences first.` : ""}`, ...parts);
  }

  // ---- activity over time ---------------------------------------------------------------------------------------------
  function activitySection() {
    const { n_bins: n, shares, n_rows: rows, ticks, note } = data.activity;
    const bytes = Uint8Array.from(atob(shares), (letter) => letter.charCodeAt(0));
    const tallest = bytes.reduce((most, value) => Math.max(most, value), 1);
    const home = make("div", { class: "strips" });
    let shown = 20;
    const button = make("button", { type: "button", onclick: () => { shown += 80; write(); } });
    function write() {
      const strips = data.activity.order.slice(0, shown).flatMap((j) => {
        const canvas = make("canvas", { role: "img", "aria-label": `Activity of ${sources[j].name} over time, between ${percent(Math.min(...levels(j)))} and ${percent(Math.max(...levels(j)))}` });
        canvas.dataset.source = j;
        canvas.addEventListener("mousemove", (event) => {
          const box = canvas.getBoundingClientRect(), bin = Math.min(n - 1, Math.floor(n * (event.clientX - box.left) / box.width));
          showTip(event, rows[bin] ? `${sources[j].name}, ${data.activity.labels[bin]}: on in ${percent(bytes[j * n + bin] / 255)} of ${many(rows[bin], words.row)}` : `${data.activity.labels[bin]}: too few ${words.row[1]} to show`);
        });
        canvas.addEventListener("mouseleave", hideTip);
        return [make("div", { class: "label", title: sources[j].name }, named(sources[j].name)), canvas];
      });
      home.replaceChildren(...strips, make("div"), make("div", { class: "axis" }, ticks.map((tick) => make("span", {}, tick))));
      button.hidden = shown >= sources.length;
      button.textContent = `Show ${Math.min(80, sources.length - shown)} more`;
      paint();
    }
    const levels = (j) => Array.from({ length: n }, (_, bin) => bytes[j * n + bin] / 255).filter((_, bin) => rows[bin]);
    function paint() {
      home.querySelectorAll("canvas").forEach((canvas) => {
        const j = Number(canvas.dataset.source), dense = devicePixelRatio || 1, width = canvas.clientWidth || 600, height = 30;
        canvas.width = width * dense;
        canvas.height = height * dense;
        const pen = canvas.getContext("2d");
        pen.scale(dense, dense);
        pen.fillStyle = colour("--accent");
        for (let bin = 0; bin < n; bin++) {
          const left = Math.floor(bin * width / n), right = Math.floor((bin + 1) * width / n), share = bytes[j * n + bin] / tallest;
          if (rows[bin]) pen.fillRect(left, height - share * (height - 3), Math.max(1, right - left), share * (height - 3));
        }
      });
    }
    section("activity", "Activity", `How often each ${words.source[0]} was active, from the first ${words.row[0]} to the last; a strip of full height is ${percent(tallest / 255)} of the ${words.row[1]}. Those that change most come first. ${note}`, home, make("div", { class: "more-row" }, button));
    write();
    redrawn.push(paint);
    relabelled.push(write);
  }

  // ---- rows, settings -------------------------------------------------------------------------------------------------
  function rowSection() {
    const { list: rows, n_rows: n } = data.rows;
    const body = make("tbody");
    let shown = 25;
    const button = make("button", { type: "button", onclick: () => { shown += 200; write(); } });
    const write = () => {
      body.replaceChildren(...rows.slice(0, shown).map((row) => make("tr", {}, make("td", { class: "num" }, added.row ? make("button", { type: "button", class: "link", "aria-label": `Explain ${words.row[0]} ${row.label}`, onclick: () => added.row(row) }, row.label) : row.label), make("td", {}, chips(row.on, 8, filterBy)),
        make("td", {}, make("div", { class: "chips" }, row.sources === null ? `no set of ${words.source[1]} produces it` : row.sources.map((j) => make("button", { type: "button", class: "chip", onclick: () => look("source", j, true) }, named(sources[j].name))))))));
      button.hidden = shown >= rows.length;
      button.textContent = `Show ${Math.min(200, rows.length - shown)} more`;
    };
    write();
    relabelled.push(write);
    section("rows", big(words.row[1]), `${rows.length < n ? `The first ${count(rows.length)} of ${many(n, words.row)}` : `All ${many(n, words.row)}`}, with the most probable ${words.source[1]} behind each.`,
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "num" }, big(words.row[0])), make("th", { scope: "col" }, `${big(words.sensor[1])} that are on`), make("th", { scope: "col" }, big(words.source[1])))), body)), make("div", { class: "more-row" }, button));
  }
  function settingSection() {
    section("settings", "Settings", "How the model was found, enough to do it again.",
      make("dl", { class: "facts" }, data.settings.flatMap(([title, value]) => [make("dt", {}, title), make("dd", {}, named(value))])),
      data.commands.length ? make("pre", { tabindex: 0, "aria-label": "Commands" }, data.commands.join("\n")) : null);
  }

  // ---- theme, width, print --------------------------------------------------------------------------------------------
  const redraw = () => redrawn.forEach((paint) => paint());
  function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    place("theme").textContent = dark ? "Light" : "Dark";
    redraw();
  }
  function watchTheme() {
    const preference = matchMedia("(prefers-color-scheme: dark)");
    setTheme(preference.matches);
    preference.addEventListener("change", (event) => setTheme(event.matches));
    place("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
    return preference;
  }
  function tell() {
    const parts = [
      ["verdict", verdict, true], ["sources", sourceSection, true], ["matrix", matrixSection, sources.length], ["network", networkSection, sources.length],
      ["patterns", patternSection, data.patterns], ["fit", fitSection, data.pairs || data.odd_patterns.length || data.fit_facts.length],
      ["noise", noiseSection, true], ["activity", activitySection, data.activity], ["rows", rowSection, data.rows], ["settings", settingSection, true],
    ];
    for (const [id, write, wanted] of parts) {
      if (wanted) write();
      added.after[id]?.();
    }
  }
  function start(more = {}) {
    Object.assign(added, more);
    tell();
    const preference = watchTheme();
    let waiting = 0, width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; cancelAnimationFrame(waiting); waiting = requestAnimationFrame(redraw); } });
    addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; state.shown = 200; list(); redraw(); });
    addEventListener("afterprint", () => setTheme(preference.matches));
    addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) { event.preventDefault(); place("search").focus(); }
      if (event.key === "Escape") hideTip();
    });
    const here = new IntersectionObserver((entries) => entries.forEach((entry) => {
      if (entry.isIntersecting) place("contents").querySelectorAll("a").forEach((link) => link.classList.toggle("here", link.getAttribute("href") === `#${entry.target.id}`));
    }), { rootMargin: "-30% 0px -60% 0px" });
    document.querySelectorAll("section").forEach((part) => here.observe(part));
    document.documentElement.dataset.ready = "yes";
  }
  if (document.currentScript.dataset.waits === undefined) start();
  else window.bica = { data, start, watchTheme, rename, make, place, named, withCode, many, big, count, rate, percent, say, fold, section, chips, look };
})();
