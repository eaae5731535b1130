'use strict';

// Wires the controls to the arithmetic and the drawings, and keeps what is set in the address.

(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const model = whatif.model(data);
  const MOST_OPTIONS = 12;
  const MOST_RANKS = 4;

  const byId = (id) => document.getElementById(id);
  const ranges = [...document.querySelectorAll('#what-if input[type=range]')];
  const boxes = [...document.querySelectorAll('#what-if input[data-box]')];

  const fresh = () => ({
    improvements: { ...data.improvements },
    goal: data.goal.value,
    kind: data.goal.kind,
    x: data.grid.classes[0],
    y: data.grid.classes[1],
    slice: data.slice,
  });
  let state = fresh();

  // ---- words ----

  function say(id, text) {
    byId(id).textContent = drawing.clean(text);
  }

  function make(tag, text = '', css = '') {
    const element = document.createElement(tag);
    element.textContent = drawing.clean(text);
    if (css) element.className = css;
    return element;
  }

  function ranksText(ranks) {
    const distinct = [...new Set(ranks)];
    return `rank ${distinct.slice(0, MOST_RANKS).join(', ')}${distinct.length > MOST_RANKS ? ', …' : ''}`;
  }

  function improvementsText(improvements) {
    const improved = Object.entries(improvements).filter(([, percent]) => percent);
    return improved.map(([name, percent]) => `${name} ${wording.signedGeneral(percent)} %`).join(', ') || 'no improvement';
  }

  function estimateSentence(found) {
    const { best, baseline_best: before } = found;
    if (!Object.values(state.improvements).some(Boolean)) {
      return `Nothing is improved yet: this is what was ${data.came}. Move a slider.`;
    }
    const moved = best.where === before.where ? '' : ` instead of ${before.where}`;
    const rank = found.slowest_rank_changed ? ', in another process' : '';
    const bottleneck = best.bottleneck ? `; ${best.bottleneck} is the bottleneck then${rank}` : '';
    const [after, measured] = [best, before].map((point) => wording.aboutSeconds(point.io_seconds));
    const change = wording.signed(found.change_percent, 1);
    if (Math.abs(found.change_percent) < 0.05 && best.index === before.index) {
      return `${improvementsText(state.improvements)} changes nothing: the best is still ${after}, at ${best.where}.`;
    }
    const [epoch, was] = [best.epoch_seconds, before.epoch_seconds];
    const percent = wording.signed(was ? 100 * (epoch / was - 1) : 0, 1);
    const unhidden = epoch > was ? ', if none of the longer I/O is hidden' : '';
    const epochs =
      data.ranked_by === 'epoch'
        ? `. The epoch would take about ${wording.aboutSeconds(epoch)} instead of ${wording.aboutSeconds(was)} (${percent} %)${unhidden}`
        : '';
    return (
      `With ${improvementsText(state.improvements)}: ${after} of I/O per epoch instead of ${measured} (${change} %), ` +
      `at ${best.where}${moved}${bottleneck}${epochs}.`
    );
  }

  // What it takes if a class that was busy cannot serve more than it ever did.
  function ifNot(option) {
    const doubt = option.warnings.find((warning) => warning.kind.startsWith('beyond'));
    return doubt ? `; if ${doubt.evidence.class} cannot serve more than it ever did, ${wording.aboutSeconds(doubt.evidence.implied_seconds)}` : '';
  }

  function goalSentence(found) {
    const { about, short, best } = wording.GOALS[state.kind];
    const goal = short(state.goal);
    if (found.met_without !== null) return `The goal of ${goal} is already met without any improvement, at ${found.met_without}.`;
    const met = found.grid.filter((one) => one.met);
    if (!met.length) {
      const isNearer = (one, least) => (state.kind === 'au' ? one.value > least.value : one.value < least.value);
      const nearest = found.grid.reduce((least, one) => (isNearer(one, least) ? one : least));
      return `${goal} cannot be met by these: the ${best} is ${about(nearest.value)}, with ${improvementsText(nearest.improve)}.`;
    }
    const [least] = found.pareto;
    const how = `${improvementsText(least.improve)} at ${least.where} (${about(least.value)})`;
    const combinations = found.grid.length === 1 ? 'combination' : 'combinations';
    return `${met.length} of ${found.grid.length} ${combinations} ${met.length === 1 ? 'meets' : 'meet'} it; the smallest in sum: ${how}${ifNot(least)}.`;
  }

  // ---- what is shown ----

  function showControls() {
    for (const input of [...ranges, ...boxes]) {
      if (input !== document.activeElement || input.type === 'range') input.value = state.improvements[input.dataset.class];
    }
    ranges.forEach(showRange);
    byId('goal-kind').value = state.kind;
    byId('goal-x').value = state.x;
    byId('goal-y').value = state.y;
    if (byId('slice')) byId('slice').value = state.slice;
  }

  function showRange(input) {
    const { low, high } = data.sliders;
    const percent = state.improvements[input.dataset.class];
    const [from, to] = [Math.min(0, percent), Math.max(0, percent)].map((end) => (Math.min(Math.max(end, low), high) - low) / (high - low));
    input.style.setProperty('--zero', -low / (high - low));
    input.style.setProperty('--from', from);
    input.style.setProperty('--to', to);
    input.setAttribute('aria-valuetext', `${wording.signedGeneral(percent)} %`);
  }

  const isSuggested = () => state.goal === data.goal.value && state.kind === data.goal.kind;

  function showGoalBox() {
    const isDefault = isSuggested();
    const typed = state.kind === 'au' ? `${wording.general(100 * state.goal, 6)}%` : wording.aboutSeconds(state.goal);
    byId('goal').value = isDefault ? data.goal.text : typed;
    byId('goal').removeAttribute('aria-invalid');
    byId('goal-suggested').hidden = !isDefault || data.goal.given;
    byId('goal-wrong').hidden = true;
  }

  function showWarnings(warnings) {
    const items = warnings.map((warning) => {
      const item = make('li', '', warning.kind.startsWith('idle') ? 'mild' : '');
      item.append(make('span', warning.text), make('span', ` → ${warning.suggestion}`, 'suggestion'));
      return item;
    });
    byId('warnings').replaceChildren(...items);
    byId('warnings-title').hidden = !items.length;
  }

  function showResult(found) {
    const { best, baseline_best: before } = found;
    const seconds = byId('after-seconds');
    seconds.textContent = wording.aboutSeconds(best.io_seconds);
    seconds.dataset.value = best.io_seconds;
    say('before-seconds', wording.aboutSeconds(before.io_seconds));
    say('before-best', before.where);
    say('after-best', best.where);
    say('before-bottleneck', before.bottleneck ?? 'nothing');
    say('after-bottleneck', best.bottleneck ?? 'nothing');
    const there = model.measured.find((point) => point.index === best.index);
    say('before-slowest', ranksText(before.slowest_ranks));
    const measured = found.slowest_rank_changed ? `; ${data.came} there: ${ranksText(there.slowest_ranks)}` : '';
    say('after-slowest', `${ranksText(best.slowest_ranks)}${measured}`);
    const percent = wording.signed(found.change_percent, 1);
    say('change', `${/^[+-]0\.0$/.test(percent) ? '±0' : percent.replace('-', '−')} %`);
    byId('change').className = found.change_percent < 0 ? 'better' : found.change_percent > 0 ? 'worse' : '';
    say('sentence', estimateSentence(found));
    showWarnings(found.warnings);
  }

  function drawEstimate(found) {
    const slice = data.slices[state.slice];
    const pick = (points) => slice.points.map((index) => points.find((point) => point.index === index));
    drawing.estimate(byId('live-estimate'), {
      shown: pick(found.points),
      before: pick(model.measured),
      best: data.points.some((point) => point.group) ? -1 : found.best.index,
      goal: state.kind === 'io' ? state.goal : Infinity,
      axis: data.axis,
      ticks: slice.ticks,
      look: { classes: data.classes, marks: data.marks, came: data.came },
    });
  }

  function optionRow(option) {
    const row = make('tr');
    for (const name of [state.x, state.y]) row.append(make('td', `${wording.signedGeneral(option.improve[name])} %`));
    row.append(make('td', data.points[option.point].at), make('td', wording.GOALS[state.kind].about(option.value)));
    const isDoubtful = option.warnings.some((warning) => warning.kind.startsWith('beyond'));
    row.append(make('td', isDoubtful ? 'beyond what was seen' : '', 'doubt'));
    const button = make('button', 'try');
    button.type = 'button';
    button.setAttribute('aria-label', drawing.clean(`try ${improvementsText(option.improve)}`));
    button.addEventListener('click', () => improve(option.improve));
    const cell = make('td');
    cell.append(button);
    row.append(cell);
    return row;
  }

  function showOptions(found) {
    const isNeeded = found.met_without === null && found.pareto.length > 0;
    const options = isNeeded ? found.pareto.slice(0, MOST_OPTIONS) : [];
    byId('pareto').tBodies[0].replaceChildren(...options.map(optionRow));
    byId('pareto').hidden = !isNeeded;
    say('pareto-value', { io: 'I/O', epoch: 'epoch', au: 'AU' }[state.kind]);
    say('pareto-x', state.x);
    say('pareto-y', state.y);
    const left = found.pareto.length - options.length;
    say('pareto-more', isNeeded && left ? `and ${left} more, each less of one and more of another` : '');
  }

  function showGoal(found) {
    const sentence = goalSentence(found);
    say('goal-sentence', sentence);
    const others = { ...state.improvements, [state.x]: 0, [state.y]: 0 };
    const isAny = Object.values(others).some(Boolean);
    say('goal-others', isAny ? `With ${improvementsText(others)}, as set above.` : '');
    drawing.goal(byId('goal-grid'), byId('goal-key'), {
      grid: found.grid,
      percents: data.grid.percents,
      classes: [state.x, state.y],
      here: [state.improvements[state.x], state.improvements[state.y]],
      isColoured: data.has_rates,
      title: sentence,
    });
    showOptions(found);
  }

  let shown = '';
  function show() {
    shown = JSON.stringify(state);
    showControls();
    const found = model.estimate(state.improvements);
    showResult(found);
    drawEstimate(found);
    showGoal(model.explore(state.goal, state.x, state.y, state.improvements, state.kind));
  }

  // ---- the address ----

  function fragment() {
    const start = fresh();
    const words = new URLSearchParams();
    for (const [name, percent] of Object.entries(state.improvements)) {
      if (percent !== start.improvements[name]) words.set(name, percent);
    }
    for (const key of ['goal', 'kind', 'x', 'y', 'slice']) if (state[key] !== start[key]) words.set(key, state[key]);
    return words.toString();
  }

  function remember() {
    const text = fragment();
    if (location.hash.slice(1) === text) return;
    try {
      history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
    } catch {
      location.hash = text; // some browsers refuse the other for files
    }
  }

  // A slider ends before what may be typed.
  const clamped = (percent) => Math.min(Math.max(percent, data.limits.low), data.limits.high);

  function numberOf(text) {
    const number = text === null || text.trim() === '' ? NaN : Number(text);
    return Number.isFinite(number) ? number : null;
  }

  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    const next = fresh();
    for (const name of data.classes) {
      const percent = numberOf(words.get(name));
      if (percent !== null) next.improvements[name] = clamped(percent);
    }
    if (data.goal.kinds.includes(words.get('kind'))) setKindOf(next, words.get('kind'));
    const goal = words.has('goal') ? wording.GOALS[next.kind].parse(words.get('goal')) : null;
    if (goal !== null && goal > 0) next.goal = goal;
    const [x, y] = ['x', 'y'].map((key) => (data.classes.includes(words.get(key)) ? words.get(key) : next[key]));
    if (x !== y) Object.assign(next, { x, y });
    const slice = numberOf(words.get('slice'));
    if (data.slices[slice]) next.slice = slice;
    return next;
  }

  // ---- changes ----

  let later = 0;
  function change(isFinal) {
    // What a press of the mouse is on must still be there when it ends, though leaving a box is a change too.
    if (JSON.stringify(state) !== shown) show();
    clearTimeout(later);
    if (isFinal) remember();
    else later = setTimeout(remember, 300); // browsers refuse an address that changes with every pixel of a slider
  }

  function improve(improvements) {
    Object.assign(state.improvements, improvements);
    change(true);
  }

  function setFromInput(input, isFinal) {
    const percent = numberOf(input.value);
    if (percent !== null) state.improvements[input.dataset.class] = clamped(percent);
    if (isFinal) input.value = state.improvements[input.dataset.class];
    change(isFinal);
  }

  // A goal of another kind begins where nothing is improved.
  function setKindOf(next, kind) {
    if (kind === next.kind) return;
    const measured = model.values(kind);
    Object.assign(next, kind === data.goal.kind ? { kind, goal: data.goal.value } : { kind, goal: measured });
  }

  function setGoal(isFinal) {
    const value = wording.GOALS[state.kind].parse(byId('goal').value);
    const isWrong = value === null || value === 0;
    byId('goal').setAttribute('aria-invalid', String(isWrong));
    byId('goal-wrong').hidden = !isWrong;
    if (isWrong) return;
    // The text of the default may be rounded; as long as it stands there, the default itself is meant.
    state.goal = state.kind === data.goal.kind && byId('goal').value === data.goal.text ? data.goal.value : value;
    byId('goal-suggested').hidden = !isSuggested() || data.goal.given;
    change(isFinal);
  }

  // The two classes of the grid differ: who asks for the other's gets it by exchange.
  function setAxis(key, other) {
    const before = state[key];
    state[key] = byId(`goal-${key}`).value;
    if (state[key] === state[other]) state[other] = before;
    change(true);
  }

  function reset() {
    state = fresh();
    showGoalBox();
    change(true);
  }

  async function copyLink() {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      say('copied', 'Link copied.');
    } catch {
      byId('link').hidden = false;
      byId('link').value = location.href;
      byId('link').select();
      say('copied', 'Copy it from here:');
    }
  }

  function improveFromGrid(event) {
    const cell = event.target.closest('[data-improve-x]');
    if (cell) improve({ [state.x]: Number(cell.dataset.improveX), [state.y]: Number(cell.dataset.improveY) });
  }

  function listen() {
    for (const input of [...ranges, ...boxes]) {
      input.addEventListener('input', () => setFromInput(input, false));
      input.addEventListener('change', () => setFromInput(input, true));
    }
    for (const form of document.forms) form.addEventListener('submit', (event) => event.preventDefault());
    byId('goal').addEventListener('input', () => setGoal(false));
    byId('goal').addEventListener('change', () => setGoal(true));
    byId('goal-kind').addEventListener('change', () => {
      setKindOf(state, byId('goal-kind').value);
      showGoalBox();
      change(true);
    });
    byId('goal-x').addEventListener('change', () => setAxis('x', 'y'));
    byId('goal-y').addEventListener('change', () => setAxis('y', 'x'));
    byId('goal-grid').addEventListener('click', improveFromGrid);
    byId('reset').addEventListener('click', reset);
    byId('copy').addEventListener('click', copyLink);
    if (byId('slice')) {
      byId('slice').addEventListener('change', () => {
        state.slice = Number(byId('slice').value);
        change(true);
      });
    }
    window.addEventListener('hashchange', () => {
      state = read();
      showGoalBox();
      show();
    });
    window.addEventListener('resize', show);
    window.addEventListener('beforeprint', () => {
      for (const details of document.querySelectorAll('details')) details.open = true;
    });
  }

  byId('live').hidden = false;
  state = read();
  listen();
  showGoalBox();
  show();
  globalThis.tierscope = {
    estimate: model.estimate,
    explore: model.explore,
    state: () => structuredClone(state),
  };
})();
