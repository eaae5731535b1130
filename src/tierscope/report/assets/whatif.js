'use strict';

// What `tierscope estimate` and `tierscope explore` compute, on the processes that can be the slowest. Nothing here touches the page.

const wording = (() => {
  const BYTES = [['PiB', 2 ** 50], ['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];
  const SECONDS = { ns: 1e-9, us: 1e-6, 'µs': 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
  const LARGE = 999.5; // three digits would need an exponent
  const QUANTITY = /^([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s].*)?$/;

  const grouped = (text) => text.replace(/^(-?)(\d+)/, (_, sign, digits) => sign + digits.replace(/\B(?=(\d{3})+$)/g, ','));

  const notFinite = (value) => (Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf');

  // Python rounds exact halves to even, JavaScript away from zero.
  function fixed(value, digits) {
    if (!Number.isFinite(value)) return notFinite(value);
    if (Math.abs(value) >= 1e21) return BigInt(value).toString() + (digits ? `.${'0'.repeat(digits)}` : '');
    const text = value.toFixed(digits);
    const isHalf = Math.abs((value * 2 ** (digits + 1)) % 2) === 1;
    if (!isHalf || Number(text.at(-1)) % 2 === 0) return text;
    return (value - Math.sign(value) * 10 ** -digits / 2).toFixed(digits);
  }

  function exponential(value, digits) {
    let [mantissa, exponent] = value.toExponential(digits - 1).split('e');
    const unit = 10 ** (Number(exponent) - digits + 1);
    const whole = Math.floor(Math.abs(value) / unit);
    if (unit > 1 && Math.abs(value) % unit === unit / 2 && whole % 2 === 0) {
      mantissa = fixed((Math.sign(value) * whole) / 10 ** (digits - 1), digits - 1);
    }
    return { mantissa, exponent: Number(exponent) };
  }

  const withoutZeros = (text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

  // Python's format of `.{digits}g`.
  function general(value, digits) {
    if (!Number.isFinite(value)) return notFinite(value);
    if (value === 0) return '0';
    const { mantissa, exponent } = exponential(value, digits);
    if (exponent >= -4 && exponent < digits) return withoutZeros(fixed(value, digits - 1 - exponent));
    const sign = exponent < 0 ? '-' : '+';
    return `${withoutZeros(mantissa)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }

  function aboutSeconds(value) {
    if (value < 0) return `-${aboutSeconds(-value)}`;
    if (value >= LARGE) return `${value < 1e12 ? grouped(fixed(value, 0)) : general(value, 3)} s`;
    for (const unit of ['s', 'ms', 'µs', 'ns']) {
      const text = general(value / SECONDS[unit], 3);
      if (Number(text) >= 1) return `${text} ${unit}`; // after rounding: 999.96 ms are 1 s
    }
    return value > 0 ? '<1 ns' : `${general(value, 3)} ns`;
  }

  function aboutBytes(value) {
    for (const [unit, size] of BYTES) {
      if (value >= size) return `${value / size < LARGE ? general(value / size, 3) : fixed(value / size, 0)} ${unit}`;
    }
    return `${fixed(value, 0)} B`;
  }

  function signed(value, digits) {
    const text = fixed(value, digits);
    return text.startsWith('-') ? text : `+${text}`;
  }

  const signedGeneral = (value) => (value < 0 ? '' : '+') + general(value, 6);

  function field(value, spec) {
    if (Array.isArray(value)) return value.join(spec);
    if (spec === 'time') return value === null ? 'an unknown time' : aboutSeconds(value);
    if (spec === 'size') return aboutBytes(value);
    const number = /^(,?)\.(\d+)([fg])$/.exec(spec);
    if (!number) return String(value);
    const text = (number[3] === 'f' ? fixed : general)(value, Number(number[2]));
    return number[1] ? grouped(text) : text;
  }

  const fill = (template, evidence) =>
    template.replace(/\{([a-z_]+)(?::([^}]*))?\}/g, (_, name, spec) => field(evidence[name], spec || ''));

  // Seconds of `400 ms`, `4 s` or a bare number; null when it is none.
  function parseSeconds(text) {
    const match = QUANTITY.exec(text.trim());
    if (!match) return null;
    const unit = (match[2] || 's').trim();
    if (!Object.hasOwn(SECONDS, unit)) return null;
    const number = Number(match[1].replaceAll('_', ''));
    // Divided where that is exact: 400 ms are 0.4 s, but 400 × 1e-3 is not always the nearest number.
    const seconds = SECONDS[unit] < 1 ? number / Math.round(1 / SECONDS[unit]) : number * SECONDS[unit];
    return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
  }

  // A share of `90%` or `0.9`; null when it is none.
  function parseShare(text) {
    const match = /^(\d*\.?\d+)\s*(%?)$/.exec(text.trim());
    const share = match ? Number(match[1]) / (match[2] ? 100 : 1) : null;
    return share !== null && share <= 1 ? share : null;
  }

  const EXAMPLES = { io: '4 s or 400 ms', epoch: '10 min or 90 s', au: '90% or 0.9' };

  // What is wrong with the text of a goal; empty: nothing.
  function goalTrouble(kind, text) {
    const typed = text.trim();
    const like = `write it like ${EXAMPLES[kind]}`;
    if (!typed) return `There is no goal: ${like}.`;
    if (/\d,\d/.test(typed)) return `${typed}: write decimals with a point, not a comma, and no commas between thousands.`;
    const value = GOALS[kind].parse(typed);
    if (value > 0) return '';
    if (value === 0 || /^-/.test(typed)) return `${typed}: a goal must be above 0; ${like}.`;
    const match = QUANTITY.exec(typed);
    if (!match) return `${typed}: this is not a number; ${like}.`;
    if (kind === 'au') {
      return match[2] && match[2].trim() !== '%'
        ? `${typed}: accelerator utilisation has no unit; ${like}.`
        : `${typed}: accelerator utilisation is at most 100%; ${like}.`;
    }
    return match[2] ? `${typed}: ${match[2].trim()} is not a unit of time; ${like}.` : `${typed}: this is not a time; ${like}.`;
  }

  // A price as in `--cost`: null where there is none, NaN where it cannot be read.
  function parsePrice(text, { least, most }) {
    const typed = text.trim();
    if (!typed) return null;
    const price = /^(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(typed) ? Number(typed.replaceAll('_', '')) : NaN;
    return price === 0 || (price >= least && price <= most) ? price : NaN;
  }

  const GOALS = {
    io: { parse: parseSeconds, about: aboutSeconds, short: aboutSeconds, best: 'shortest' },
    epoch: { parse: parseSeconds, about: aboutSeconds, short: (value) => `${aboutSeconds(value)} per epoch`, best: 'shortest' },
    au: {
      parse: parseShare,
      about: (value) => `${fixed(100 * value, 1)} % AU`,
      short: (value) => `${general(100 * value, 6)}% AU`,
      best: 'highest',
    },
  };

  return { GOALS, aboutBytes, aboutSeconds, fill, fixed, general, goalTrouble, grouped, parsePrice, parseSeconds, signed, signedGeneral };
})();

const whatif = (() => {
  const ROUNDING = 1e-9;
  const TIE = 1e-9; // nearer ones are looked at closely

  function floats(base64) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 8 }, (_, index) => view.getFloat64(8 * index, true));
  }

  const factor = (percent) => 100 / (100 + percent);

  const changePercent = (before, after) => (before ? 100 * (after / before - 1) : 0);

  // For comparing: sums of the same times are the same, in whichever order they were added up.
  const settled = (seconds) => Number(seconds.toPrecision(12));

  // What a median is made of: the one or two items in the middle of the order of their keys.
  function middle(items, key) {
    const order = [...items].sort((one, other) => key(one) - key(other));
    const half = Math.floor(order.length / 2);
    return order.length % 2 ? [order[half]] : [order[half - 1], order[half]];
  }

  const GIB = 2 ** 30;

  // As exact as Python's fsum: equal costs are equal in whichever order they are added up.
  function exactSum(values) {
    let partials = [];
    for (let value of values) {
      const kept = [];
      for (let other of partials) {
        if (Math.abs(value) < Math.abs(other)) [value, other] = [other, value];
        const high = value + other;
        const low = other - (high - value);
        if (low) kept.push(low);
        value = high;
      }
      partials = [...kept, value];
    }
    return partials.reduceRight((total, one) => total + one, 0);
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  const median = (values) => mean(middle(values, (value) => value));

  function unpacked(data) {
    const rows = (base64) => (base64 ? floats(base64) : null);
    const epochs = (point) =>
      point.epochs.map((epoch) => ({ ...epoch, seconds: floats(epoch.seconds), clock: rows(epoch.clock), au: rows(epoch.au) }));
    const ceiling = ({ numbers, ...rest }) => {
      const [perSecond, share, ...seconds] = floats(numbers);
      return { ...rest, perSecond, share, seconds };
    };
    const cases = data.cases.map((one) => ({ ...one, ceilings: one.ceilings.map(ceiling) }));
    return { points: data.points.map((point) => ({ ...point, epochs: epochs(point) })), cases };
  }

  // The process with the largest sum, the first of equals.
  function slowest(epoch, factors) {
    const width = factors.length;
    let [row, longest] = [0, -1];
    for (let start = 0; start < epoch.seconds.length; start += width) {
      let sum = 0;
      for (let column = 0; column < width; column += 1) sum += epoch.seconds[start + column] * factors[column];
      if (sum > longest * (1 - TIE) && (longest < 0 || settled(sum) > settled(longest))) [row, longest] = [start / width, sum];
    }
    return { rank: epoch.ranks[row], ioSeconds: longest, row, seconds: epoch.seconds };
  }

  // The epoch of the slowest: no shorter than the first number, else the largest row of [epoch without I/O, class seconds…].
  function epochSeconds({ clock }, factors) {
    const width = factors.length + 1;
    let longest = clock[0];
    for (let start = 1; start < clock.length; start += width) {
      let sum = clock[start];
      for (let column = 0; column < factors.length; column += 1) sum += clock[start + 1 + column] * factors[column];
      if (sum > longest) longest = sum;
    }
    return longest;
  }

  // The mean over ranks, whose rows are [compute, shortest, without I/O, class seconds…].
  function utilisation({ au }, factors) {
    const width = factors.length + 3;
    let total = 0;
    for (let start = 0; start < au.length; start += width) {
      let sum = au[start + 2];
      for (let column = 0; column < factors.length; column += 1) sum += au[start + 3 + column] * factors[column];
      const seconds = Math.max(au[start + 1], sum);
      total += seconds > 0 ? au[start] / seconds : 0;
    }
    return total / (au.length / width);
  }

  function bottleneckOf(classes) {
    const largest = Object.keys(classes).reduce((most, name) => (classes[name] > classes[most] ? name : most));
    return classes[largest] > 0 ? largest : null;
  }

  // A model of each part: a case, or the points that read the same amount of data. Each is ranked by itself.
  function models(data) {
    const found = unpacked(data);
    return data.parts.map((part) => model(data, found.points, found.cases[part.case], part));
  }

  function model(data, points, ownCase, part) {
    const { ceilings } = ownCase;
    const rateOf = (index) => points[index].sweep.cache_rate ?? 0;

    const factorsOf = (improvements) => data.classes.map((name) => factor(improvements[name] || 0));

    function pointAfter(index, factors) {
      const runs = points[index].epochs.map((epoch) => slowest(epoch, factors));
      const chosen = middle(runs, (run) => settled(run.ioSeconds));
      const timeOf = (column) => mean(chosen.map((run) => run.seconds[run.row * factors.length + column] * factors[column]));
      const classes = Object.fromEntries(data.classes.map((name, column) => [name, timeOf(column)]));
      return {
        index,
        sweep: points[index].sweep,
        where: points[index].where,
        io_seconds: mean(chosen.map((run) => run.ioSeconds)),
        epoch_seconds: points[index].epochs[0].clock ? valueOf('epoch', points[index], factors) : null,
        classes,
        bottleneck: bottleneckOf(classes),
        slowest_ranks: runs.map((run) => run.rank),
      };
    }

    const ioSeconds = (point, factors) => median(point.epochs.map((epoch) => slowest(epoch, factors).ioSeconds));

    // What a goal of this kind is about.
    function valueOf(kind, point, factors) {
      if (kind === 'io') return ioSeconds(point, factors);
      const values = point.epochs.map((epoch) => (kind === 'au' ? utilisation : epochSeconds)(epoch, factors));
      return kind === 'au' ? mean(values) : median(values);
    }

    // Points of other cases, or that read another amount of data, are not ranked against these; points that do not fit are not recommended.
    const comparable = part.points.map((index) => points[index]);

    const shortest = (factors) => Math.min(...comparable.map((point) => ioSeconds(point, factors)));

    function bestOf(all) {
      const key = (one) => [data.ranked_by === 'epoch' ? settled(one.epoch_seconds) : 0, settled(one.io_seconds), rateOf(one.index)];
      const isBetter = (one, other) => {
        const [mine, theirs] = [key(one), key(other)];
        const place = mine.findIndex((value, index) => value !== theirs[index]);
        return place >= 0 && mine[place] < theirs[place];
      };
      const ranked = all.filter((one) => part.points.includes(one.index));
      return ranked.reduce((best, point) => (isBetter(point, best) ? point : best));
    }

    const measured = part.summary.map((index) => pointAfter(index, data.classes.map(() => 1)));
    const measuredBest = bestOf(measured);

    function finding(kind, evidence) {
      const [text, suggestion] = data.wording[kind];
      return { kind, evidence, text: wording.fill(text, evidence), suggestion };
    }

    function moved(after) {
      return finding('bottleneck_moves', {
        before: measuredBest.bottleneck ?? 'nothing',
        before_where: measuredBest.where,
        after: after.bottleneck ?? 'nothing',
        after_where: after.where,
      });
    }

    // Improved classes of which more would gain next to nothing.
    function spent(seconds, improvements) {
      const found = [];
      data.classes.forEach((name, column) => {
        if (!(improvements[name] > 0)) return;
        const factors = factorsOf(improvements);
        factors[column] = 0;
        const left = -changePercent(seconds, shortest(factors));
        if (left < 100 * data.little) found.push(finding('stops_mattering', { class: name, percent: Math.max(0, left) }));
      });
      return found;
    }

    // Classes that would have to serve more than they ever did, and more than their improvement gives; those that were busy first.
    function exceeded(index, seconds, improvements) {
      const worst = new Map();
      for (const ceiling of seconds > 0 ? ceilings : []) {
        const implied = ceiling.seconds[ownCase.points.indexOf(index)] * factor(improvements[ceiling.class] || 0);
        const least = worst.has(ceiling.class) ? worst.get(ceiling.class).implied : seconds * (1 + ROUNDING);
        if (implied > least) worst.set(ceiling.class, { implied, ceiling });
      }
      const isIdle = (one) => one.ceiling.share < data.busy_share;
      const ordered = [...worst.values()].sort((one, other) => isIdle(one) - isIdle(other));
      return ordered.map((one) =>
        finding(`${isIdle(one) ? 'idle_' : ''}beyond_${one.ceiling.kind}`, {
          class: one.ceiling.class,
          times: one.implied / seconds,
          most_per_second: one.ceiling.perSecond / factor(improvements[one.ceiling.class] || 0),
          where: one.ceiling.where,
          percent: 100 * one.ceiling.share,
          implied_seconds: one.implied,
        }),
      );
    }

    // Why it cannot be told whether other classes would have to serve more than they ever did.
    function untold(improvements) {
      const others = data.classes.filter((name) => !(improvements[name] > 0));
      const unknown = ownCase.unknown_classes.filter((name) => others.includes(name));
      if (others.length && ownCase.points.length < 2) return [finding('one_point', {})];
      return unknown.length ? [finding('no_ceilings', { classes: unknown })] : [];
    }

    function warnings(best, improvements) {
      if (!data.classes.some((name) => improvements[name])) return [];
      const isMore = data.classes.some((name) => improvements[name] > 0);
      return [
        ...(measuredBest.bottleneck === best.bottleneck ? [] : [moved(best)]),
        ...spent(best.io_seconds, improvements),
        // Where nothing is faster, nothing has to serve more than it did.
        ...(isMore ? [...untold(improvements), ...exceeded(best.index, best.io_seconds, improvements)] : []),
      ];
    }

    // `improvements`: percent by class.
    function estimate(improvements) {
      const factors = factorsOf(improvements);
      const after = part.summary.map((index) => pointAfter(index, factors));
      const best = bestOf(after);
      const before = measured.find((point) => point.index === best.index);
      return {
        best,
        baseline_best: measuredBest,
        points: after,
        change_percent: changePercent(measuredBest.io_seconds, best.io_seconds),
        slowest_rank_changed: before.slowest_ranks.some((rank, run) => rank !== best.slowest_ranks[run]),
        bottleneck_moved: measuredBest.bottleneck !== best.bottleneck,
        warnings: warnings(best, improvements),
      };
    }

    // The first of these points that meets the goal with these factors, or what misses it by least.
    function nearest(factors, goal, kind, order = part.points) {
      const better = kind === 'au' ? -1 : 1;
      let least = { point: -1, value: Infinity * better, at: null };
      for (const index of order) {
        const value = valueOf(kind, points[index], factors);
        if (better * value <= better * goal * (1 + better * data.rounding)) return { point: index, value, at: index };
        if (better * value < better * least.value) least = { point: -1, value, at: index };
      }
      return least;
    }

    function entry(improve, factors, { point, value, at }, kind) {
      const met = point >= 0;
      return {
        improve,
        min_cache_rate: met ? points[point].sweep.cache_rate ?? null : null,
        io_seconds: kind === 'io' ? value : ioSeconds(points[at], factors),
        value,
        met,
        sweep: met ? points[point].sweep : null,
        where: met ? points[point].where : null,
        point,
      };
    }

    // What a point's files cost on near tiers; prices by tier are of one GiB.
    const roomOf = (index, { gib }) => exactSum(Object.entries(gib).map(([tier, price]) => (price * points[index].held[tier]) / GIB));

    // `prices`: of a percent by class, of a GiB by tier; null: nothing has one.
    const costOf = (one, prices) =>
      prices && roomOf(one.point, prices) + exactSum(Object.entries(one.improve).map(([name, percent]) => (prices.percent[name] ?? 0) * percent));

    // More of a class never takes longer, so it is enough to look one step down along either class. `spent`: by point, its cache rate or its room.
    function pareto(grid, width, improvements, spent, prices) {
      const rates = grid.map((one) => (one.met ? spent(one.point) : Infinity));
      const front = grid.filter((one, index) => {
        const lessX = index >= width ? rates[index - width] : Infinity;
        const lessY = index % width ? rates[index - 1] : Infinity;
        return one.met && lessX > rates[index] && lessY > rates[index];
      });
      const inAll = (one) => Object.values(one.improve).reduce((sum, percent) => sum + percent, 0);
      const priced = front.map((one) => ({ ...one, cost: costOf(one, prices) }));
      priced.sort((one, other) => one.cost - other.cost || inAll(one) - inAll(other) || spent(one.point) - spent(other.point));
      return priced.map((one) => ({
        ...one,
        warnings: exceeded(one.point, one.io_seconds, { ...improvements, ...one.improve }),
      }));
    }

    // Every pair of improvements of two classes, the second varying fastest; the others stay as they are in `improvements`.
    function gridOf(goal, [xClass, yClass], improvements, kind, order) {
      const { percents } = part.grid;
      const grid = [];
      for (const x of percents) {
        for (const y of percents) {
          const improve = { [xClass]: x, [yClass]: y };
          const factors = factorsOf({ ...improvements, ...improve });
          grid.push(entry(improve, factors, nearest(factors, goal, kind, order), kind));
        }
      }
      return grid;
    }

    // `prices`: see `costOf`. Where room has a price, options are those that spend least on it: where more than the rate was swept, a larger
    // rate may take less room.
    function explore(goal, xClass, yClass, improvements = {}, kind = 'io', prices = null) {
      const { percents } = part.grid;
      const classes = [xClass, yClass];
      const grid = gridOf(goal, classes, improvements, kind, part.points);
      const isRoom = prices !== null && Object.keys(prices.gib).length > 0;
      const spent = isRoom ? (index) => roomOf(index, prices) : rateOf;
      const byRoom = [...part.points].sort((one, other) => spent(one) - spent(other));
      const bought = isRoom ? gridOf(goal, classes, improvements, kind, byRoom) : grid;
      const without = nearest(data.classes.map(() => 1), goal, kind);
      return {
        grid,
        pareto: pareto(bought, percents.length, improvements, spent, prices),
        met_without: without.point < 0 ? null : points[without.point].where,
      };
    }

    // The best that was measured of a kind.
    function values(kind) {
      const found = comparable.map((point) => valueOf(kind, point, data.classes.map(() => 1)));
      return kind === 'au' ? Math.max(...found) : Math.min(...found);
    }

    return { estimate, explore, measured, values };
  }

  return { models };
})();
