// The console: reads the gateway's own figures and draws them; tries a tool. Asks nothing of any other host.
"use strict";

const EVERY = 5000; // milliseconds between two looks
const ROWS = 200; // tools in the table
const BARS = 20; // tools in the plot

const at = (id) => document.getElementById(id);
const seen = { tools: [], digest: null, state: null, figures: null, key: "", paused: false, wanted: "", timer: 0 };

// ---- small makers -------------------------------------------------------------------------------------------------

function made(tag, words, attributes = {}) {
  const element = document.createElement(tag);
  if (words !== undefined) element.textContent = words;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function drawn(tag, attributes, words) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (words !== undefined) element.textContent = words;
  return element;
}

function tell(element, words) { // a screen reader hears only what changes
  if (element.textContent !== words) element.textContent = words;
}

const whole = (number) => Math.round(number).toLocaleString("en-GB");

function bytes(number) {
  const size = Math.abs(number);
  if (size < 10000) return `${whole(number)} B`;
  const power = size < 1e6 ? 1 : size < 1e9 ? 2 : 3;
  return `${(number / 1000 ** power).toFixed(size / 1000 ** power < 100 ? 1 : 0)} ${["", "kB", "MB", "GB"][power]}`;
}

function seconds(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  return number < 0.0995 ? `${(number * 1000).toFixed(number < 0.00995 ? 1 : 0)} ms` : `${number.toFixed(2)} s`;
}

function share(part, of) {
  return of > 0 ? `${(100 * part / of).toFixed(Math.abs(part / of) < 0.0995 ? 1 : 0)} %` : "–";
}

const moment = (epoch) => new Date(epoch * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

// ---- asking the gateway -------------------------------------------------------------------------------------------

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (seen.key) headers.Authorization = `Bearer ${seen.key}`;
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
}

async function said(response) { // why it was refused, in the gateway's own words
  try {
    return (await response.json()).message || `status ${response.status}`;
  } catch {
    return `status ${response.status}`;
  }
}

function wantKey(message) {
  const first = at("key").hidden;
  at("key").hidden = false;
  tell(at("key-fault"), seen.key ? message : "");
  if (first) at("key-text").focus();
}

// The text format of Prometheus, as far as the gateway writes it.
function samples(text) {
  const found = new Map();
  const unescaped = { n: "\n", "\\": "\\", '"': '"' };
  for (const line of text.split("\n")) {
    const parts = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (parts === null) continue;
    const labels = {};
    for (const [, name, value] of (parts[2] || "").matchAll(/(\w+)="((?:\\.|[^"\\])*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, (_, escaped) => unescaped[escaped] ?? escaped);
    }
    if (!found.has(parts[1])) found.set(parts[1], []);
    const value = Number(parts[3].replace("Inf", "Infinity"));
    found.get(parts[1]).push({ labels, value });
  }
  return found;
}

function sums(figures, name, label) {
  const total = new Map();
  for (const { labels, value } of figures.get(name) || []) {
    total.set(labels[label], (total.get(labels[label]) || 0) + value);
  }
  return total;
}

// Within which 95 of 100 calls ended: between two bounds of the histogram, as if evenly spread.
function within(buckets, rank) {
  const sorted = buckets.map(({ labels, value }) => [labels.le === "+Inf" ? Infinity : Number(labels.le), value])
    .sort((one, other) => one[0] - other[0]);
  const wanted = rank * (sorted.at(-1)?.[1] || 0);
  let below = 0, least = 0;
  for (const [bound, count] of sorted) {
    if (count >= wanted && count > below) {
      return bound === Infinity ? least : least + (bound - least) * (wanted - below) / (count - below);
    }
    [least, below] = [bound, count];
  }
  return NaN;
}

function byTool(figures) {
  const rows = new Map();
  const row = (name) => {
    if (!rows.has(name)) {
      rows.set(name, { name, calls: 0, well: 0, codes: new Map(), full: 0, card: 0, listing: 0, compact: 0, known: false });
    }
    return rows.get(name);
  };
  for (const tool of seen.tools) row(tool.name).known = true;
  for (const { labels, value } of figures.get("toolview_tool_calls_total") || []) {
    const tool = row(labels.tool);
    tool.calls += value;
    if (labels.code === "ok") tool.well += value;
    else tool.codes.set(labels.code, (tool.codes.get(labels.code) || 0) + value);
  }
  for (const [name, value] of sums(figures, "toolview_tool_full_bytes_total", "tool")) row(name).full = value;
  for (const [name, value] of sums(figures, "toolview_tool_view_bytes_total", "tool")) row(name).card = value;
  for (const { labels, value } of figures.get("toolview_tool_catalog_bytes") || []) {
    row(labels.tool)[labels.view === "compact" ? "compact" : "listing"] = value;
  }
  const spent = sums(figures, "toolview_tool_duration_seconds_sum", "tool");
  const counted = sums(figures, "toolview_tool_duration_seconds_count", "tool");
  const buckets = new Map();
  for (const sample of figures.get("toolview_tool_duration_seconds_bucket") || []) {
    if (!buckets.has(sample.labels.tool)) buckets.set(sample.labels.tool, []);
    buckets.get(sample.labels.tool).push(sample);
  }
  for (const tool of rows.values()) {
    tool.mean = counted.get(tool.name) ? spent.get(tool.name) / counted.get(tool.name) : NaN;
    tool.slow = within(buckets.get(tool.name) || [], 0.95);
  }
  return [...rows.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

// ---- drawing ------------------------------------------------------------------------------------------------------

function drawTiles(rows) {
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  const [calls, well, full, card] = ["calls", "well", "full", "card"].map(sum);
  const [listing, compact] = ["listing", "compact"].map(sum);
  const inFlight = [...sums(seen.figures, "toolview_calls_in_flight", "backend").values()].reduce((a, b) => a + b, 0);
  const tiles = [
    ["Tools", whole(seen.tools.length), `${whole(inFlight)} calls at the backends now`],
    ["Calls", whole(calls), `${whole(calls - well)} failed (${share(calls - well, calls)})`],
    ["Full answers", bytes(full), "what the backends answered"],
    ["Cards", bytes(card), `${share(card, full)} of the full answers`],
    [full >= card ? "Saved" : "Added", bytes(Math.abs(full - card)), well ? `${bytes((full - card) / well)} a call` : "no call yet"],
    ["Listing all tools", bytes(listing), `${bytes(compact)} in the compact view`],
  ];
  const list = at("tiles");
  tiles.forEach(([name, value, more], index) => {
    const tile = list.children[index] || list.appendChild(made("div"));
    if (!tile.firstChild) {
      tile.append(made("dt", name), made("dd"));
      tile.lastChild.append(document.createTextNode(""), made("small"));
    }
    tell(tile.firstChild, name);
    tile.lastChild.firstChild.data = value;
    tell(tile.lastChild.lastChild, more);
  });
}

function drawPlot(rows) {
  const mean = document.querySelector('input[name="per"]:checked').value === "call";
  const shown = rows.filter((row) => row.full > 0 || row.card > 0)
    .map((row) => ({ name: row.name, full: row.full / (mean ? row.well || 1 : 1), card: row.card / (mean ? row.well || 1 : 1) }))
    .sort((one, other) => Math.max(other.full, other.card) - Math.max(one.full, one.card));
  const bars = shown.slice(0, BARS);
  const figure = at("plot");
  tell(at("plot-note"), bars.length === 0 ? "No tool has answered yet. Call one below, or from an agent."
    : (shown.length > BARS ? `The ${BARS} largest of ${shown.length} tools. ` : "") + "The table of tools below holds the same figures as text.");
  if (bars.length === 0) return figure.replaceChildren();
  const width = Math.max(320, figure.clientWidth), left = Math.min(220, width * 0.3), room = width - left - 180, step = 40;
  const most = Math.max(...bars.map((bar) => Math.max(bar.full, bar.card)), 1);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${bars.length * step + 4}`, role: "img", "aria-labelledby": "plot-title" });
  const title = bars.map((bar) => `${bar.name}: full ${bytes(bar.full)}, card ${bytes(bar.card)}`).join("; ");
  svg.append(drawn("title", { id: "plot-title" }, `Bytes of full answers and cards by tool. ${title}`));
  bars.forEach((bar, index) => {
    const top = index * step + 4;
    const name = bar.name.length > left / 8 ? bar.name.slice(0, Math.floor(left / 8) - 1) + "…" : bar.name;
    svg.append(drawn("text", { x: left - 12, y: top + 18, "text-anchor": "end" }, name));
    for (const [kind, size, y] of [["full", bar.full, top], ["card", bar.card, top + 14]]) {
      const long = Math.max(2, size / most * room);
      const more = kind === "card" && bar.full > 0 ? ` · ${share(bar.card, bar.full)}` : "";
      svg.append(drawn("rect", { class: `bar-${kind}`, x: left, y: y + 1, width: long, height: 11, rx: 1.5 }));
      svg.append(drawn("text", { class: "num", x: left + long + 8, y: y + 11 }, bytes(size) + more));
    }
  });
  figure.replaceChildren(svg);
}

// Rows stay the elements they are, so that the focus in one survives an update.
function fill(body, key, count, cells) {
  let row = [...body.children].find((each) => each.dataset.key === key);
  if (!row) {
    row = made("tr");
    row.dataset.key = key;
    row.append(made("th", undefined, { scope: "row" }));
    for (let index = 1; index < count; index++) row.append(made("td"));
  }
  cells.forEach((cell, index) => {
    if (cell === null) return;
    const [words, kind] = Array.isArray(cell) ? cell : [cell, ""];
    if (kind.startsWith("word")) {
      if (row.children[index].textContent !== words) row.children[index].replaceChildren(made("span", words, { class: kind }));
      else if (row.children[index].firstChild) row.children[index].firstChild.className = kind;
    } else {
      tell(row.children[index], words);
      row.children[index].className = kind;
    }
  });
  return row;
}

function arrange(body, rows) {
  if (rows.length !== body.children.length || rows.some((row, index) => body.children[index] !== row)) body.replaceChildren(...rows);
}

function drawTools(rows) {
  const wanted = at("filter").value.trim().toLowerCase();
  const matching = rows.filter((row) => row.name.toLowerCase().includes(wanted));
  const body = at("tool-rows");
  arrange(body, matching.slice(0, ROWS).map((tool) => {
    const failed = [...tool.codes].map(([code, count]) => `${code} ${whole(count)}`).join(", ");
    const row = fill(body, tool.name, 10, [
      tool.name, [whole(tool.calls), "n"], failed || "none", [seconds(tool.mean), "n"], [seconds(tool.slow), "n"],
      [bytes(tool.full), "n"], [bytes(tool.card), "n"], [share(tool.full - tool.card, tool.full), "n"],
      [tool.listing ? `${bytes(tool.listing)} (${bytes(tool.compact)})` : "–", "n"], null,
    ]);
    if (tool.known && !row.lastChild.firstChild) {
      const button = made("button", "Try", { type: "button", "aria-label": `Try ${tool.name}` });
      button.addEventListener("click", () => pick(tool.name));
      row.lastChild.append(button);
    }
    return row;
  }));
  tell(at("tools-note"), matching.length > ROWS ? `The first ${ROWS} of ${whole(matching.length)} tools; write a part of a name above to see others.`
    : matching.length === 0 ? "No tool has such a name." : "");
}

function drawBackends(ready) {
  const figures = seen.figures, body = at("backend-rows");
  const [calls, breakers, connections] = ["toolview_calls_in_flight", "toolview_breaker_state", "toolview_passthrough_connections"]
    .map((name) => sums(figures, name, "backend"));
  const passed = sums(figures, "toolview_passthrough_requests_total", "backend");
  const moved = new Map((figures.get("toolview_passthrough_bytes_total") || [])
    .map(({ labels, value }) => [`${labels.backend}\n${labels.direction}`, value]));
  const health = (name) => {
    const well = ready?.backends?.[name];
    return well === true ? ["up", "word well"] : well === false ? ["down", "word ill"] : ["not checked", "word"];
  };
  const breaker = (name) => [["closed", "word"], ["trying again", "word ill"], ["open: no call passes", "word ill"]][breakers.get(name) || 0];
  arrange(body, seen.state.backends.map((name) => fill(body, name, 8, [
    name, health(name), breaker(name), [whole(calls.get(name) || 0), "n"],
    [passed.has(name) || connections.has(name) ? whole(passed.get(name) || 0) : "–", "n"],
    [bytes(moved.get(`${name}\nin`) || 0), "n"], [bytes(moved.get(`${name}\nout`) || 0), "n"], [whole(connections.get(name) || 0), "n"],
  ])));
}

function listed(title, faults, total) {
  const items = faults.map((fault) => {
    const item = made("li");
    item.append(made("code", `${fault.file}:${fault.line}:${fault.column}`), ` ${fault.path ? `${fault.path}: ` : ""}${fault.message}`);
    return item;
  });
  const list = made("ul", undefined, { class: "places" });
  list.append(...items);
  const more = total > faults.length ? [made("p", `… and ${whole(total - faults.length)} more`, { class: "note" })] : [];
  return [made("h3", `${title} (${whole(total)})`), list, ...more];
}

function facts(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([name, value]) => [made("dt", name), made("dd", value)]));
}

function drawContract() {
  const { contract, reload, warnings, version } = seen.state;
  tell(at("version"), version);
  facts(at("contract-facts"), [
    ["Digest", contract],
    ["Last load", `${reload.ok ? "accepted" : "refused"}, ${moment(reload.at)}`],
    ...(reload.ok ? [] : [["Served since", moment(reload.accepted_at)]]),
  ]);
  at("refused").hidden = reload.ok;
  at("refusals").replaceChildren(...(reload.ok ? [] : listed("Refusals", reload.refusals, reload.refused)));
  at("warnings").replaceChildren(...(warnings.length ? listed("Warnings", warnings, warnings.length) : []));
}

function redraw() {
  if (!seen.figures || !seen.state) return;
  const rows = byTool(seen.figures);
  drawTiles(rows);
  drawPlot(rows);
  drawTools(rows);
}

// ---- one look after another ---------------------------------------------------------------------------------------

async function look() {
  clearTimeout(seen.timer);
  const began = performance.now();
  try {
    const [state, metrics, ready] = await Promise.all([ask("/console/state"), ask("/metrics"), ask("/-/ready")]);
    if (state.status === 401 || state.status === 403 || state.status === 503) {
      tell(at("status"), await said(state));
      if (state.status !== 503) return wantKey(at("status").textContent);
    } else if (!state.ok || !metrics.ok) {
      tell(at("status"), await said(state.ok ? metrics : state));
    } else {
      if (!seen.state?.keyed) at("key").hidden = true;
      const before = seen.state?.reload;
      seen.state = await state.json();
      seen.figures = samples(await metrics.text());
      if (seen.digest !== seen.state.contract) await lookAtTools();
      drawContract();
      redraw();
      drawBackends(await ready.json());
      const { reload } = seen.state;
      tell(at("status"), reload.ok ? `Serving contract ${seen.state.contract}, loaded ${moment(reload.accepted_at)}.`
        : `The last reload was refused (${whole(reload.refused)} faults), ${moment(reload.at)}.`);
      if (before && before.at !== reload.at && document.activeElement === document.body) at("main").focus({ preventScroll: true });
    }
  } catch (fault) {
    tell(at("status"), "The gateway cannot be reached; the figures are old.");
  }
  const taken = performance.now() - began;
  if (!seen.paused) seen.timer = setTimeout(look, Math.max(EVERY, 20 * taken));
}

async function lookAtTools() {
  const answer = await ask("/console/tools");
  if (!answer.ok) return;
  const { contract, tools } = await answer.json();
  seen.digest = contract;
  seen.tools = tools;
  const select = at("tool"), chosen = select.value;
  select.replaceChildren(...tools.map((tool) => made("option", tool.title ? `${tool.name}: ${tool.title}` : tool.name, { value: tool.name })));
  if (tools.some((tool) => tool.name === chosen)) select.value = chosen;
  if (select.value !== chosen) picked();
}

// ---- trying a tool ------------------------------------------------------------------------------------------------

const chosen = () => seen.tools.find((tool) => tool.name === at("tool").value);

function pick(name) {
  at("tool").value = name;
  picked();
  at("arguments").focus();
  at("try").scrollIntoView({ block: "start" });
}

function picked() {
  const tool = chosen();
  if (!tool) return;
  const view = { full: "no view: the card is the full answer", defaults: "its view fills in arguments", slice: "its view is a slice of the full answer",
    projection: "its view is a projection", media: "it answers a file" }[tool.view];
  tell(at("tool-about"), `${tool.description} (${tool.request} at ${tool.backend}; on ${tool.surfaces.join(", ")}; ${view}.` +
    `${tool.scopes.length ? ` Wants ${tool.scopes.join(", ")}.` : ""})`);
  drawArguments(tool.input);
  const skeleton = Object.fromEntries((tool.input.required || []).map((name) => [name, sample(tool.input.properties?.[name])]));
  write(tool.examples[0]?.arguments ?? skeleton);
  const examples = at("examples");
  examples.replaceChildren(...(tool.examples.length ? ["Examples:"] : []), ...tool.examples.map((example, index) => {
    const button = made("button", example.title || `No. ${index + 1}`, { type: "button" });
    button.addEventListener("click", () => write(example.arguments));
    return button;
  }));
  const changes = tool.safety_tier === "write" || tool.safety_tier === "exec" || tool.asks_first;
  at("may-change").hidden = !changes;
  at("sure").checked = false;
  at("sure").required = changes;
  const why = tool.asks_first ? "asks a person first" : `is declared “${tool.safety_tier}”`;
  tell(at("sure-text"), `This tool ${why}: the call is real and may change data. I want that.`);
  tell(at("try-said"), "");
  at("result").hidden = true;
}

function sample(schema) {
  if (schema?.default !== undefined) return schema.default;
  if (schema?.enum) return schema.enum[0];
  const type = Array.isArray(schema?.type) ? schema.type[0] : schema?.type;
  return { string: "", integer: schema?.minimum ?? 0, number: schema?.minimum ?? 0, boolean: false, array: [], object: {} }[type] ?? null;
}

function write(value) {
  at("arguments").value = JSON.stringify(value, null, 2);
  invalid("");
}

function drawArguments(input) {
  const list = made("dl");
  for (const [name, schema] of Object.entries(input.properties || {})) {
    const kind = schema.enum ? schema.enum.map((each) => JSON.stringify(each)).join(", ") : [schema.type].flat().filter(Boolean).join(" or ") || "any value";
    const needed = (input.required || []).includes(name) ? "required" : schema.default === undefined ? "optional" : `else ${JSON.stringify(schema.default)}`;
    list.append(made("dt", name), made("dd", `${kind}, ${needed}${schema.description ? `. ${schema.description}` : ""}`));
  }
  at("arguments-about").replaceChildren(list.children.length ? list : made("p", "It takes none.", { class: "note" }));
}

function invalid(why) {
  tell(at("arguments-fault"), why);
  if (why) at("arguments").setAttribute("aria-invalid", "true");
  else at("arguments").removeAttribute("aria-invalid");
}

async function run(event) {
  event.preventDefault();
  const tool = chosen(), text = at("arguments").value.trim() || "{}";
  if (!tool) return;
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("the arguments are one object, as {\"name\": 1}");
    invalid("");
  } catch (fault) {
    invalid(`This is no JSON object: ${fault.message}`);
    return at("arguments").focus();
  }
  at("run").disabled = true;
  tell(at("try-said"), "Calling …");
  try {
    // The text itself is sent, since JavaScript would lose digits of long numbers.
    const body = `{"tool": ${JSON.stringify(tool.name)}, "arguments": ${text}}`;
    const answer = await ask("/console/try", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (!answer.ok) {
      const why = await said(answer);
      tell(at("try-said"), `Not called: ${why}`);
      if (answer.status === 401 || answer.status === 403) wantKey(why);
    } else {
      if (seen.key) at("key").hidden = true;
      show(await answer.json());
    }
  } catch (fault) {
    tell(at("try-said"), "The gateway cannot be reached.");
  }
  at("run").disabled = false;
  look();
}

function show(result) {
  const dropped = result.full ? result.full.values - result.full.kept : 0;
  const saved = result.ok && result.full_bytes > 0 ? `: ${whole(result.full_bytes)} bytes full, ${whole(result.card_bytes)} shown (${share(result.card_bytes, result.full_bytes)})` : "";
  tell(at("try-said"), result.ok ? `Answered in ${seconds(result.seconds)}${saved}${dropped ? `; ${whole(dropped)} of ${whole(result.full.values)} values dropped` : ""}.`
    : `${result.code}, in ${seconds(result.seconds)}.`);
  facts(at("facts"), [
    ["Call", result.call_id],
    ["Time", `${seconds(result.seconds)}, of which backend ${seconds(result.backend_seconds)}, projection ${seconds(result.projection_seconds)}`],
    ...(result.accepted === null ? [] : [["Ran on", result.accepted]]),
  ]);
  tell(at("full-title"), `Full answer${result.full_bytes ? `, ${whole(result.full_bytes)} bytes` : ""}`);
  tell(at("card-title"), result.ok ? `Card, ${whole(result.card_bytes)} bytes` : "Failure, as the caller gets it");
  at("fold-line").hidden = dropped === 0;
  seen.shown = result;
  drawPanes();
  const projects = chosen()?.view === "projection";
  tell(at("pane-note"), dropped && projects ? "A projection may reshape and rename: a value counts as kept where the card holds it anywhere." : "");
  const beyond = [
    ["Not declared in `output`, so left out before the view (values are not shown)", result.undeclared.map(([path, times]) => (times > 1 ? `${path} × ${whole(times)}` : path)), result.undeclared_count],
    ["Broke the declared `output`, at these places of its schema", result.violations, result.violations.length],
  ].filter(([, paths]) => paths.length);
  at("beyond").replaceChildren(...beyond.flatMap(([title, paths, count]) => {
    const list = made("ul", undefined, { class: "places many" });
    list.append(...paths.map((path) => { const item = made("li"); item.append(made("code", path)); return item; }));
    return [made("h3", `${title} (${whole(count)})`), list];
  }));
  at("result").hidden = false;
}

function drawPanes() {
  const result = seen.shown;
  if (!result) return;
  const nothing = result.media_type ? `${result.media_type}: not shown here` : result.ok ? "This tool answers nothing." : "There was no answer to show.";
  drawLines(at("full"), result.full, at("fold").checked, nothing);
  drawLines(at("card"), result.ok ? result.card : result.failure, false, nothing);
}

function drawLines(pre, pane, fold, nothing) {
  if (!pane) return pre.replaceChildren(made("em", nothing));
  const lines = [];
  let folded = 0;
  const unfold = () => { if (folded) lines.push(made("em", `  … ${whole(folded)} ${folded === 1 ? "line" : "lines"} dropped`)); folded = 0; };
  for (const [text, dropped] of pane.lines) {
    if (dropped && fold) { folded++; continue; }
    unfold();
    const line = made(dropped ? "del" : "span");
    if (dropped) line.append(made("span", "dropped: ", { class: "unseen" }));
    const words = text.trimStart();
    line.append(text.slice(0, text.length - words.length), dropped ? made("s", words) : words);
    lines.push(line);
  }
  unfold();
  if (pane.cut) lines.push(made("em", "  … more lines, not shown here"));
  pre.replaceChildren(...lines);
}

// ---- what people do -----------------------------------------------------------------------------------------------

at("try-form").addEventListener("submit", run);
at("tool").addEventListener("change", picked);
at("fold").addEventListener("change", drawPanes);
at("filter").addEventListener("input", redraw);
for (const radio of document.querySelectorAll('input[name="per"]')) radio.addEventListener("change", redraw);
new ResizeObserver(() => { if (seen.width !== at("plot").clientWidth) { seen.width = at("plot").clientWidth; redraw(); } }).observe(at("plot"));
at("pause").addEventListener("click", () => {
  seen.paused = !seen.paused;
  at("pause").setAttribute("aria-pressed", String(seen.paused));
  if (seen.paused) clearTimeout(seen.timer); else look();
});
at("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  seen.key = at("key-text").value.trim();
  at("key-text").value = "";
  if (!seen.key) return tell(at("key-fault"), "Write a key first.");
  tell(at("key-fault"), "");
  tell(at("try-said"), "");
  if (seen.state) { at("key").hidden = true; tell(at("status"), "The key is used from now on."); at("run").focus(); }
  else at("key").hidden = true;
  look();
});
look();
