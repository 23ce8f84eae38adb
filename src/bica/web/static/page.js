"use strict";
// The page of `bica serve`: brings a table, follows a job, and adds to the report what can be changed and asked.
// Everything is drawn with the helpers of report.js; names are set as text, never as markup.
(() => {
  const { data, make, place, named, withCode, many, big, count, rate, percent, say, fold, section, look } = window.bica;
  const { sensors, sources, words } = data;
  const EVERY = 400; // milliseconds between two looks at a job
  const [, kind, identity] = location.pathname.split("/");
  if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token stays out of sight

  // ---- talking to the server ------------------------------------------------------------------------------------------
  async function ask(path, { body, method, type = "application/json" } = {}) {
    let answer, told;
    try {
      answer = await fetch(path, body === undefined ? { method: method ?? "GET" } : { method: method ?? "POST", body, headers: { "content-type": type } });
      told = await answer.json();
    } catch {
      throw new Error(answer && !answer.ok ? "this page is no longer known to the server; open the address that bica serve printed" : "the server does not answer; is bica serve still running?");
    }
    if (!answer.ok) throw new Error(told.error ?? "that did not work");
    return told;
  }
  const send = (path, value, method) => ask(path, { body: JSON.stringify(value ?? {}), method });
  const wait = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));
  function trouble(home) {
    const text = make("p", { class: "trouble", role: "alert", hidden: true });
    home.append(text);
    return (error) => { text.hidden = !error; text.textContent = error ? big(error.message ?? String(error)) : ""; };
  }
  async function trying(tell, work) {
    tell(null);
    try { return await work(); } catch (error) { tell(error); return null; }
  }
  const link = (href, text, attributes = {}) => make("a", { href, ...attributes }, text);
  const field = (label, input) => make("label", { class: "field" }, label, input);
  const when = (time) => (time ? new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }) : "");
  const VERDICTS = { fits: "fits", "too few rows": "too few rows to tell", doubtful: "with care", misfit: "contradicted", open: "open" };
  const verdictMark = (verdict, interrupted) => make("span", { class: `state ${verdict.replaceAll(" ", "-")}` }, make("span", { class: "dot", "aria-hidden": "true" }), interrupted ? "stopped early" : VERDICTS[verdict] ?? "not judged");
  function goHome() {
    const brand = document.querySelector(".brand");
    brand.removeAttribute("aria-hidden");
    brand.replaceChildren(make("a", { href: "/", "aria-label": "bica, start page" }, ...brand.childNodes));
  }

  // ---- a job: how far it is, and a button to stop it --------------------------------------------------------------------
  const panel = make("div", { class: "job", id: "job", hidden: true });
  let following = false;
  async function follow(finished, began = false) { // a job that ended before this page was opened is no news
    if (following) return;
    following = true;
    const title = make("h2"), what = make("p", { class: "count", id: "job-what" }), seconds = make("span", { class: "small" });
    const bar = make("progress", { "aria-label": "How far it is", max: 1 });
    const stopButton = make("button", { type: "button", id: "stop", onclick: async () => { stopButton.disabled = true; await send("/api/job/stop").catch(() => null); stopButton.disabled = false; } }, "Stop, keep the best so far");
    panel.replaceChildren(title, what, bar, make("div", { class: "row" }, stopButton, seconds));
    let last = "", job;
    for (;;) {
      try { job = await ask("/api/job"); } catch (error) { what.textContent = error.message; await wait(2000); continue; }
      if (!job || job.over) break;
      began = true;
      panel.hidden = false;
      title.textContent = big(job.title);
      what.textContent = job.stopping ? "Stopping, keeping the best so far …" : job.state === "waiting" ? "Waiting for other jobs …" : big(job.total ? `${job.what}: ${count(job.done)} of ${job.what.startsWith("compiling") ? "about " : ""}${count(job.total)}` : job.done ? `${job.what}: ${count(job.done)}` : `${job.what} …`);
      if (job.total) bar.value = job.done / job.total; else bar.removeAttribute("value");
      stopButton.textContent = job.stopping ? "End it at once, keep nothing" : job.kind === "fit" ? "Stop, keep the best so far" : "Stop";
      seconds.textContent = `${Math.round(job.seconds)} s`;
      const doing = (job.what ?? "").split(";")[0]; // scores come too often to be read out
      if (doing !== last) say((last = doing));
      await wait(EVERY);
    }
    panel.hidden = true;
    following = false;
    if (job && began) finished(job);
  }
  async function begin(task, tell, finished) {
    await trying(tell, async () => { await send("/api/job", task); await follow(finished, true); });
  }
  function opened(job, tell) {
    if (job.state === "done" && job.result.fit && job.kind === "fit") location.assign(`/fit/${job.result.fit}`);
    else if (job.error) tell(job.error);
  }

  // ---- the start page -----------------------------------------------------------------------------------------------------
  function hero(title, lead, ...more) {
    place("report").append(make("section", { class: "hero", id: "top", "aria-labelledby": "headline" }, make("h1", { id: "headline" }, named(title)), lead ? make("p", { class: "lead intro" }, lead) : null, ...more));
    return place("top");
  }
  async function startPage() {
    const home = hero("What is behind your on/off data?", "Give a table of zeros and ones: one row per moment, patient or basket, one column per sensor, symptom or item. The page finds the hidden sources behind it, says how sure it is, and answers questions.");
    const told = await ask("/api/state");
    const tell = trouble(home);
    home.append(panel);
    bringSection(told, tell);
    fitSection(told.fits, tell);
    tableSection(told.tables, tell);
    document.documentElement.dataset.ready = "yes";
    follow((job) => (job.kind === "read" && job.result ? location.assign(`/table/${job.result.table}`) : opened(job, tell)));
  }
  function bringSection({ largest, folder }, tell) {
    const go = (brought) => brought && location.assign(brought.fit ? `/fit/${brought.fit}` : `/table/${brought.table}`);
    const bring = (file) => file && trying(tell, async () => {
      if (file.size > largest) throw new Error(`${file.name} has ${count(file.size / 1e6)} MB, and files of up to ${count(largest / 1e6)} MB can be dropped here; give its path instead`);
      say(`Bringing ${file.name}`);
      drop.querySelector("strong").textContent = `Bringing ${file.name} …`;
      try { return await ask(`/api/tables?name=${encodeURIComponent(file.name)}`, { body: file, type: "application/octet-stream" }); } finally { drop.querySelector("strong").textContent = INVITATION; }
    }).then(go);
    const INVITATION = "Drop a file here, or choose one";
    const input = make("input", { type: "file", id: "file", onchange: () => bring(input.files[0]) });
    const drop = make("label", { class: "drop" }, make("strong", {}, INVITATION), make("span", {}, `CSV, TSV, Parquet, JSON lines, .npy, .npz, .mtx, or a model that bica wrote; up to ${count(largest / 1e6)} MB`), input);
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); bring(event.dataTransfer.files[0]); });
    const path = make("input", { type: "text", id: "path", placeholder: "/home/me/alarms.csv", autocomplete: "off", spellcheck: "false" });
    const form = make("form", { class: "or", onsubmit: (event) => { event.preventDefault(); trying(tell, () => send("/api/paths", { path: path.value })).then(go); } }, field("Or give the path of a file on this machine, of any size", path), make("button", { type: "submit", id: "open" }, "Open"));
    section("bring", "Bring a table", `Files that are dropped, and all fits, are kept in ${folder}. A file given by its path stays where it is.`, drop, form);
  }
  function things(headings, lines) {
    return make("table", { class: "things" }, make("thead", {}, make("tr", {}, headings.map((title) => make("th", { scope: "col" }, title || make("span", { class: "unseen" }, "actions"))))), make("tbody", {}, lines));
  }
  function forget(part, entry, name, tell) {
    let sure = false;
    const button = make("button", { type: "button", class: "quiet", "aria-label": `Forget ${name}`, onclick: () => {
      if (!sure) { sure = true; button.textContent = "Really forget?"; button.setAttribute("aria-label", `Really forget ${name}?`); return; }
      trying(tell, () => ask(`/api/${part}/${entry.id}`, { method: "DELETE" })).then((done) => done && button.closest("tr").remove());
    } }, "Forget");
    return button;
  }
  function fitSection(fits, tell) {
    const lines = fits.map((entry) => make("tr", {}, make("td", {}, link(`/fit/${entry.id}`, named(entry.title))), make("td", {}, `${many(entry.n_sources, entry.words.source ?? words.source)} behind ${many(entry.n_sensors, entry.words.sensor ?? words.sensor)}`), make("td", {}, verdictMark(entry.verdict, entry.interrupted)), make("td", { class: "small" }, when(entry.time)), make("td", {}, forget("fits", entry, entry.title, tell))));
    section("fits", "Fits", fits.length ? "" : "None yet. Every fit is kept, and listed here.", fits.length ? things(["Fit", "Found", "Verdict", "When", ""], lines) : null);
  }
  function tableSection(tables, tell) {
    if (!tables.length) return;
    const lines = tables.map((entry) => make("tr", {}, make("td", {}, link(`/table/${entry.id}`, named(entry.name))), make("td", { class: "small" }, entry.kept ? "a copy" : named(entry.path)), make("td", { class: "small" }, when(entry.time)), make("td", {}, forget("tables", entry, entry.name, tell))));
    section("tables", "Tables", "", things(["Table", "Where", "When", ""], lines));
  }

  // ---- one table: what was read, the check, and the way to a fit ----------------------------------------------------------
  const PAGE = 25;
  async function tablePage() {
    let entry;
    try { entry = await ask(`/api/tables/${identity}`); } catch (error) { lost(error); return; }
    document.title = `${entry.name} – bica`;
    const found = entry.read;
    const home = hero(entry.name, found && found.n_rows !== undefined ? `${many(found.n_rows, words.row)} of ${many(found.n_columns, words.sensor)}, ${count(found.n_distinct)} of them distinct.` : "Reading what is inside …");
    const tell = trouble(home);
    home.append(panel);
    const finished = (job) => {
      if (job.kind === "fit") opened(job, tell);
      else if (job.state === "done" && job.about.table === identity) location.reload();
      else tell(job.error);
    };
    if (found?.error) tell(found.error);
    if (found) {
      if (!found.error) checkSection(found);
      const reading = readingSection(entry, found, tell, finished);
      if (!found.error) {
        const form = learnSection(entry, reading, tell, finished);
        home.insertBefore(make("p", { class: "actions" }, make("button", { type: "button", class: "main", id: "learn-now", onclick: () => form.requestSubmit() }, "Learn the sources"), link("#columns", "Look at the columns first", { class: "button" })), panel);
      }
    }
    document.documentElement.dataset.ready = "yes";
    const present = await ask("/api/job").catch(() => null);
    if (present && !present.over) await follow(finished);
    else if (!found && present?.error && present.about.table === identity) { tell(present.error); readingSection(entry, { columns: [] }, tell, finished); }
    else if (!found) await begin({ kind: "read", table: identity }, tell, finished);
  }
  function lost(error) {
    hero("That is not here", big(error.message));
    place("top").append(make("p", { class: "actions" }, link("/", "To the start page", { class: "button" })));
    document.documentElement.dataset.ready = "yes";
  }
  function checkSection(found) {
    section("check", "Check", "What the table shows before any fit.",
      make("p", { class: `lead ${found.verdict.replaceAll(" ", "-")}` }, make("span", { class: "dot", "aria-hidden": "true" }), make("span", {}, big(found.sentence))),
      make("ul", { class: "reasons" }, [...found.hints.map((hint) => hint.sentence), ...found.notes, ...found.findings, found.forecast].map((line) => make("li", {}, withCode(big(line))))));
  }
  const ROLES = { sensor: "sensor", drop: "left out", id: "id", time: "time", weights: "how often a row counts" };
  function readingSection(entry, found, tell, finished) {
    const reading = entry.reading ?? {};
    const own = typeof reading.binarize === "object" && reading.binarize !== null ? reading.binarize : {};
    const columns = found.columns ?? [];
    const roles = new Map(), thresholds = new Map(Object.entries(own).map(([name, value]) => [name, String(value)]));
    columns.forEach((column) => roles.set(column.name, column.role ?? "sensor"));
    for (const name of reading.drop ?? []) roles.set(name, "drop");
    for (const key of ["id", "time", "weights"]) if (reading[key]) roles.set(reading[key], key);
    const all = make("input", { type: "number", step: "any", id: "threshold", placeholder: "none", value: typeof reading.binarize === "number" ? reading.binarize : "" });
    const chosen = () => {
      const told = { drop: [] };
      for (const [name, role] of roles) { if (role === "drop" || told[role]) told.drop.push(name); else if (role !== "sensor") told[role] = name; }
      const given = [...thresholds].filter(([name, value]) => value !== "" && (roles.get(name) ?? "sensor") === "sensor").map(([name, value]) => [name, Number(value)]);
      if (given.length) told.binarize = Object.fromEntries(given);
      else if (all.value !== "") told.binarize = Number(all.value);
      return told;
    };
    let shown = PAGE, query = "";
    const body = make("tbody"), more = make("button", { type: "button", onclick: () => { shown += 200; write(); } });
    function line(column) {
      const bar = make("i");
      bar.style.width = `${100 * (column.share ?? 0)}%`;
      return make("tr", {}, make("td", { class: "name" }, named(column.shown)),
        make("td", {}, make("select", { "aria-label": `What ${column.shown} is`, onchange: (event) => roles.set(column.name, event.target.value) }, Object.entries(ROLES).map(([value, title]) => make("option", { value, selected: roles.get(column.name) === value }, title)))),
        make("td", {}, make("input", { type: "text", inputmode: "decimal", "aria-label": `Threshold of ${column.shown}`, placeholder: "0 or 1", value: thresholds.get(column.name) ?? "", oninput: (event) => thresholds.set(column.name, event.target.value.trim()) })),
        make("td", { class: "num" }, column.share === undefined ? named((column.examples ?? []).join(", ")) : percent(column.share)),
        make("td", {}, column.share === undefined ? null : make("div", { class: "gauge", "aria-hidden": "true" }, bar)),
        make("td", { class: "num small" }, column.missing ? `${percent(column.missing)} missing` : ""));
    }
    function write() {
      const kept = columns.filter((column) => fold(column.shown).includes(query));
      body.replaceChildren(...kept.slice(0, shown).map(line));
      more.hidden = shown >= kept.length;
      more.textContent = `Show ${Math.min(200, kept.length - shown)} more`;
    }
    write();
    const again = make("button", { type: "button", id: "read-again", onclick: () => begin({ kind: "read", table: identity, reading: chosen() }, tell, finished) }, "Read again");
    section("columns", "What was read", "Say which columns are sensors, and from where on a measurement counts as on; then read again.",
      make("div", { class: "tools" }, columns.length > PAGE ? field("Search", make("input", { type: "search", id: "search", oninput: (event) => { query = fold(event.target.value); shown = PAGE; write(); } })) : null, make("label", {}, "On above, all columns", all), again),
      columns.length ? make("div", { class: "scroll" }, make("table", { class: "columns" }, make("thead", {}, make("tr", {}, ["Column", "What it is", "On above", "On", "", "Missing"].map((title, k) => make("th", { scope: "col", class: k === 3 || k === 5 ? "num" : null }, title || make("span", { class: "unseen" }, "bar"))))), body)) : null,
      make("div", { class: "more-row" }, more));
    return chosen;
  }
  function learnSection(entry, reading, tell, finished) {
    const temporal = make("input", { type: "checkbox", id: "temporal" });
    const noise = make("select", { id: "noise" }, [["auto", "as the rows suggest"], ["estimate", "one flip rate for all"], ["two-rates", "misses and false alarms"], ["per-sensor", "rates of every sensor"]].map(([value, title]) => make("option", { value }, title)));
    const edges = make("select", { id: "edges" }, [["auto", "as the rows suggest"], ["sure", "always switch their sensors on"], ["lossy", "fail now and then"]].map(([value, title]) => make("option", { value }, title)));
    const words_ = ["sensors", "sources", "rows"].map((key) => make("input", { type: "text", id: `${key}-are`, placeholder: { sensors: "sensors, or: symptoms", sources: "sources, or: diseases", rows: "rows, or: patients" }[key] }));
    const title = make("input", { type: "text", id: "title", placeholder: entry.name, maxlength: 100 });
    const learn = make("button", { type: "submit", class: "main", id: "learn" }, "Learn the sources");
    const go = (event) => {
      event.preventDefault();
      const given = Object.fromEntries(["sensors", "sources", "rows"].map((key, k) => [key, words_[k].value.trim()]).filter(([, word]) => word));
      scrollTo({ top: 0 });
      begin({ kind: "fit", table: identity, reading: reading(), settings: { temporal: temporal.checked, noise: noise.value, edges: edges.value, words: given, title: title.value.trim() } }, tell, finished);
    };
    const form = make("form", { onsubmit: go },
      make("label", { class: "tick" }, temporal, "The rows follow each other in time; learn from their order, too"),
      make("details", { class: "more" }, make("summary", {}, "Noise, edges, your own words, a title"),
        make("div", { class: "grid" }, field("Noise", noise), field("Edges", edges), field("Sensors are", words_[0]), field("Sources are", words_[1]), field("Rows are", words_[2]), field("Title of the fit", title))),
      learn);
    section("learn", "Learn", "The number of sources and the noise are found by themselves. It can be stopped at any time, and keeps the best so far.", form);
    return form;
  }

  // ---- a fit: the report, and what can be changed and asked ----------------------------------------------------------------
  const wishes = { known: [], forbidden: [] }; // what the next fit is told: known sources and forbidden sets, by names
  let entry = null, tell = () => null, wishHome, cells;
  const rawName = (i) => entry.sensors[i]; // as the table has it; the page shows names that can be shown
  function onThisPage([step, command]) { // what can be done here needs no command
    const several = words.source[1], rows = words.row[1];
    if (command.startsWith("bica name")) return [`Look through the ${several} below, and open those you recognise to name them.`, ""];
    if (command.startsWith("bica decode")) return [`See which ${several} were behind each of the ${rows}: the first are listed below, and “Activity” has all.`, ""];
    return [step, command];
  }
  async function fitPage() {
    cells = sensors.map(() => 0);
    data.verdict.next = data.verdict.next.map(onThisPage);
    window.bica.start({ detail: editor, row: explainRow, after: { verdict: actions, sources: learnAgain, network: explainSection, rows: compareSection } });
    try { entry = await ask(`/api/fits/${identity}`); } catch (error) { tell(error); return; }
    document.title = `${entry.title} – bica`;
    place("learn-again").disabled = !entry.table;
    if (!entry.table) place("again-note").textContent = "This model came without its table, so it cannot be learned again here.";
    place("activity-job").hidden = !entry.table;
    follow((job) => opened(job, tell));
  }
  function actions() {
    const home = place("verdict"), path = `/fit/${identity}`;
    const rows = make("input", { type: "checkbox", id: "with-rows" }), anonymous = make("input", { type: "checkbox", id: "anonymise" });
    const made = (kind, file, more = () => ({})) => () => begin({ kind, fit: identity, ...more() }, tell, (job) => (job.state === "done" ? location.assign(`${path}/${file}`) : tell(job.error)));
    home.append(make("div", { class: "actions" }, make("span", { class: "small" }, "Download"), link(`${path}/model.json`, "Model", { class: "button", download: true, id: "get-model" }),
      make("button", { type: "button", id: "activity-job", onclick: made("activity", "activity.csv") }, "Activity"),
      make("button", { type: "button", id: "get-report", onclick: made("report", "report.html", () => ({ with_rows: rows.checked, anonymise: anonymous.checked })) }, "Report"),
      make("label", { class: "tick small" }, rows, "with rows"), make("label", { class: "tick small" }, anonymous, "without names")));
    tell = trouble(home);
    home.append(panel);
  }
  function editor(j) {
    const input = make("input", { type: "text", value: sources[j].name, maxlength: 120, "aria-label": `Name of ${sources[j].name}` });
    const save = (event) => {
      event.preventDefault();
      trying(tell, () => send(`/api/fits/${identity}/names`, { [j]: input.value })).then((told) => { if (told) { entry.names[j] = input.value.trim() || null; window.bica.rename(told.names); say(`Named ${told.names[j]}`); } });
    };
    const merge = make("select", { "aria-label": `Merge ${sources[j].name} with`, onchange: (event) => { const k = Number(event.target.value); if (event.target.value !== "") wish("known", { sensors: [...new Set([...sources[j].on, ...sources[k].on])].map(rawName), name: null }, `${sources[j].name} and ${sources[k].name} are one ${words.source[0]}`, [j, k]); event.target.value = ""; } },
      make("option", { value: "" }, "merge with …"), sources.map((source, k) => (k === j ? null : make("option", { value: k }, source.name))));
    const without = make("select", { "aria-label": `Forbid an edge of ${sources[j].name}`, onchange: (event) => { if (event.target.value !== "") forbid(j, Number(event.target.value)); event.target.value = ""; } },
      make("option", { value: "" }, "never reaches …"), sources[j].on.map((i) => make("option", { value: i }, sensors[i])));
    return make("div", {}, make("form", { class: "edit", onsubmit: save }, field("Name", input), make("button", { type: "submit" }, "Save the name")),
      make("div", { class: "edit" }, make("span", { class: "small" }, "In the next fit:"), make("button", { type: "button", onclick: () => wish("known", { sensors: sources[j].on.map(rawName), name: entry.names[j] }, `${sources[j].name} is known`, [j]) }, "Keep as known"), merge, without),
      make("p", { class: "small noted", "data-about": j }, wished(j)));
  }
  function wished(j) { // what the next fit is told about a source, beside where it was said
    const all = wishes.known.filter((each) => each.about.includes(j));
    return all.length ? [named(`${big(all.map((each) => each.text).join("; "))}: `), make("a", { href: "#again" }, "learn again with that")] : [];
  }
  function forbid(j, i) {
    const left = sources[j].on.filter((other) => other !== i).map(rawName);
    const text = `${sources[j].name} does not reach ${sensors[i]}`;
    if (left.length) wish("known", { sensors: left, name: entry.names[j] }, text, [j], sources[j].on.map(rawName));
    else wish("forbidden", [rawName(i)], `no hidden ${words.source[0]} reaches ${sensors[i]}`, []);
  }
  function wish(kind, value, text, about, ban = null) {
    wishes.known = wishes.known.filter((each) => !each.about.some((j) => about.includes(j)));
    wishes[kind].push({ value, text, about, ban });
    writeWishes();
    say(`For the next fit: ${text}`);
  }
  function writeWishes() {
    const all = [...wishes.known, ...wishes.forbidden];
    wishHome.replaceChildren(...all.map((each) => make("li", {}, make("span", {}, named(big(each.text))), make("button", { type: "button", class: "quiet", "aria-label": `Take back: ${each.text}`, onclick: () => { for (const key of ["known", "forbidden"]) wishes[key] = wishes[key].filter((other) => other !== each); writeWishes(); } }, "Take back"))));
    document.querySelectorAll(".noted").forEach((home) => home.replaceChildren(...wished(Number(home.dataset.about))));
    place("again-note").textContent = all.length ? "" : `Open a ${words.source[0]} in the list above to keep it as known, to merge it with another, or to forbid an edge.`;
  }
  function learnAgain() {
    wishHome = make("ul", { class: "wishes", id: "wishes" });
    const again = make("button", { type: "button", class: "main", id: "learn-again", onclick: () => {
      const known = wishes.known.map((each) => each.value), forbidden = [...wishes.forbidden.map((each) => each.value), ...wishes.known.filter((each) => each.ban).map((each) => each.ban)];
      const before = entry.settings ?? {};
      scrollTo({ top: 0 });
      begin({ kind: "fit", table: entry.table, reading: entry.reading, names_from: identity, settings: { ...before, known: [...(before.known ?? []), ...known], forbidden: [...(before.forbidden ?? []), ...forbidden] } }, tell, (job) => opened(job, tell));
    } }, "Learn again");
    section("again", "Learn again", `Tell what you know, and let the rest be found anew. Where the ${words.row[1]} show the parts of a merged ${words.source[0]} apart all the same, these are found beside it. Names are kept where a ${words.source[0]} stays nearly the same, and this fit stays as it is.`, make("p", { class: "small", id: "again-note" }), wishHome, again);
    writeWishes();
  }

  // ---- explanations of one observation ----------------------------------------------------------------------------------
  const TOGGLES = 120; // sensors that are shown at once
  let toggleHome, answerHome, waiting = 0, asking = false, changed = false;
  const CELLS = ["off", "on", "not observed"];
  function toggle(i) {
    return make("button", { type: "button", class: "toggle", "data-cell": cells[i], "data-sensor": i, "aria-label": `${sensors[i]}: ${CELLS[cells[i]]}`, title: `${sensors[i]}: ${CELLS[cells[i]]}`, onclick: (event) => {
      cells[i] = (cells[i] + 1) % 3;
      event.currentTarget.replaceWith(toggle(i));
      toggleHome.querySelector(`[data-sensor="${i}"]`)?.focus();
      say(`${sensors[i]}: ${CELLS[cells[i]]}`);
      explainSoon();
    } }, named(sensors[i]));
  }
  function writeToggles() {
    const query = fold(place("toggle-search").value.trim());
    const order = sensors.map((_, i) => i).filter((i) => fold(sensors[i]).includes(query)).sort((a, b) => (sensors.length > TOGGLES ? (cells[b] > 0) - (cells[a] > 0) : 0) || a - b);
    toggleHome.replaceChildren(...order.slice(0, TOGGLES).map(toggle), ...(order.length > TOGGLES ? [make("span", { class: "small" }, `and ${count(order.length - TOGGLES)} more; search for them`)] : []));
  }
  const explainSoon = () => { clearTimeout(waiting); waiting = setTimeout(explain, 150); };
  async function explain() { // one question at a time; the latest state is asked about next
    if (asking) { changed = true; return; }
    asking = true;
    changed = false;
    const on = [], unknown = [];
    cells.forEach((cell, i) => { if (cell === 1) on.push(i); if (cell === 2) unknown.push(i); });
    const slow = setTimeout(() => { place("answer-note").textContent = "Computing …"; }, 400);
    const told = await trying(tell, () => send(`/api/fits/${identity}/explain`, { on, unknown }));
    clearTimeout(slow);
    place("answer-note").textContent = "";
    asking = false;
    if (changed) explain();
    else if (told) writeAnswer(told);
  }
  function share(label, p) {
    const bar = make("i");
    bar.style.width = `${100 * p}%`;
    return make("div", { class: "share" }, make("div", { class: "what" }, label), make("div", { class: "gauge", "aria-hidden": "true" }, bar), make("div", { class: "num" }, percent(p)));
  }
  const sourceChip = (j) => make("button", { type: "button", class: "chip", onclick: () => look("source", j, true) }, named(sources[j].name));
  function writeAnswer(told) {
    if (!told.explanations.length) { answerHome.replaceChildren(make("p", { class: "note" }, `No set of ${words.source[1]} produces this.`)); return; }
    const likely = told.posterior.filter(({ p }) => p >= 0.005).slice(0, 12);
    answerHome.replaceChildren(
      make("div", {}, make("h3", {}, "Likeliest explanations"), told.explanations.map(({ sources: found, p }) => share(make("div", { class: "chips" }, found.length ? found.map(sourceChip) : `no ${words.source[0]} is active`), p))),
      make("div", {}, make("h3", {}, `Probability of every ${words.source[0]}`), likely.length ? likely.map(({ source, p }) => share(sourceChip(source), p)) : make("p", { class: "small" }, "None reaches half a percent."),
        told.exact ? null : make("p", { class: "small" }, "The probabilities are approximate."),
        told.proven ? null : make("p", { class: "small" }, `Too many ${words.source[1]} are connected to try everything: a likelier explanation may be missing.`)));
    say(`${told.explanations[0].sources.map((j) => sources[j].name).join(", ") || `no ${words.source[0]}`}: ${percent(told.explanations[0].p)}`);
  }
  function explainSection() {
    if (!sources.length) return;
    toggleHome = make("div", { class: "toggles", role: "group", "aria-label": big(words.sensor[1]), tabindex: 0 });
    answerHome = make("div", { class: "two", id: "answer" });
    const search = make("input", { type: "search", id: "toggle-search", oninput: writeToggles });
    section("explain", "Explain", `Switch ${words.sensor[1]} on and see which ${words.source[1]} are behind them. A second click says that one was not observed, a third switches it off.${data.rows ? ` Or choose one of the ${words.row[1]} below.` : ""}`,
      make("div", { class: "tools" }, make("label", { hidden: sensors.length <= 30 }, `Search ${words.sensor[1]}`, search), make("button", { type: "button", id: "all-off", onclick: () => { cells.fill(0); writeToggles(); explainSoon(); } }, "All off")), toggleHome, make("p", { class: "count", id: "answer-note" }), answerHome);
    writeToggles();
    explain();
  }
  function explainRow(row) {
    cells.fill(0);
    row.on.forEach((i) => { cells[i] = 1; });
    (row.unknown ?? []).forEach((i) => { cells[i] = 2; });
    writeToggles();
    place("explain").scrollIntoView();
    toggleHome.focus({ preventScroll: true });
    explain();
  }

  // ---- two fits side by side ----------------------------------------------------------------------------------------------
  function compareSection() {
    const choice = make("select", { id: "compare-with", onchange: () => (choice.value ? trying(tell, () => ask(`/api/compare?a=${identity}&b=${choice.value}`)).then(writeComparison) : home.replaceChildren()) }, make("option", { value: "" }, "choose a fit"));
    const home = make("div", { id: "comparison" });
    section("compare", "Compare", `This fit beside another one of the same ${words.sensor[1]}.`, make("div", { class: "tools" }, make("label", {}, "Compare with", choice)), home);
    ask("/api/state").then(({ fits }) => choice.append(...fits.filter((other) => other.id !== identity && other.n_sensors === sensors.length).map((other) => make("option", { value: other.id }, `${other.title}, ${when(other.time)}, ${many(other.n_sources, words.source)}`)))).catch(() => null);
    function writeComparison(told) {
      if (!told) return;
      const [left, right] = told.sides;
      const lines = [...told.pairs].sort((a, b) => a.equal - b.equal);
      const cell = (source) => (source ? [make("div", {}, named(source.name), ` ${rate(source.p)}`), make("div", { class: "small" }, named(source.sensors.slice(0, 12).join(", ") + (source.sensors.length > 12 ? `, and ${source.sensors.length - 12} more` : "")))] : make("span", { class: "gone" }, "–"));
      const what = ({ left: a, right: b, equal }) => (equal ? `same ${words.sensor[1]}` : a && b ? `other ${words.sensor[1]}` : a ? "only in this fit" : "only in the other");
      home.replaceChildren(
        make("p", {}, `${count(told.n_equal)} of ${many(left.n_sources, words.source)} here have exactly the same ${words.sensor[1]} in the other fit, which has ${count(right.n_sources)}.`
          + (left.log_likelihood !== null && right.log_likelihood !== null ? ` Log-likelihood here ${left.log_likelihood}, there ${right.log_likelihood}.` : "")),
        make("div", { class: "scroll" }, make("table", { class: "swap" }, make("thead", {}, make("tr", {}, ["This fit", "The other", "Difference"].map((title) => make("th", { scope: "col" }, title)))), make("tbody", {}, lines.slice(0, 200).map((pair) => make("tr", {}, make("td", {}, cell(pair.left)), make("td", {}, cell(pair.right)), make("td", { class: "small" }, what(pair))))))),
        make("div", { class: "actions" }, link(`/fit/${right.id}`, "Open the other fit", { class: "button" })));
      say(`${told.n_equal} ${words.source[1]} are the same`);
    }
  }

  goHome();
  if (kind === "fit" && document.getElementById("bica-data")) fitPage();
  else {
    window.bica.watchTheme();
    if (kind === "table") tablePage();
    else if (kind === "") startPage().catch((error) => lost(error));
    else lost(new Error("there is no such page"));
  }
})();
