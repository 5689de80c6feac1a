"""What the live page of a monitor is made of: HTML, style, script. It loads nothing from elsewhere.

Whatever comes from data is put in as text, never as HTML.
"""

HTML = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>glp_rapids monitor</title>
<link rel="stylesheet" href="page.css"><script src="page.js" defer></script></head>
<body>
<header><h1>Monitor</h1><p id="state" role="status">connecting ...</p></header>
<main>
<section><h2>Alerts</h2>
<table id="alerts"><thead><tr><th>until</th><th>event</th><th>cluster</th><th>joined</th>
<th>left</th><th>score</th><th>from</th></tr></thead><tbody></tbody></table></section>
<section><h2 id="title">Clusters now</h2>
<ul id="clusters"></ul>
<svg id="picture" viewBox="-110 -110 220 220" role="img" aria-label="cluster" hidden></svg>
<p id="legend" hidden>dark: on the blacklist; light: found. Choose a member to see why.</p>
<ol id="why"></ol></section>
</main>
</body></html>
"""

CSS = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 0; color: #222; }
header { display: flex; gap: 2em; align-items: baseline; padding: 0 1.5em;
  background: #f1f3f5; }
main { display: grid; grid-template-columns: 3fr 2fr; gap: 2em; padding: 0 1.5em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 2px 8px; border-bottom: 1px solid #ddd; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.new td, tr.merged td { background: #fff1e0; }
button { font: inherit; border: 0; background: none; color: #0b5cad; padding: 0; cursor: pointer;
  text-align: left; }
svg { width: 100%; max-height: 70vh; }
line { stroke: #9aa5b1; } circle { fill: #e8a33d; cursor: pointer; } circle.seed { fill: #d7263d; }
circle.chosen { stroke: #222; stroke-width: 1.5; } text { font-size: 4px; }
"""

JS = """
'use strict';
const byId = (id) => document.getElementById(id);
const SHOWN = 500;
let shownCluster = null;

function cell(row, value, number) {
  const td = row.insertCell();
  td.textContent = value;
  if (number) td.className = 'number';
  return td;
}

function button(label, action) {
  const one = document.createElement('button');
  one.textContent = label;
  one.addEventListener('click', action);
  return one;
}

async function ask(path) {
  const answer = await fetch(path);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function onTick(tick) {
  byId('state').textContent = `tick ${tick.number}, until ${tick.until}: ${tick.rows} rows, ` +
    `${tick.clusters.length} clusters`;
  const body = byId('alerts').tBodies[0];
  for (const alert of tick.alerts.slice().reverse()) {
    const row = body.insertRow(0);
    row.className = alert.event;
    cell(row, tick.until);
    cell(row, alert.event);
    cell(row, '').append(button(alert.cluster_id, () => show(alert.cluster_id)));
    cell(row, alert.joined, true);
    cell(row, alert.left, true);
    cell(row, alert.score === null ? '' : alert.score.toFixed(2), true);
    cell(row, alert.parents.join(', '));
  }
  while (body.rows.length > SHOWN) body.deleteRow(-1);
  const list = byId('clusters');
  list.replaceChildren(...tick.clusters.map((one) => {
    const item = document.createElement('li');
    item.append(button(one.cluster_id, () => show(one.cluster_id)),
      ` ${one.size} members, ${one.seeds} known, score ${one.score.toFixed(2)}`);
    return item;
  }));
}

function layout(members, edges) {
  // springs and charges, from a circle, always the same
  const n = members.length;
  const at = members.map((_, i) => [60 * Math.cos(2 * Math.PI * i / n),
    60 * Math.sin(2 * Math.PI * i / n)]);
  for (let round = 0; round < 150; round++) {
    const force = at.map(() => [0, 0]);
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) {
      const dx = at[i][0] - at[j][0], dy = at[i][1] - at[j][1];
      const push = 300 / Math.max(dx * dx + dy * dy, 1);
      force[i][0] += dx * push; force[i][1] += dy * push;
      force[j][0] -= dx * push; force[j][1] -= dy * push;
    }
    for (const [i, j] of edges) {
      const dx = at[i][0] - at[j][0], dy = at[i][1] - at[j][1];
      const pull = Math.hypot(dx, dy) / 30;
      force[i][0] -= dx * pull; force[i][1] -= dy * pull;
      force[j][0] += dx * pull; force[j][1] += dy * pull;
    }
    const step = 8 * (1 - round / 150);
    for (let i = 0; i < n; i++) {
      const size = Math.max(Math.hypot(...force[i]), 1e-9);
      at[i][0] += force[i][0] / size * Math.min(step, size);
      at[i][1] += force[i][1] / size * Math.min(step, size);
    }
  }
  const far = Math.max(1, ...at.map((p) => Math.max(Math.abs(p[0]), Math.abs(p[1]))));
  return at.map((p) => [p[0] / far * 100, p[1] / far * 100]);
}

function shape(name, attributes) {
  const one = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  return one;
}

async function show(cluster) {
  shownCluster = cluster;
  byId('why').replaceChildren();
  try {
    const found = await ask('cluster?id=' + encodeURIComponent(cluster));
    byId('title').textContent = `${cluster}: ${found.members.length} members`;
    const at = layout(found.members, found.edges);
    const most = Math.max(1, ...found.edges.map((edge) => edge[2]));
    const lines = found.edges.map(([i, j, weight]) => shape('line', {x1: at[i][0], y1: at[i][1],
      x2: at[j][0], y2: at[j][1], 'stroke-width': 0.2 + 1.5 * weight / most}));
    const dots = found.members.map((one, i) => {
      const dot = shape('circle', {cx: at[i][0], cy: at[i][1], r: 3, tabindex: 0});
      if (one.is_seed) dot.classList.add('seed');
      const title = shape('title', {});
      title.textContent = `${one.vertex}: score ${one.score.toFixed(2)}`;
      dot.append(title);
      dot.addEventListener('click', () => why(cluster, i, dot));
      return dot;
    });
    byId('picture').replaceChildren(...lines, ...dots);
    byId('picture').hidden = byId('legend').hidden = false;
  } catch (error) {
    byId('title').textContent = error.message;
    byId('picture').hidden = byId('legend').hidden = true;
  }
}

async function why(cluster, member, dot) {
  document.querySelectorAll('circle.chosen').forEach((one) => one.classList.remove('chosen'));
  dot.classList.add('chosen');
  let texts;
  try {
    const found = await ask(`explain?id=${encodeURIComponent(cluster)}&member=${member}`);
    texts = found.paths.length ? found.paths : ['it is on the blacklist itself'];
  } catch (error) {
    texts = [error.message];
  }
  byId('why').replaceChildren(...texts.map((text) => {
    const item = document.createElement('li');
    item.textContent = text;
    return item;
  }));
}

const source = new EventSource('events');
source.addEventListener('tick', (event) => onTick(JSON.parse(event.data)));
source.addEventListener('end', () => {
  source.close();
  byId('state').textContent += ' (the replay has ended)';
});
source.onerror = () => { byId('state').textContent = 'the monitor does not answer; waiting ...'; };
"""
