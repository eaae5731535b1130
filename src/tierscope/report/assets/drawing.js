'use strict';

// The two live figures, in SVG, with the looks of the others. Every text comes from data and is set as text, never as markup.

const drawing = (() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const CHARACTER = 6.6; // the width of one, on the safe side, at the size of a label
  const TURNS_TEXT = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

  const clean = (text) => text.replace(TURNS_TEXT, '\ufffd');

  const shortened = (text, most) => {
    const characters = [...clean(text)];
    return characters.length > most ? `${characters.slice(0, Math.max(1, most - 1)).join('')}…` : characters.join('');
  };

  // Shortened in its tier: READ and META must stay.
  function shortenedClass(name, most) {
    const kind = name.slice(name.lastIndexOf('-'));
    return shortened(name.slice(0, -kind.length), most - kind.length) + kind;
  }

  function add(parent, tag, attributes = {}, text = '') {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = clean(text);
    parent.append(element);
    return element;
  }

  const short = (value) => String(Math.round(value * 100) / 100);

  function rect(parent, [x, y, width, height], css, more = {}) {
    return add(parent, 'rect', { x: short(x), y: short(y), width: short(width), height: short(height), class: css, ...more });
  }

  function line(parent, [x1, y1], [x2, y2], css) {
    return add(parent, 'line', { x1: short(x1), y1: short(y1), x2: short(x2), y2: short(y2), class: css });
  }

  function label(parent, [x, y], text, css, more = {}) {
    return add(parent, 'text', { x: short(x), y: short(y), class: css, ...more }, text);
  }

  function canvas(host, width, height, title) {
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', `0 0 ${short(width)} ${short(height)}`);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', clean(title));
    svg.setAttribute('class', 'ts-figure live');
    host.replaceChildren(svg);
    return svg;
  }

  function hatches(svg, tiers) {
    const defs = add(svg, 'defs');
    for (const tier of new Set(tiers)) {
      const pattern = add(defs, 'pattern', {
        id: `live-hatch-${tier}`,
        width: 7,
        height: 7,
        patternUnits: 'userSpaceOnUse',
        patternTransform: 'rotate(45)',
      });
      rect(pattern, [0, 0, 7, 7], `tier${tier} pale`);
      rect(pattern, [0, 0, 2.8, 7], `tier${tier}`);
    }
  }

  // The smallest of 1, 2, 5 times a power of ten that divides the span into at most so many parts.
  function niceStep(span, most) {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return [1, 2, 5, 10].map((times) => times * power).find((step) => step * most >= span * (1 - 1e-9));
  }

  const unitOf = (longest) => {
    if (longest >= 1) return { name: 's', size: 1 };
    return longest >= 1e-3 ? { name: 'ms', size: 1e-3 } : { name: 'µs', size: 1e-6 };
  };

  function drawTimes(svg, frame, top) {
    const unit = unitOf(top);
    const step = niceStep(top / unit.size, 7);
    const place = (seconds) => frame.bottom - (seconds / top) * (frame.bottom - frame.top);
    for (let value = 0; value <= (top / unit.size) * (1 + 1e-9); value += step) {
      const y = place(value * unit.size);
      line(svg, [frame.left, y], [frame.right, y], value ? 'grid' : 'axis');
      label(svg, [frame.left - 8, y + 4], wording.grouped(wording.general(value, 12)), 'tick end');
    }
    label(svg, [frame.left - 8, frame.top - 12], `I/O ${unit.name}`, 'tick end');
    return place;
  }

  function drawTicks(svg, frame, ticks, pitch) {
    const room = Math.max(pitch - 4, 56);
    const texts = ticks.map((text) => shortened(text, Math.floor(room / CHARACTER)));
    const widest = Math.max(...texts.map((text) => text.length)) * CHARACTER + 8;
    const stride = Math.ceil(widest / pitch);
    texts.forEach((text, index) => {
      if (index % stride === 0) label(svg, [frame.left + (index + 0.5) * pitch, frame.bottom + 18], text, 'tick middle');
    });
  }

  function barTip(point, before, { classes, came }) {
    const parts = classes.map((name) => `${name}: ${wording.aboutSeconds(point.classes[name])}`);
    const total = `${point.where}: ${wording.aboutSeconds(point.io_seconds)}`;
    return [`${total} (${came} ${wording.aboutSeconds(before.io_seconds)})`, ...parts].join('\n');
  }

  function drawWhisker(svg, x, place, [low, high], cap) {
    const [top, bottom] = [place(high), place(low)];
    line(svg, [x, bottom], [x, top], 'whisker');
    if (cap) for (const end of [top, bottom]) line(svg, [x - cap, end], [x + cap, end], 'whisker');
  }

  function drawBar(svg, { x, width, place }, point, before, look) {
    const group = add(svg, 'g', { 'data-point': point.index });
    add(group, 'title', {}, barTip(point, before, look));
    let below = 0;
    look.classes.forEach((name, index) => {
      const seconds = point.classes[name];
      const { tier, meta } = look.marks[index];
      const [bottom, top] = [place(below), place(below + seconds)];
      if (bottom - top > 0.05) {
        const fill = meta ? { fill: `url(#live-hatch-${tier})` } : {};
        rect(group, [x, top, width, bottom - top], `edge${tier}${meta ? '' : ` tier${tier}`}`, fill);
      }
      below += seconds;
    });
    if (!look.isImproved) {
      const room = x + width / 2;
      if (before.spread && before.spread[1] > before.spread[0]) drawWhisker(group, room, place, before.spread, width >= 6 ? 4 : 0);
      return;
    }
    const top = place(before.io_seconds);
    rect(group, [x - 2, top, width + 4, place(0) - top], 'outline');
  }

  function drawBest(svg, frame, x, y, text) {
    const at = Math.min(Math.max(x, frame.left + 16), frame.right - 16);
    add(svg, 'path', { d: `M${short(x)},${short(y - 5)}l-4,-7h8Z`, class: 'best' });
    label(svg, [at, y - 16], text, 'tick middle');
  }

  function drawGoal(svg, frame, y, goal) {
    line(svg, [frame.left, y], [frame.right, y], 'goal');
    const name = label(svg, [frame.right + 4, y + 4], 'goal', 'goal-name');
    add(name, 'title', {}, wording.aboutSeconds(goal));
  }

  // As many as can be told apart, and the best; every how many that is.
  function thinned(count, best, most) {
    const stride = Math.ceil(count / most);
    return { stride, kept: Array.from({ length: count }, (_, index) => index).filter((index) => index % stride === 0 || index === best) };
  }

  const longestOf = ({ shown, before, look }) =>
    Math.max(...shown.map((point) => point.io_seconds), ...before.map((point) => Math.max(point.io_seconds, look.isImproved ? 0 : point.spread?.[1] ?? 0)));

  const NEAR = 4; // the longest of all panels is at most so many times that of any, where they have one scale

  // Panels side by side: one for each part of the result, with one scale where that shows all of them.
  function estimates(hosts, given, width) {
    const tops = given.map(longestOf);
    const most = Math.max(...tops);
    const isOne = most <= NEAR * Math.min(...tops);
    const strides = given.map((each, index) => estimate(hosts[index], { ...each, top: isOne ? most : tops[index] }, width));
    return { stride: Math.max(...strides), isOne };
  }

  // `shown`: the points of a slice as they would be, `before` as they were measured. Gives every how many points are drawn.
  function estimate(host, { shown: all, before: were, best, goal, axis, ticks: names, look, top: longest }, given) {
    const width = given ?? Math.max(280, Math.min(host.clientWidth || 960, 1040));
    const height = width < 560 ? 280 : 340;
    const { stride, kept } = thinned(all.length, all.findIndex((point) => point.index === best), Math.floor((width - 90) / 4));
    const [shown, before, ticks] = [all, were, names].map((each) => kept.map((index) => each[index]));
    const frame = { left: 56, right: width - 34, top: 40, bottom: height - (axis ? 44 : 28) };
    const top = Number.isFinite(longest) && longest > 0 ? longest * 1.04 : 1;
    const title = look.isImproved
      ? `I/O seconds of the slowest process after the improvements, with the ${look.came} times outlined`
      : `I/O seconds of the slowest process by class, as ${look.came}`;
    const svg = canvas(host, width, height, look.name ? `${title}: ${look.name}` : title);
    hatches(svg, look.marks.map((mark) => mark.tier));
    const place = drawTimes(svg, frame, top);
    const pitch = (frame.right - frame.left) / shown.length;
    const bar = Math.min(pitch * 0.66, 72);
    shown.forEach((point, index) => {
      const x = frame.left + (index + 0.5) * pitch;
      drawBar(svg, { x: x - bar / 2, width: bar, place }, point, before[index], look);
      const were = look.isImproved ? before[index].io_seconds : before[index].spread?.[1] ?? 0;
      const highest = Math.min(place(point.io_seconds), place(were));
      if (point.index === best && shown.length > 1) drawBest(svg, frame, x, highest, 'best');
    });
    drawTicks(svg, frame, ticks, pitch);
    if (axis) label(svg, [(frame.left + frame.right) / 2, height - 6], shortened(axis, 60), 'tick middle');
    if (goal <= top) drawGoal(svg, frame, place(goal), goal);
    return stride;
  }

  const COLOURS = 10;

  // The cache rates that are in the grid, in as many steps of colour as there are, or ten; the palette's ends are always used.
  function steps(grid) {
    const rates = [...new Set(grid.filter((one) => one.met).map((one) => one.min_cache_rate))].sort((one, other) => one - other);
    const count = Math.min(COLOURS, rates.length);
    const found = Array.from({ length: count }, (_, step) => ({
      rates: [],
      css: `q${Math.round((step * (COLOURS - 1)) / Math.max(1, count - 1))}`,
    }));
    rates.forEach((rate, index) => found[Math.floor((index * count) / rates.length)].rates.push(rate));
    return found;
  }

  function cellTip(one) {
    const improved = Object.entries(one.improve).map(([name, percent]) => `${name} ${wording.signedGeneral(percent)} %`);
    const time = wording.aboutSeconds(one.io_seconds);
    return `${improved.join(', ')}: ${one.met ? `met at ${one.where} (${time} of I/O)` : `not met (${time} of I/O)`}`;
  }

  function drawCell(row, [x, y], radius, one, [xClass, yClass], css) {
    const rate = one.met ? String(one.min_cache_rate ?? 'met') : '';
    const cell = add(row, 'g', {
      class: 'cell',
      role: 'gridcell',
      tabindex: -1,
      'aria-label': clean(cellTip(one)),
      'data-improve-x': one.improve[xClass],
      'data-improve-y': one.improve[yClass],
      'data-rate': rate,
    });
    add(cell, 'title', {}, cellTip(one));
    const half = radius / DOT / 2;
    rect(cell, [x - half, y - half, 2 * half, 2 * half], 'target');
    if (one.met) {
      add(cell, 'circle', { cx: short(x), cy: short(y), r: short(radius), class: `dot ${css}` });
    } else {
      const arm = radius * 0.36;
      const [left, right, top, bottom] = [x - arm, x + arm, y - arm, y + arm].map(short);
      add(cell, 'path', { d: `M${left},${top} ${right},${bottom}M${left},${bottom} ${right},${top}`, class: 'unmet' });
    }
  }

  function drawGridAxes(whole, frame, percents, [xClass, yClass], pitch) {
    const svg = add(whole, 'g', { 'aria-hidden': 'true' });
    percents.forEach((percent, index) => {
      if (percent % (percents.length < 9 ? 40 : percents[1] - percents[0] > 10 ? 40 : 50)) return;
      const [x, y] = [frame.left + (index + 0.5) * pitch, frame.bottom - (index + 0.5) * pitch];
      label(svg, [x, frame.bottom + 17], `+${percent}`, 'tick middle');
      label(svg, [frame.left - 6, y + 4], `+${percent}`, 'tick end');
    });
    const middle = (frame.top + frame.bottom) / 2;
    label(svg, [(frame.left + frame.right) / 2, frame.bottom + 36], `${shortenedClass(xClass, 26)}, % faster`, 'tick middle');
    const turned = { transform: `rotate(-90 14 ${short(middle)})` };
    label(svg, [14, middle], `${shortenedClass(yClass, 26)}, % faster`, 'tick middle', turned);
  }

  // Where the sliders stand, when that is inside the grid.
  function drawHere(svg, frame, here, top, pitch) {
    if (here.some((percent) => percent < 0 || percent > top)) return;
    const step = (frame.right - frame.left - pitch) / top;
    const [x, y] = [frame.left + pitch / 2 + here[0] * step, frame.bottom - pitch / 2 - here[1] * step];
    const ring = add(svg, 'circle', { cx: short(x), cy: short(y), r: short(pitch * 0.56), class: 'here' });
    add(ring, 'title', {}, 'where the sliders stand');
  }

  function keyEntry(css, text) {
    const entry = document.createElement('li');
    const sample = add(entry, 'svg', { class: 'ts-figure', viewBox: '0 0 14 14', 'aria-hidden': 'true' });
    if (css === 'unmet') add(sample, 'path', { d: 'M4,4 10,10M4,10 10,4', class: css });
    else add(sample, 'circle', { cx: 7, cy: 7, r: 6, class: css });
    entry.append(text);
    return entry;
  }

  const percentText = (rate) => wording.general(100 * rate, 3);

  function stepText({ rates }) {
    const [low, high] = [rates[0], rates.at(-1)].map(percentText);
    return low === high ? `${low}%` : `${low}–${high}%`;
  }

  function showKey(host, found, isColoured) {
    const met = isColoured ? found.map((step) => keyEntry(`dot ${step.css}`, stepText(step))) : [keyEntry('dot met', 'met')];
    host.replaceChildren(...met, keyEntry('unmet', 'not met'), keyEntry('here', 'the sliders'));
  }

  const DOT = 0.38; // its radius, of the distance between two
  const THUMB = 24; // pixels that a finger can hit

  // Every how many steps of the grid have a dot, so that each is wide enough.
  function strideOf(room, steps, least) {
    return Array.from({ length: steps }, (_, index) => index + 1).find(
      (stride) => (steps - 1) % stride === 0 && room / ((steps - 1) / stride + 1) >= least,
    ) ?? 1;
  }

  // `here`: the sliders of the two classes; `isColoured`: whether cache rates differ; `isTouched`: by fingers. Gives every how many steps have a dot.
  function goal(host, key, { grid, percents: all, classes, here, isColoured, isTouched, title }, given) {
    const width = given ?? Math.max(260, Math.min(host.clientWidth || 520, 540));
    const isNarrow = given === undefined || given === null ? width < 420 : false;
    const frame = { left: isNarrow ? 54 : 58, right: width - 14, top: 6 };
    const stride = strideOf(frame.right - frame.left, all.length, isTouched || isNarrow ? THUMB : 12);
    const percents = all.filter((_, index) => index % stride === 0);
    const pitch = (frame.right - frame.left) / percents.length;
    frame.bottom = frame.top + pitch * percents.length;
    const svg = canvas(host, width, frame.bottom + 44, title);
    svg.setAttribute('role', 'group');
    drawGridAxes(svg, frame, percents, classes, pitch);
    const found = isColoured ? steps(grid) : [];
    const table = add(svg, 'g', { role: 'grid', 'aria-label': clean(`${classes[0]} to the right, ${classes[1]} upwards`) });
    for (let row = percents.length - 1; row >= 0; row -= 1) {
      const cells = add(table, 'g', { role: 'row' });
      for (let column = 0; column < percents.length; column += 1) {
        const one = grid[column * stride * all.length + row * stride];
        const place = [frame.left + (column + 0.5) * pitch, frame.bottom - (row + 0.5) * pitch];
        const css = found.find((step) => step.rates.includes(one.min_cache_rate))?.css ?? 'met';
        drawCell(cells, place, pitch * DOT, one, classes, css);
      }
    }
    drawHere(svg, frame, here, percents.at(-1), pitch);
    showKey(key, found, isColoured);
    return stride;
  }

  return { cellTip, clean, estimate, estimates, goal, longestOf };
})();
