
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const by = (id) => document.getElementById(id);
  const token = document.querySelector("meta[name=ocsc-token]").content;
  const embedded = by("data").textContent.trim();
  let frame = null;
  let status = { phase: embedded ? "view" : "preparing", testing: null, pause: false };
  let chosen = null;
  let sortedAt = 0;
  let order = [];

  // Numbers in words.
  const digits = (v, n = 4) => {
    if (v === null || v === undefined || !Number.isFinite(v)) return "–";
    const size = Math.abs(v);
    if (size >= 1e6 || (size < 1e-3 && size > 0)) return v.toExponential(2);
    return size >= 1000 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(n)));
  };
  const percent = (v) => (v === null || v === undefined ? "–" : `${digits(100 * v, 3)} %`);
  const bytes = (v) => {
    if (!v) return "–";
    const units = ["B", "kB", "MB", "GB", "TB"];
    let i = 0;
    while (v >= 1000 && i < units.length - 1) { v /= 1000; i += 1; }
    return `${digits(v, 3)} ${units[i]}`;
  };
  const time = (s) => {
    if (s === null || s === undefined || !Number.isFinite(s)) return "–";
    if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
    const m = Math.floor(s / 60);
    if (m < 60) return `${m} min ${Math.floor(s % 60)} s`;
    const h = Math.floor(m / 60);
    return h < 48 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
  };
  const make = (name, properties, ...children) => {
    const element = document.createElement(name);
    Object.assign(element, properties);
    element.append(...children);
    return element;
  };
  const draw = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  const decode = (text) => {
    const raw = atob(text);
    const values = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) values[i] = raw.charCodeAt(i);
    return values;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // What the run does.
  const WORDS = {
    preparing: "preparing", learning: "learning", testing: "testing", paused: "paused", stopping: "stopping: saving what there is",
    ended: "finished", failed: "ended by an error", view: "files",
  };
  const showStatus = () => {
    const phase = by("phase");
    const ended = frame && frame.ended;
    let text = WORDS[status.phase] || status.phase;
    if (status.phase === "testing" && status.testing) text = `testing ${status.testing[0]} of ${status.testing[1]}`;
    if (status.pause && status.phase === "learning") text = "pausing after this step";
    if (ended) text = ended;
    if (phase.textContent !== text) phase.textContent = text;
    const over = Boolean(ended) || ["ended", "failed", "view"].includes(status.phase);
    phase.className = `phase ${["learning", "testing"].includes(status.phase) && !over ? "on" : ""} ${["paused", "stopping"].includes(status.phase) ? "wait" : ""}`;
    phase.hidden = status.phase === "view" && !ended;
    by("pause").hidden = over;
    by("stop").hidden = over;
    const paused = status.pause ? "Go on" : "Pause";
    if (by("pause").textContent !== paused) by("pause").textContent = paused;
    const stopping = status.phase === "stopping";
    by("stop").disabled = stopping;
    by("pause").disabled = stopping || status.phase === "preparing";
  };
  const notice = (text) => {
    by("notice").hidden = !text;
    by("notice").textContent = text;
  };

  // Figures.
  const showFigures = () => {
    const now = frame.now;
    const rows = [];
    if (now) {
      const of = now.total ? ` of ${now.total.toLocaleString("en")}` : "";
      const passes = now.passes ? `pass ${Math.min(now.pass + 1, now.passes)} of ${now.passes}` : `${now.pass} passes made`;
      rows.push(["samples", `${now.samples.toLocaleString("en")}`, `${of ? `${of.trim()}, ` : ""}${passes}`]);
      rows.push(["samples per second", digits(now.rate, 3), `${time(now.seconds)} learned`]);
      if (!frame.ended && status.phase !== "view") rows.push(["time left", time(now.left), ""]);
      rows.push(["training objective", digits(now.objective), "per sample or piece, mean of the last step"]);
    }
    const test = frame.test.at(-1);
    if (test) rows.push(["test objective", digits(test[2]), test[3] === null ? "per sample" : `per sample, PSNR ${digits(test[3])} dB`]);
    if (now) {
      rows.push(["worst gap", percent(now.worst_gap), "of the pass"]);
      rows.push(["non-zeros", digits(now.nonzeros, 3), now.share === null ? "" : `${percent(now.share)} of the values`]);
      if (now.change !== null) rows.push(["change of filters", percent(now.change), "in the last step"]);
      if (now.memory || now.peak_memory) rows.push(["memory", bytes(now.memory || now.peak_memory), now.memory ? `at most ${bytes(now.peak_memory)}` : "at most"]);
      if (now.skipped) rows.push(["passed over", digits(now.skipped), "samples"]);
    }
    if (frame.codes.length) {
      rows.push(["codes", digits(frame.codes.length), ""]);
      const gaps = frame.codes.map((code) => code.gap).filter((gap) => gap !== null);
      if (gaps.length) rows.push(["worst gap", percent(Math.max(...gaps)), "of the codes"]);
    }
    by("figures").hidden = rows.length === 0;
    by("figures").replaceChildren(...rows.map(([name, value, small]) =>
      make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }, ...(small ? [make("small", { textContent: small })] : [])))));
    const progress = by("progress");
    progress.hidden = !(now && now.total);
    if (now && now.total) {
      const part = Math.min(100, (100 * now.samples) / now.total);
      progress.firstElementChild.style.width = `${part}%`;
      progress.setAttribute("aria-valuenow", String(Math.round(part)));
    }
  };

  // Filters.
  const gray = (v) => 127.5 + (127.5 * v) / 127;
  const INKS = ["--accent", "--warm", "--good", "--red", "--blue", "--muted"];
  const drawFilter = (canvas, values, [channels, depth, height, width]) => {
    const context = canvas.getContext("2d");
    if (depth === 1 && height === 1) {
      [canvas.width, canvas.height] = [120, 60];
      context.strokeStyle = colour("--grid");
      context.beginPath();
      context.moveTo(0, 30);
      context.lineTo(120, 30);
      context.stroke();
      for (let c = channels - 1; c >= 0; c -= 1) {
        context.strokeStyle = colour(INKS[c % INKS.length]);
        context.lineWidth = 1.5;
        context.beginPath();
        for (let x = 0; x < width; x += 1) context.lineTo(2 + (116 * x) / Math.max(1, width - 1), 30 - (28 * values[c * width + x]) / 127);
        context.stroke();
      }
      return;
    }
    const plane = height * width;
    const colours = channels === 3;
    const panels = colours ? depth : channels * depth;
    const wide = panels * width + (panels - 1);
    [canvas.width, canvas.height] = [wide, height];
    const image = context.createImageData(wide, height);
    for (let p = 0; p < panels; p += 1) {
      for (let i = 0; i < plane; i += 1) {
        const at = 4 * (Math.floor(i / width) * wide + p * (width + 1) + (i % width));
        for (let c = 0; c < 3; c += 1) image.data[at + c] = gray(values[colours ? (c * depth + p) * plane + i : p * plane + i]);
        image.data[at + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  };
  const describe = (filters, i) => {
    const total = filters.used.reduce((sum, used) => sum + used, 0);
    const used = filters.used.length
      ? `${digits(filters.used[i], 3)} non-zeros per sample (${percent(total > 0 ? filters.used[i] / total : 0)} of all), ` : "";
    return `Filter ${filters.number[i]}: ${used}variance ${digits(filters.variance[i], 3)}, norm ${digits(filters.norm[i], 4)}.`;
  };
  const showDetail = () => {
    const filters = frame && frame.filters;
    const at = filters ? filters.number.indexOf(chosen) : -1;
    by("filter-detail").textContent = at < 0 ? "Point at a filter for its numbers." : describe(filters, at);
  };
  const showFilters = () => {
    const filters = frame.filters;
    by("filters-part").hidden = !filters;
    if (!filters) return;
    const shown = filters.number.length < filters.of ? `, the ${filters.number.length} most used` : "";
    by("filters-title").textContent = `${filters.of} filters of ${filters.size}${shown}`;
    const sort = by("sort");
    const used = sort.querySelector("[value=used]");
    used.disabled = filters.used.length === 0;
    const grid = by("filters");
    // Filters that change places all the time are hard to look at.
    const now = performance.now();
    if (order.length !== filters.number.length || (now - sortedAt > 3000 && !grid.matches(":hover"))) {
      sortedAt = now;
      const key = sort.value === "used" && filters.used.length ? filters.used : filters.variance;
      order = filters.number.map((_, i) => i);
      if (sort.value !== "number") order.sort((a, b) => key[b] - key[a]);
    }
    const values = new Int8Array(decode(filters.values).buffer);
    const size = filters.shape.reduce((product, n) => product * n, 1);
    const isLine = filters.shape[1] === 1 && filters.shape[2] === 1;
    const [channels, depth, height, width] = filters.shape;
    const wide = (channels === 3 ? depth : channels * depth) * (width / height);
    const side = order.length > 144 ? 36 : order.length > 36 ? 46 : order.length > 12 ? 70 : 96;
    grid.style.setProperty("--cell", isLine ? "110px" : `${Math.min(300, Math.round(side * Math.max(1, wide)))}px`);
    while (grid.children.length > order.length) grid.lastElementChild.remove();
    while (grid.children.length < order.length) grid.append(document.createElement("canvas"));
    order.forEach((i, place) => {
      const canvas = grid.children[place];
      canvas.dataset.number = filters.number[i];
      canvas.className = `${isLine ? "lines" : ""} ${filters.used.length && filters.used[i] === 0 ? "unused" : ""} ${filters.number[i] === chosen ? "chosen" : ""}`;
      canvas.title = describe(filters, i);
      drawFilter(canvas, values.subarray(i * size, (i + 1) * size), filters.shape);
    });
    showDetail();
  };
  const choose = (event) => {
    const number = event.target.dataset && event.target.dataset.number;
    if (number === undefined) return;
    chosen = Number(number);
    for (const canvas of by("filters").children) canvas.classList.toggle("chosen", Number(canvas.dataset.number) === chosen);
    showDetail();
  };
  by("filters").addEventListener("pointerover", choose);
  by("filters").addEventListener("click", choose);
  by("sort").addEventListener("change", () => { order = []; if (frame) showFilters(); });

  // Curves.
  const ticks = (low, high, count) => {
    const rough = (high - low) / count || 1;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= rough) || 10 * unit;
    const all = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) all.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return all;
  };
  const charts = new Map();
  const chart = (id, title, kind, points, tell, unit) => {
    if (points.length === 0) { if (charts.has(id)) { charts.get(id).box.remove(); charts.delete(id); } return; }
    if (!charts.has(id)) {
      const box = make("div", { className: "chart" });
      const heading = make("h3", { textContent: title });
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("role", "img");
      const read = make("p", { className: "read" });
      box.append(heading, svg, read);
      box.style.order = ["train", "test", "gap"].indexOf(id);
      by("charts").append(box);
      const entry = { box, svg, read, at: null };
      const move = (event) => {
        const area = svg.getBoundingClientRect();
        entry.at = event.clientX - area.left;
        entry.paint();
      };
      svg.addEventListener("pointermove", move);
      svg.addEventListener("pointerdown", move);
      svg.addEventListener("pointerleave", () => { entry.at = null; entry.paint(); });
      charts.set(id, entry);
    }
    const entry = charts.get(id);
    entry.paint = () => {
      const { svg } = entry;
      const width = Math.max(200, svg.clientWidth || 500);
      const height = Math.max(120, svg.clientHeight || 208);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.replaceChildren();
      const [left, right, top, bottom] = [58, 12, 10, 24];
      const xs = points.map((p) => p[0]);
      const ys = points.map((p) => p[1]);
      const low0 = Math.min(...ys);
      const high0 = Math.max(...ys);
      const isLog = low0 > 0 && high0 > 20 * low0;
      const scale = (v) => (isLog ? Math.log10(v) : v);
      let [low, high] = [scale(low0), scale(high0)];
      if (high - low < 1e-12 * Math.max(1, Math.abs(high))) { const pad = isLog ? 0.5 : Math.abs(high) * 0.1 || 1; low -= pad; high += pad; }
      const [first, last] = [xs.length > 1 ? xs[0] : Math.min(0, xs[0]), xs.at(-1)];
      const x = (v) => left + ((width - left - right) * (v - first)) / (last - first || 1);
      const y = (v) => height - bottom - ((height - top - bottom) * (scale(v) - low)) / (high - low);
      const label = isLog ? ticks(Math.ceil(low), high, 5).filter(Number.isInteger).map((v) => 10 ** v) : ticks(low, high, 4);
      for (const v of label.length > 1 ? label : [low0, high0]) {
        draw("line", { class: "axis", x1: left, x2: width - right, y1: y(v), y2: y(v) }, svg);
        draw("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, svg).textContent = unit === "%" ? percent(v) : digits(v, 4);
      }
      const inTime = by("over").value === "1";
      for (const v of ticks(first, last, Math.max(2, Math.floor(width / 110))).filter((v) => inTime || Number.isInteger(v))) {
        draw("text", { x: x(v), y: height - 6, "text-anchor": "middle" }, svg).textContent = inTime ? time(v) : v.toLocaleString("en");
      }
      const path = points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
      draw("path", { class: `curve ${kind}`, d: path }, svg);
      if (points.length <= 40) for (const p of points) draw("circle", { class: kind, cx: x(p[0]), cy: y(p[1]), r: 2.6 }, svg);
      svg.setAttribute("aria-label", `${title}: ${tell(points.at(-1))}`);
      let point = points.at(-1);
      if (entry.at !== null) {
        point = points.reduce((best, p) => (Math.abs(x(p[0]) - entry.at) < Math.abs(x(best[0]) - entry.at) ? p : best));
        draw("line", { class: "cursor", x1: x(point[0]), x2: x(point[0]), y1: top, y2: height - bottom }, svg);
        draw("circle", { class: kind, cx: x(point[0]), cy: y(point[1]), r: 4 }, svg);
      }
      entry.read.textContent = tell(point);
    };
    entry.paint();
  };
  const showCurves = () => {
    const over = Number(by("over").value);
    const { train, test } = frame;
    by("curves-part").hidden = train.length === 0 && test.length === 0;
    if (by("curves-part").hidden) return;
    const where = (source) => `${source[0].toLocaleString("en")} ${source[0] === 1 ? "sample" : "samples"}, ${time(source[1])}`;
    chart("train", "Training objective per sample or piece", "train", train.map((p) => [p[over], p[2], p]), (p) => `${digits(p[1], 5)} after ${where(p[2])}`);
    chart("test", "Test objective per sample", "test", test.map((p) => [p[over], p[2], p]),
      (p) => `${digits(p[1], 5)} after ${where(p[2])}${p[2][3] === null ? "" : `, PSNR ${digits(p[2][3])} dB`}`);
    chart("gap", "Worst gap", "gap", train.filter((p) => p[3] > 0).map((p) => [p[over], p[3], p]), (p) => `${percent(p[1])} after ${where(p[2])}`, "%");
  };
  by("over").addEventListener("change", () => { if (frame) showCurves(); });
  window.addEventListener("resize", () => { for (const entry of charts.values()) entry.paint(); });

  // Samples.
  const REDS = [[247, 247, 247], [239, 138, 98], [178, 24, 43]];
  const BLUES = [[247, 247, 247], [103, 169, 207], [33, 102, 172]];
  const diverging = (v) => {
    const stops = v < 0 ? BLUES : REDS;
    const t = 2 * Math.min(1, Math.abs(v) / 127);
    const [i, f] = t < 1 ? [0, t] : [1, t - 1];
    return stops[i].map((from, c) => from + f * (stops[i + 1][c] - from));
  };
  const pixels = (view, values, pixel) => {
    const canvas = make("canvas", { width: view.width, height: view.height });
    const context = canvas.getContext("2d");
    const image = context.createImageData(view.width, view.height);
    for (let i = 0; i < view.width * view.height; i += 1) {
      const [r, g, b] = pixel(values, i);
      image.data.set([r, g, b, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  };
  const line = (curves, low, high) => {
    const canvas = make("canvas", { width: 1200, height: 160 });
    const context = canvas.getContext("2d");
    const y = (v) => 156 - (152 * (v - low)) / (high - low || 1);
    for (const [values, name] of curves) {
      context.strokeStyle = colour(name);
      context.lineWidth = 1.5;
      context.beginPath();
      values.forEach((v, i) => context.lineTo((1200 * i) / Math.max(1, values.length - 1), y(v)));
      context.stroke();
    }
    return canvas;
  };
  const named = (canvas, text, name, extra) => {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${name}: ${text}`);
    return make("div", {}, canvas, make("span", { textContent: text }), ...(extra ? [extra] : []));
  };
  const bar = (className, low, high) => make("div", {}, make("div", { className: `scale ${className}` }),
    make("span", { className: "ends" }, make("b", { textContent: digits(low, 3) }), make("b", { textContent: digits(high, 3) })));
  const showSamples = () => {
    const views = frame.samples;
    by("samples-part").hidden = views.length === 0;
    if (views.length === 0) return;
    const isLive = status.phase !== "view";
    by("samples-title").textContent = isLive ? (frame.ended ? "Last sample" : "Newest sample") : "Reconstructions";
    const whole = views.some((view) => view.original !== null);
    by("samples-note").textContent = whole
      ? "As it is learned from, after preprocessing; what its code and the newest filters give back; and the first minus the second."
      : "What codes and filters give back, before preprocessing is undone.";
    by("samples").replaceChildren(...views.map((view) => {
      const gap = view.gap === null ? "" : `, gap ${percent(view.gap)}`;
      const objective = view.objective === null ? "" : `, objective ${digits(view.objective)}`;
      const caption = make("figcaption", {}, make("strong", { textContent: view.name ? `${view.name} ` : "" }),
        make("span", { textContent: `${view.part}, ${view.nonzeros.toLocaleString("en")} non-zeros${objective}${gap}` }));
      const box = make("div", { className: `views ${view.is_signal ? "lines" : ""}` });
      const back = decode(view.reconstruction);
      const first = view.original === null ? null : decode(view.original);
      const rest = view.difference === null ? null : new Int8Array(decode(view.difference).buffer);
      if (view.is_signal) {
        const curves = [...(first ? [[first, "--muted"]] : []), [back, "--accent"]];
        box.append(named(line(curves, 0, 255), `${first ? "sample (gray) and " : ""}reconstruction (blue), from ${digits(view.low, 3)} to ${digits(view.high, 3)}`, view.name));
        if (rest) box.append(named(line([[rest, "--red"]], -127, 127), `difference, from ${digits(-view.scale, 3)} to ${digits(view.scale, 3)}`, view.name));
      } else {
        const level = (values, i) => (view.channels === 3 ? [values[3 * i], values[3 * i + 1], values[3 * i + 2]] : [values[i], values[i], values[i]]);
        const range = () => bar("gray", view.low, view.high);
        if (first) box.append(named(pixels(view, first, level), "sample", view.name, range()));
        box.append(named(pixels(view, back, level), "reconstruction", view.name, range()));
        if (rest) box.append(named(pixels(view, rest, (values, i) => diverging(values[i])), "difference", view.name, bar("", -view.scale, view.scale)));
      }
      return make("figure", { className: "triplet" }, caption, box);
    }));
  };

  // Codes and settings.
  const row = (cells, kind) => make("tr", {}, ...cells.map((text, i) => make(kind || (i ? "td" : "th"), { textContent: text })));
  const showCodes = () => {
    by("codes-part").hidden = frame.codes.length === 0;
    if (frame.codes.length === 0) return;
    by("codes").replaceChildren(row(["code", "non-zeros", "sum of magnitudes", "objective", "gap"], "th"),
      ...frame.codes.map((code) => row([code.name, digits(code.nonzeros), digits(code.l1), digits(code.objective), percent(code.gap)])));
  };
  // A bar for each filter of codes that came without their model.
  const showUse = () => {
    const { used } = frame;
    by("use-part").hidden = Boolean(frame.filters) || used.length === 0;
    if (by("use-part").hidden) return;
    const box = make("div", { className: "chart" });
    const svg = document.createElementNS(SVG, "svg");
    const [width, height, most] = [1000, 200, Math.max(...used, Number.MIN_VALUE)];
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Non-zeros of each of ${used.length} filters`);
    const read = make("p", { className: "read", textContent: `${used.length} filters, up to ${digits(most, 3)} non-zeros per code. Point at a bar for its number.` });
    const wide = width / used.length;
    used.forEach((value, k) => {
      const tall = (height * value) / most;
      const slot = draw("rect", { x: k * wide, y: 0, width: wide, height, fill: "transparent" }, svg);
      draw("rect", { class: "bar", x: k * wide + 0.1 * wide, y: height - tall, width: 0.8 * wide, height: tall, "pointer-events": "none" }, svg);
      slot.addEventListener("pointerover", () => { read.textContent = `Filter ${k}: ${digits(value, 3)} non-zeros per code.`; });
    });
    box.append(svg, read);
    by("use").replaceChildren(box);
  };
  const showAbout = () => {
    by("title").textContent = frame.about.title;
    document.title = frame.about.title;
    by("about-part").hidden = frame.about.rows.length === 0;
    if (by("about").childElementCount !== frame.about.rows.length) by("about").replaceChildren(...frame.about.rows.map((cells) => row(cells)));
  };
  const show = () => {
    showAbout();
    showStatus();
    showFigures();
    showFilters();
    showCurves();
    showSamples();
    showCodes();
    showUse();
  };
  // A hidden tab draws nothing.
  let isWaiting = false;
  const showSoon = () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => { isWaiting = false; show(); });
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (frame) show(); });

  if (embedded) {
    frame = JSON.parse(embedded);
    show();
    return;
  }
  const source = new EventSource(`events?token=${token}`);
  source.addEventListener("frame", (event) => {
    frame = JSON.parse(event.data);
    notice("");
    showSoon();
  });
  source.addEventListener("status", (event) => {
    status = JSON.parse(event.data);
    notice("");
    showStatus();
  });
  source.onerror = () => {
    // Nothing more comes of a run that is over.
    if ((frame && frame.ended) || status.phase === "failed") { source.close(); return; }
    notice("The program does not answer. It has ended, or the connection is gone; what it sent last stays here.");
  };
  const press = (path, change) => async () => {
    try {
      const answer = await fetch(path(), { method: "POST", headers: { "x-ocsc-token": token } });
      if (!answer.ok) throw new Error(await answer.text());
      change();
      showStatus();
    } catch (error) {
      notice(`The button did not work: ${error.message}`);
    }
  };
  by("pause").addEventListener("click", press(() => `pause?on=${!status.pause}`, () => { status.pause = !status.pause; }));
  by("stop").addEventListener("click", press(() => "stop", () => { status.phase = "stopping"; }));
})();
