'use strict';

// Wires the controls to the arithmetic and the drawings, and keeps what is set in the address.

(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const models = whatif.models(data);
  models.forEach(({ measured }, number) => measured.forEach((point, index) => Object.assign(point, { spread: data.parts[number].spreads[index] })));
  const MOST_OPTIONS = 12;
  const MOST_RANKS = 4;
  const PRINTED_WIDTH = 680;

  const byId = (id) => document.getElementById(id);
  const ranges = [...document.querySelectorAll('#what-if input[type=range]')];
  const boxes = [...document.querySelectorAll('#what-if input[data-box]')];

  // What is set at first, in a part of the result: a case, or the points that read the same amount of data.
  const shownFirst = (number) => {
    const { goal, grid, slice } = data.parts[number];
    return { case: number, goal: goal.value, kind: goal.kind, x: grid.classes[0], y: grid.classes[1], slice };
  };
  // `costs`: by what they are of, a class or a tier's capacity, as they are typed. `goal`: null while what is typed is none.
  const fresh = (number = 0) => ({ improvements: { ...data.improvements }, costs: {}, ...shownFirst(number) });
  let state = fresh();
  let printedWidth = null; // of a figure, while the page is printed
  const part = () => data.parts[state.case];
  const model = () => models[state.case];

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
      return `No improvement yet: these are the ${data.came} times. Move a slider.`;
    }
    const moved = best.where === before.where ? '' : ` instead of ${before.where}`;
    const rank = found.slowest_rank_changed ? ', in another process' : '';
    const bottleneck = best.bottleneck ? `; the bottleneck is then ${best.bottleneck}${rank}` : '';
    const [after, measured] = [best, before].map((point) => wording.aboutSeconds(point.io_seconds));
    const change = wording.signed(found.change_percent, 1);
    const what = improvementsText(state.improvements);
    const [epoch, was] = [best.epoch_seconds, before.epoch_seconds];
    const byEpoch = data.ranked_by === 'epoch';
    if (Math.abs(found.change_percent) < 0.05 && best.index === before.index) {
      const still = byEpoch && epoch ? `an epoch of ${wording.aboutSeconds(epoch)}` : `${after} of I/O per epoch`;
      return `${what} changes nothing: the best is still ${still}, at ${best.where}.`;
    }
    const instead = `instead of ${measured} (${change} %)`;
    const where = `at ${best.where}${moved}`;
    if (!byEpoch) return `With ${what}: ${after} of I/O per epoch ${instead}, ${where}${bottleneck}.`;
    const percent = was ? 100 * (epoch / was - 1) : 0;
    const unhidden = epoch > was ? ', if compute hides none of the added I/O' : '';
    const epochs =
      Math.abs(percent) < 0.05
        ? `the epoch still takes about ${wording.aboutSeconds(epoch)}`
        : `the epoch takes about ${wording.aboutSeconds(epoch)} instead of ${wording.aboutSeconds(was)} (${wording.signed(percent, 1)} %)${unhidden}`;
    return `With ${what}: ${epochs}, ${where}, with ${after} of I/O ${instead}${bottleneck}.`;
  }

  // What it takes if a class that was busy cannot serve more than it ever did.
  function ifNot(option) {
    const doubt = option.warnings.find((warning) => warning.kind.startsWith('beyond'));
    return doubt ? `; if ${doubt.evidence.class} cannot exceed its highest measured rate, ${wording.aboutSeconds(doubt.evidence.implied_seconds)}` : '';
  }

  const costText = (cost) => wording.grouped(wording.general(cost, 6));

  const whereAndValue = (option) => `${option.where} (${wording.GOALS[state.kind].about(option.value)})`;

  function optionText(option) {
    const price = option.cost === null ? '' : `, for ${costText(option.cost)}`;
    return `${improvementsText(option.improve)} at ${whereAndValue(option)}${price}${ifNot(option)}`;
  }

  // An option that costs nothing is no option to buy: the goal is met.
  function metAlready(goal, where, cheapest) {
    const already = `The goal of ${goal} is already met without`;
    if (cheapest && cheapest.cost === 0) return `${already} buying anything, at ${whereAndValue(cheapest)}.`;
    const improved = `${already} any improvement, at ${where}`;
    if (!cheapest || cheapest.cost === null) return `${improved}.`;
    if (!Object.values(cheapest.improve).some(Boolean)) return `${improved}; cheapest at ${whereAndValue(cheapest)}, for ${costText(cheapest.cost)}.`;
    return `${improved}; the cheapest: ${optionText(cheapest)}.`;
  }

  function goalSentence(found) {
    const { about, short, best } = wording.GOALS[state.kind];
    const goal = short(state.goal);
    const [least] = found.pareto;
    if (found.met_without !== null) return metAlready(goal, found.met_without, least);
    const met = found.grid.filter((one) => one.met);
    if (!met.length) {
      const isNearer = (one, least) => (state.kind === 'au' ? one.value > least.value : one.value < least.value);
      const nearest = found.grid.reduce((least, one) => (isNearer(one, least) ? one : least));
      return `${goal} cannot be met by these combinations: the ${best} is ${about(nearest.value)}, with ${improvementsText(nearest.improve)}.`;
    }
    const combinations = found.grid.length === 1 ? 'combination' : 'combinations';
    const by = least.cost === null ? 'smallest total' : 'cheapest';
    return `${met.length} of ${found.grid.length} ${combinations} ${met.length === 1 ? 'meets' : 'meet'} it; the ${by}: ${optionText(least)}.`;
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
    showPrices();
    if (byId('case')) byId('case').value = state.case;
    showSlices();
    for (const one of document.querySelectorAll('[data-part]')) one.hidden = Number(one.dataset.part) !== state.case;
  }

  let slicesOf = 0;
  function showSlices() {
    if (!byId('slice')) return;
    if (slicesOf !== state.case) {
      const options = part().slices.map(({ text }, index) => {
        const option = make('option', text);
        option.value = index;
        return option;
      });
      byId('slice').replaceChildren(...options);
      slicesOf = state.case;
    }
    byId('slices').hidden = part().slices.length < 2;
    byId('slice').value = state.slice;
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

  // ---- prices ----

  const roomInputs = [...document.querySelectorAll('#prices input[data-tier]')];
  const unitOf = (tier) => [...document.querySelectorAll('#prices select')].find((one) => one.dataset.unit === tier);
  const roomName = (tier) => `${tier}.capacity`;

  // What every price box is of; those of classes are of the two that vary.
  const priceBoxes = () => [
    { input: byId('price-x'), name: state.x },
    ...(state.x === state.y ? [] : [{ input: byId('price-y'), name: state.y }]),
    ...roomInputs.map((input) => ({ input, name: roomName(input.dataset.tier), tier: input.dataset.tier })),
  ];

  function showPrices() {
    byId('price-y').closest('p').hidden = state.x === state.y;
    for (const { input, name, tier } of priceBoxes()) {
      const { number = '', unit } = state.costs[name] ?? {};
      input.labels[0].textContent = drawing.clean(name);
      if (input !== document.activeElement) input.value = number;
      if (tier && unit) unitOf(tier).value = unit;
      input.setAttribute('aria-invalid', String(isWrongPrice(number)));
    }
    const wrong = priceTrouble();
    say('price-wrong', wrong);
    byId('price-wrong').hidden = !wrong;
  }

  const isWrongPrice = (number) => Number.isNaN(wording.parsePrice(number, data.price_limits));

  function priceTrouble() {
    const wrong = priceBoxes().find(({ name }) => isWrongPrice(state.costs[name]?.number ?? ''));
    return wrong ? `${wrong.name}: ${state.costs[wrong.name].number} is not a price; write a number, with a point for decimals, or leave it empty.` : '';
  }

  // Null: nothing has a price.
  function pricesNow() {
    const found = { percent: {}, gib: {} };
    for (const { name, tier } of priceBoxes()) {
      const { number = '', unit } = state.costs[name] ?? {};
      const price = wording.parsePrice(number, data.price_limits);
      if (price === null) continue;
      if (tier) found.gib[tier] = (price * 2 ** 30) / data.price_units[unit];
      else found.percent[name] = price;
    }
    return Object.keys(found.percent).length + Object.keys(found.gib).length ? found : null;
  }

  function setPrice({ input, name, tier }, isFinal) {
    const number = input.value.trim();
    if (number) state.costs[name] = { number, unit: tier ? unitOf(tier).value : '%' };
    else delete state.costs[name];
    change(isFinal);
  }

  const isSuggested = () => state.goal === part().goal.value && state.kind === part().goal.kind;

  function showGoalBox() {
    if (state.goal === null) return; // what is typed stays, with what is wrong with it
    const isDefault = isSuggested();
    const typed = state.kind === 'au' ? `${wording.general(100 * state.goal, 6)}%` : wording.aboutSeconds(state.goal);
    byId('goal').value = isDefault ? part().goal.text : typed;
    byId('goal').removeAttribute('aria-invalid');
    byId('goal-suggested').hidden = !isDefault || data.goal.given;
    byId('goal-wrong').hidden = true;
    byId('goal-read').hidden = true;
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
    const there = model().measured.find((point) => point.index === best.index);
    say('before-slowest', ranksText(before.slowest_ranks));
    const measured = found.slowest_rank_changed ? `; ${data.came} there: ${ranksText(there.slowest_ranks)}` : '';
    say('after-slowest', `${ranksText(best.slowest_ranks)}${measured}`);
    const percent = wording.signed(found.change_percent, 1);
    say('change', `${/^[+-]0\.0$/.test(percent) ? '±0' : percent.replace('-', '−')} %`);
    byId('change').className = found.change_percent < 0 ? 'better' : found.change_percent > 0 ? 'worse' : '';
    say('sentence', estimateSentence(found));
    showWarnings(found.warnings);
  }

  const isImproved = () => Object.values(state.improvements).some(Boolean);

  // A suggestion is for its own part only.
  const isGoalOf = (number) => number === state.case || data.goal.given || !isSuggested();

  // What is drawn of one part of the result.
  function drawnPart(number, found) {
    const its = data.parts[number];
    const slice = its.slices[number === state.case ? state.slice : its.slice];
    const pick = (points) => slice.points.map((index) => points.find((point) => point.index === index));
    return {
      shown: pick(found.points),
      before: pick(models[number].measured),
      best: found.best.index,
      goal: state.kind === 'io' && isGoalOf(number) ? state.goal ?? Infinity : Infinity,
      axis: its.axis,
      ticks: slice.ticks,
      look: { classes: data.classes, marks: data.marks, came: data.came, isImproved: isImproved(), name: its.name },
    };
  }

  // Where every part is a single point, a bar for each.
  function drawnPoints(each) {
    const parts = each.map((found, number) => drawnPart(number, found));
    const [shown, before] = ['shown', 'before'].map((key) => parts.map((part) => part[key][0]));
    return { ...parts[0], shown, before, best: -1, axis: '', ticks: data.parts.map(({ name }) => name), look: { ...parts[0].look, name: '' } };
  }

  const swept = data.parts.map((_, number) => number).filter((number) => data.parts[number].summary.length > 1);

  function drawPanels(host) {
    const numbers = swept.slice(0, data.most_panels);
    const hosts = numbers.map((number) => {
      const panel = make('div', '', number === state.case ? 'panel-of chosen' : 'panel-of');
      const inside = make('div');
      panel.append(make('h4', data.parts[number].name), inside);
      return { panel, inside };
    });
    host.replaceChildren(...hosts.map(({ panel }) => panel));
    const given = numbers.map((number) => drawnPart(number, models[number].estimate(state.improvements)));
    const { stride, isOne } = drawing.estimates(hosts.map(({ inside }) => inside), given, printedWidth && printedWidth / 2);
    return [
      isOne ? 'All panels have the same scale.' : 'Each panel has a scale of its own.',
      strideText(stride),
      swept.length > numbers.length ? `Not drawn: ${swept.length - numbers.length} more.` : '',
    ];
  }

  const strideText = (stride) => (stride > 1 ? `Of so many points only one in ${stride} is drawn, and the best.` : '');

  function drawEstimate(found) {
    const host = byId('live-estimate');
    const isPanels = data.parts.length > 1 && swept.length > 0;
    host.classList.toggle('panels', isPanels);
    const draw = (given) => [strideText(drawing.estimate(host, { ...given, top: drawing.longestOf(given) }, printedWidth))];
    const drawOne = () =>
      draw(data.parts.length > 1 ? drawnPoints(models.map((one) => one.estimate(state.improvements))) : drawnPart(state.case, found));
    const notes = isPanels ? drawPanels(host) : drawOne();
    const marked = data.parts.length > 1 && !isPanels ? '' : isPanels ? 'Triangles: the best of each.' : 'Triangle: the best point.';
    say('live-title', isImproved() ? 'I/O time of the slowest process after the improvements' : 'Where the I/O time of the slowest process goes');
    const what = isImproved()
      ? [`Bars: an estimate by scaling, with ${improvementsText(state.improvements)}. Outlines: what was ${data.came}.`, marked.replace('.', ' then.')]
      : [part().caption, marked];
    say('live-caption', [...what, ...notes].filter(Boolean).join(' '));
  }

  function optionRow(option) {
    const row = make('tr');
    for (const name of [state.x, state.y]) row.append(make('td', `${wording.signedGeneral(option.improve[name])} %`));
    row.append(make('td', data.points[option.point].at), make('td', wording.GOALS[state.kind].about(option.value)));
    if (option.cost !== null) row.append(make('td', costText(option.cost), 'cost'));
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
    const isPriced = found.pareto.length > 0 && found.pareto[0].cost !== null;
    const isNeeded = found.pareto.length > 0 && (found.met_without === null || isPriced);
    byId('pareto-cost').hidden = !isPriced;
    const options = isNeeded ? found.pareto.slice(0, MOST_OPTIONS) : [];
    byId('pareto').tBodies[0].replaceChildren(...options.map(optionRow));
    byId('pareto').hidden = !isNeeded;
    say('pareto-value', { io: 'I/O', epoch: 'epoch', au: 'AU' }[state.kind]);
    say('pareto-x', state.x);
    say('pareto-y', state.y);
    const left = found.pareto.length - options.length;
    say('pareto-more', isNeeded && left ? `and ${left} more that trade one class for another` : '');
  }

  // Why there is no answer; empty: there is one.
  function unanswered() {
    if (part().unfit) return `Nothing fits, so nothing can be recommended: ${part().unfit}.`;
    return state.goal === null ? wording.goalTrouble(state.kind, byId('goal').value) : priceTrouble();
  }

  // An old answer must not stand beside new questions.
  function clearGoal(why) {
    say('goal-sentence', part().unfit ? why : `No answer yet. ${why}`);
    for (const id of ['goal-grid', 'goal-key']) byId(id).replaceChildren();
    byId('pareto').tBodies[0].replaceChildren();
    byId('pareto').hidden = true;
    for (const id of ['pareto-more', 'goal-others', 'goal-stride', 'goal-cell']) say(id, '');
  }

  function showGoal() {
    const why = unanswered();
    byId('goal-grid').closest('figure').classList.toggle('empty', Boolean(why));
    if (why) {
      clearGoal(why);
      return;
    }
    const found = model().explore(state.goal, state.x, state.y, state.improvements, state.kind, pricesNow());
    const sentence = goalSentence(found);
    say('goal-sentence', sentence);
    const others = { ...state.improvements, [state.x]: 0, [state.y]: 0 };
    const isAny = Object.values(others).some(Boolean);
    say('goal-others', isAny ? `With ${improvementsText(others)}, as set above.` : '');
    drawGrid(found, sentence);
    showOptions(found);
  }

  // ---- the grid ----

  let cursor = null; // the dot that the keyboard is at, by its improvements

  const rowsOf = () => [...byId('goal-grid').querySelectorAll('[role=row]')].map((row) => [...row.children]);
  const improveOf = (cell) => [cell.dataset.improveX, cell.dataset.improveY].map(Number);

  function drawGrid(found, title) {
    const hadFocus = byId('goal-grid').contains(document.activeElement);
    const here = [state.improvements[state.x], state.improvements[state.y]];
    const stride = drawing.goal(
      byId('goal-grid'),
      byId('goal-key'),
      {
        grid: found.grid,
        percents: part().grid.percents,
        classes: [state.x, state.y],
        here,
        isColoured: part().has_rates,
        isTouched: matchMedia('(pointer: coarse)').matches && printedWidth === null,
        title,
      },
      printedWidth && printedWidth / 2,
    );
    say('goal-stride', stride > 1 ? `One step in ${stride} is drawn here; the sentence and the table count all ${found.grid.length}.` : '');
    const cells = rowsOf().flat();
    const distance = (cell) => improveOf(cell).reduce((sum, percent, axis) => sum + Math.abs(percent - (cursor ?? here)[axis]), 0);
    const at = cells.reduce((nearest, cell) => (distance(cell) < distance(nearest) ? cell : nearest));
    at.setAttribute('tabindex', '0');
    if (hadFocus) at.focus({ preventScroll: true });
    sayCell(cursor === null ? null : at);
  }

  function sayCell(cell) {
    say('goal-cell', cell ? cell.getAttribute('aria-label') : '');
    byId('goal-cell').hidden = false;
  }

  function moveTo(cell) {
    for (const one of byId('goal-grid').querySelectorAll('[tabindex="0"]')) one.setAttribute('tabindex', '-1');
    cell.setAttribute('tabindex', '0');
    cell.focus({ preventScroll: true });
    cursor = improveOf(cell);
    sayCell(cell);
  }

  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };

  function moveInGrid(event) {
    const cell = event.target.closest('.cell');
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      pin(cell);
      return;
    }
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const rows = rowsOf();
    const row = rows.findIndex((cells) => cells.includes(cell));
    const places = [row, rows[row].indexOf(cell)].map((place, axis) => Math.min(Math.max(place + step[axis], 0), rows.length - 1));
    moveTo(rows[places[0]][places[1]]);
  }

  function pin(cell) {
    cursor = improveOf(cell);
    improve({ [state.x]: cursor[0], [state.y]: cursor[1] });
    sayCell(cell);
  }

  let shown = '';
  function show() {
    shown = JSON.stringify(state);
    showControls();
    const found = model().estimate(state.improvements);
    showResult(found);
    drawEstimate(found);
    showGoal();
    document.body.classList.toggle('improved', isImproved());
    document.body.classList.toggle('asked', data.goal.given || isImproved() || fragment() !== '');
    aids.showAllMore();
  }

  // ---- the address ----

  function fragment() {
    const start = fresh(state.case);
    const words = new URLSearchParams();
    if (state.case) words.set('case', part().name);
    for (const [name, percent] of Object.entries(state.improvements)) {
      if (percent !== start.improvements[name]) words.set(name, percent);
    }
    for (const key of ['goal', 'kind', 'x', 'y', 'slice']) {
      if (state[key] !== start[key] && state[key] !== null) words.set(key, state[key]);
    }
    for (const [name, { number, unit }] of Object.entries(state.costs)) {
      if (!isWrongPrice(number)) words.append('cost', `${name}=${number}/${unit}`);
    }
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

  // As in `explore --cost`: GFS-META=3/% or lfs.capacity=90/TiB. What cannot be read is left out.
  function readCost(text, costs) {
    const equals = text.lastIndexOf('=');
    const name = text.slice(0, Math.max(0, equals));
    const [number, unit] = text.slice(equals + 1).split('/');
    const isRoom = data.priced_tiers.some((tier) => roomName(tier) === name) && Object.hasOwn(data.price_units, unit);
    const isClass = data.classes.includes(name) && unit === '%';
    if ((isRoom || isClass) && number && !isWrongPrice(number)) costs[name] = { number, unit };
  }

  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    const named = data.parts.findIndex(({ name }) => name && name === words.get('case'));
    const next = fresh(Math.max(0, named));
    const its = data.parts[next.case];
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
    if (its.slices[slice]) next.slice = slice;
    for (const text of words.getAll('cost')) readCost(text, next.costs);
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

  function clearResult(name) {
    shown = '';
    const { low, high } = data.limits;
    for (const id of ['after-seconds', 'after-best', 'after-bottleneck', 'after-slowest']) say(id, '–');
    delete byId('after-seconds').dataset.value;
    say('change', '');
    byId('change').className = '';
    say('sentence', `${name}: write a percentage from ${wording.general(low, 6)} to ${wording.grouped(String(high))}.`);
    showWarnings([]);
  }

  function setFromInput(input, isFinal) {
    const percent = numberOf(input.value);
    const isWrong = percent === null || percent !== clamped(percent);
    input.setAttribute('aria-invalid', String(isWrong && !isFinal));
    if (isWrong && !isFinal) {
      clearResult(input.dataset.class);
      return;
    }
    if (percent !== null) state.improvements[input.dataset.class] = clamped(percent);
    if (isFinal) input.value = state.improvements[input.dataset.class];
    change(isFinal);
  }

  // A goal of another kind begins where nothing is improved.
  function setKindOf(next, kind) {
    if (kind === next.kind) return;
    const measured = models[next.case].values(kind);
    const { goal } = data.parts[next.case];
    Object.assign(next, kind === goal.kind ? { kind, goal: goal.value } : { kind, goal: measured });
  }

  function setGoal(isFinal) {
    const typed = byId('goal').value;
    const wrong = wording.goalTrouble(state.kind, typed);
    byId('goal').setAttribute('aria-invalid', String(Boolean(wrong)));
    say('goal-wrong', wrong);
    byId('goal-wrong').hidden = !wrong;
    const value = wrong ? null : wording.GOALS[state.kind].parse(typed);
    // The text of the default may be rounded; as long as it stands there, the default itself is meant.
    const { goal } = part();
    state.goal = state.kind === goal.kind && typed === goal.text ? goal.value : value;
    const isBare = value !== null && state.kind !== 'au' && !/[a-zµ]\s*$/i.test(typed);
    say('goal-read', isBare ? `Read as ${wording.aboutSeconds(value)}: a number without a unit is in seconds.` : '');
    byId('goal-read').hidden = !isBare;
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

  // Improvements stay; a goal that somebody typed stays too.
  function setCase(number) {
    const kept = isSuggested() && !data.goal.given ? {} : { goal: state.goal, kind: state.kind };
    state = { ...state, ...shownFirst(number), ...kept };
    showGoalBox();
    change(true);
  }

  function reset() {
    state = fresh(state.case);
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
    if (cell) pin(cell);
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
    byId('goal-grid').addEventListener('keydown', moveInGrid);
    for (const kind of ['pointerover', 'focusin']) {
      byId('goal-grid').addEventListener(kind, (event) => {
        const cell = event.target.closest('.cell');
        if (cell) sayCell(cell);
      });
    }
    for (const [number, input] of [byId('price-x'), byId('price-y'), ...roomInputs].entries()) {
      const box = () => (number < 2 ? { input, name: number ? state.y : state.x } : { input, name: roomName(input.dataset.tier), tier: input.dataset.tier });
      input.addEventListener('input', () => setPrice(box(), false));
      input.addEventListener('change', () => setPrice(box(), true));
      if (number > 1) unitOf(input.dataset.tier).addEventListener('change', () => setPrice(box(), true));
    }
    byId('reset').addEventListener('click', reset);
    byId('copy').addEventListener('click', copyLink);
    if (byId('case')) byId('case').addEventListener('change', () => setCase(Number(byId('case').value)));
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
    const redraw = (width) => {
      printedWidth = width;
      show();
    };
    window.addEventListener('beforeprint', () => redraw(PRINTED_WIDTH));
    window.addEventListener('afterprint', () => redraw(null));
  }

  byId('live').hidden = false;
  byId('goals').hidden = false;
  byId('prices').open = false;
  aids.listen();
  state = read();
  listen();
  showGoalBox();
  show();
  byId('prices').open = Object.keys(state.costs).length > 0;
  globalThis.tierscope = {
    estimate: (...given) => model().estimate(...given),
    explore: (...given) => model().explore(...given),
    state: () => structuredClone(state),
  };
})();
