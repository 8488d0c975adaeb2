/**
 * What is wrong with the page as it is drawn, as sentences: positions, texts and colors of whatever is in it.
 *
 * The page waits until nothing loads. `inBothThemes` asks for the contrast of texts too, in light and in dark.
 */
async (inBothThemes) => {
  const faults = [];
  const main = document.querySelector("main");
  const quoted = (text) => `“${text.trim().replace(/\s+/g, " ").slice(0, 80)}”`;

  // Waiting

  const isLoading = () => !document.querySelector("h1, .notice") || document.querySelector(".skeleton, [aria-busy=true]");
  const frame = () => new Promise(requestAnimationFrame);
  async function rest(most_ms) {
    const end = performance.now() + most_ms;
    for (let quiet = 0; quiet < 4;) {
      if (performance.now() > end) return faults.push("it still loads");
      await frame();
      quiet = isLoading() ? 0 : quiet + 1;
    }
  }
  await rest(60_000);

  // Texts, each with the element that has it and the rectangles of its lines

  const styles = new Map();
  function styleOf(element) {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  }
  const boxes = new Map();
  function boxOf(element) {
    if (!boxes.has(element)) boxes.set(element, element.getBoundingClientRect());
    return boxes.get(element);
  }
  const UNSEEN = ".hidden, .tip, [role=tooltip], option, style, script, title, dialog";
  function texts() {
    const found = [], range = document.createRange();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      if (!node.data.trim() || element.closest(UNSEEN)) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      range.selectNodeContents(node);
      const lines = [...range.getClientRects()].filter(({ width, height }) => width && height);
      if (lines.length) found.push({ text: node.data, element, lines });
    }
    return found;
  }
  const ancestors = (element) => {
    const found = [];
    for (let at = element; at && at !== main && at !== document.body; at = at.parentElement) found.push(at);
    return found;
  };

  // Text that is cut, or lies outside of its box

  const clips = (overflow) => overflow === "hidden" || overflow === "clip";
  const scrolls = (overflow) => overflow === "auto" || overflow === "scroll";
  const isInline = (element) => /^(inline|contents)$/.test(styleOf(element).display);
  function checkPlace({ text, element, lines }) {
    if (element.closest(".gutter")) return; // a tip has the whole name of a track
    const [left, right] = [Math.min(...lines.map((line) => line.left)), Math.max(...lines.map((line) => line.right))];
    for (const box of ancestors(element)) {
      const { overflowX, textOverflow } = styleOf(box);
      if (scrolls(overflowX)) return;
      if (!clips(overflowX)) continue;
      const { left: from, right: to } = boxOf(box);
      const isCut = left < from - 1 || right > to + 1 || (textOverflow === "ellipsis" && box.scrollWidth > box.clientWidth + 1);
      if (isCut) return faults.push(`${quoted(text)} is cut by ${box.className.baseVal ?? (box.className || box.tagName)}`);
    }
    const box = ancestors(element).find((ancestor) => !isInline(ancestor));
    if (!box || box instanceof SVGElement) return;
    const { left: from, right: to, top, bottom } = boxOf(box);
    const [above, below] = [Math.min(...lines.map((line) => line.top)), Math.max(...lines.map((line) => line.bottom))];
    const isClamped = element.closest(".clamped"); // a button shows the rest
    if (left < from - 2 || right > to + 2 || (!isClamped && (above < top - 5 || below > bottom + 5))) {
      faults.push(`${quoted(text)} lies outside of its box`);
    }
  }

  // Texts that overlap

  /** The part of a rectangle that no scrolling or clipping box hides. */
  function inSight({ left, right, top, bottom }, element) {
    for (const box of ancestors(element)) {
      const { overflowX, overflowY } = styleOf(box);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const edges = boxOf(box);
      [left, right] = [Math.max(left, edges.left), Math.min(right, edges.right)];
      [top, bottom] = [Math.max(top, edges.top), Math.min(bottom, edges.bottom)];
    }
    return { left: left + 1, right: right - 1, top: top + 4, bottom: bottom - 4 };
  }
  function checkOverlaps(all) {
    const lines = all.flatMap(({ text, element, lines }) =>
      lines.map((line) => ({ text, element, ...inSight(line, element) }))
    ).filter(({ left, right, top, bottom }) => left < right && top < bottom).sort((a, b) => a.top - b.top);
    const isPinned = ({ element }) => element.closest("thead, .sideways td:first-child, .sideways th:first-child");
    lines.forEach((one, at) => {
      for (const other of lines.slice(at + 1)) {
        if (other.top >= one.bottom) break;
        if (one.element === other.element || other.left >= one.right || other.right <= one.left) continue;
        if (isPinned(one) !== isPinned(other)) continue; // rows and columns scroll below these
        faults.push(`${quoted(one.text)} and ${quoted(other.text)} overlap`);
      }
    });
  }

  // Tables

  const LEAST_RANKED = 5; // rows: numbers of fewer descend by chance
  /** The number in a cell: next to none where it says "<0.1" or "≈0", none where it is missing. */
  const numberIn = (text) => parseFloat(text.replace(/^[<≈].*/, "0").replace("−", "-").replaceAll("\u202f", ""));
  /** Whether the numbers of a column descend from row to row (with `sign` −1: ascend), though the page doesn't say so. */
  function ranksRows(table, { cellIndex }, sign = 1) {
    const cells = [...table.querySelectorAll("tr.row")].map(({ cells }) => cells[cellIndex]);
    const numbers = cells.filter((cell) => cell.matches(".number")).map(({ innerText }) => numberIn(innerText));
    const known = numbers.findIndex(Number.isNaN) < 0 ? numbers : numbers.slice(0, numbers.findIndex(Number.isNaN));
    return new Set(known).size >= LEAST_RANKED && known.every((value, at) => !at || sign * value <= sign * known[at - 1]);
  }
  function checkTable(table) {
    const box = boxOf(table.closest(".scroll") ?? table), label = table.getAttribute("aria-label");
    const headings = [...table.querySelectorAll("th")];
    const isInSight = (heading) => boxOf(heading).left >= box.left - 1 && boxOf(heading).right <= box.right + 1;
    if (headings.length > 1 && boxOf(headings[1]).left > box.right - 40) {
      faults.push(`${label}: the first column leaves no room for the others`);
    }
    for (const heading of headings) {
      if (heading.ariaSort !== null && !isInSight(heading)) {
        faults.push(`${label}: the sort key ${quoted(heading.innerText)} is out of sight`);
      }
      const button = heading.querySelector("button");
      if (button && (button.scrollWidth > button.clientWidth + 1 || button.scrollHeight > button.clientHeight + 1)) {
        faults.push(`${label}: the heading ${quoted(heading.innerText)} is cut`);
      }
    }
    const ranking = headings.some(({ ariaSort }) => ariaSort) ? [] : headings.filter((heading) => ranksRows(table, heading));
    const inSight = headings.filter(isInSight); // blocks of one size are in order of time, and may end in the opposite one
    if (ranking.length && !inSight.some((heading) => ranking.includes(heading) || ranksRows(table, heading, -1))) {
      faults.push(`${label}: rows go by ${quoted(ranking[0].innerText)}, which is out of sight and isn't marked`);
    }
    const row = table.querySelector("tr.row"), cells = row ? [...row.cells] : [];
    const prose = cells.findIndex((cell) => cell.classList.contains("prose"));
    if (prose >= 0) {
      const isNumber = (cell) => cell.classList.contains("number");
      if (cells.slice(prose).some((cell) => isNumber(cell) && boxOf(cell).left < box.right - 24)) {
        faults.push(`${label}: a column of sentences stands before numbers`);
      }
      const givesWay = (cell) => isNumber(cell) && headings[cell.cellIndex].ariaSort === null;
      if (boxOf(cells[prose]).left > box.right - 140 && cells.slice(1, prose).filter(givesWay).length > 1) {
        faults.push(`${label}: numbers take the room of sentences`);
      }
      const others = cells.slice(prose + 1).filter((cell) => cell.classList.contains("prose"));
      for (const cell of others.filter((cell) => boxOf(cell).right > box.right + 2)) {
        faults.push(`${label}: the sentences ${quoted(headings[cell.cellIndex].innerText)} are out of sight`);
      }
      const narrow = cells.find((cell) =>
        cell.classList.contains("prose") && boxOf(cell).width < 140 &&
        [...table.querySelectorAll("tr.row")].some((other) => other.cells[cell.cellIndex].innerText.length > 60)
      );
      if (narrow) faults.push(`${label}: ${quoted(headings[narrow.cellIndex].innerText)} is a narrow column of sentences`);
    }
  }

  // Texts that nobody should read

  const UNREADABLE = [
    [/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b/, "is a hash"],
    [/\b_ZN\w|\benable_if|anonymous namespace|at::native::|\{lambda|^void \w|\bstd::|<[\w:]+<|<built-in /, "is a symbol"],
    [/\w (false|true)\b/, "has an argument for a name"],
    [/– −–|−– %|– %|\bNaN\b|\bundefined\b|\bInfinity\b|\[object /, "is no number"],
    [/[−+]</, "is a bound for a number"],
    [/(?:[^\s(]|\((?!…[^()]*:\d+\)))…[^\s/\\]/, "is cut in its middle"], // but `to (…forms.py:390)` is a place
  ];
  function checkReading({ text, element }) {
    if (element.closest(".full-name, code, pre, input, textarea, .sums, .selector")) return;
    for (const [pattern, fault] of UNREADABLE) if (pattern.test(text)) faults.push(`${quoted(text)} ${fault}`);
  }

  // Contrast

  const LEAST_CONTRAST = 4.5;
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const colors = new Map();
  /** Red, green and blue from 0 to 255, and alpha from 0 to 1. */
  function channels(color) {
    if (!colors.has(color)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
      colors.set(color, [red, green, blue, alpha / 255]);
    }
    return colors.get(color);
  }
  const over = ([r, g, b, alpha], below) => [r, g, b].map((channel, i) => channel * alpha + below[i] * (1 - alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((channel) => channel / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
  /** What is painted below an element's text: null below an image, which no style tells. */
  function backgroundOf(element, line) {
    const painted = [];
    const svg = element.closest("svg");
    if (svg) {
      const [x, y] = [(line.left + line.right) / 2, (line.top + line.bottom) / 2];
      const covers = (shape) => {
        const { left, right, top, bottom } = boxOf(shape);
        return left <= x && x <= right && top <= y && y <= bottom;
      };
      const before = (shape) => shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
      const below = [...svg.querySelectorAll("rect, image")].filter((shape) => before(shape) && covers(shape));
      for (const shape of below.reverse()) {
        if (shape.matches("image")) return null;
        const { fill, fillOpacity, opacity } = styleOf(shape);
        if (fill.startsWith("url")) return null;
        if (fill !== "none") painted.push([...channels(fill).slice(0, 3), channels(fill)[3] * fillOpacity * opacity]);
      }
    }
    for (let box = svg ?? element; box; box = box.parentElement) {
      const { backgroundColor, backgroundImage } = styleOf(box);
      if (backgroundImage !== "none" && !box.matches("td, th, tr")) return null; // a bar has its number next to it
      painted.push(channels(backgroundColor));
      if (painted.at(-1)[3] === 1) break;
    }
    return painted.reduceRight((below, color) => over(color, below), [255, 255, 255]);
  }
  function checkContrast(all, theme) {
    styles.clear();
    const known = new Set();
    for (const { text, element, lines } of all) {
      const background = backgroundOf(element, lines[0]);
      if (!background || element.closest(":disabled, [aria-disabled=true]")) continue;
      const { color, fill } = styleOf(element);
      const opacity = ancestors(element).reduce((product, box) => product * styleOf(box).opacity, 1);
      const [r, g, b, alpha] = channels(element instanceof SVGElement ? fill : color);
      const ratio = contrast(over([r, g, b, alpha * opacity], background), background), key = `${r},${g},${b} ${background}`;
      if (ratio >= LEAST_CONTRAST || known.has(key)) continue;
      known.add(key);
      faults.push(`${quoted(text)} has a contrast of ${ratio.toFixed(1)} in ${theme}`);
    }
  }

  const all = texts();
  all.forEach(checkPlace);
  checkOverlaps(all);
  all.filter(({ element }) => main.contains(element)).forEach(checkReading);
  document.querySelectorAll("table[role=treegrid]").forEach(checkTable);
  for (const card of main.querySelectorAll(".card")) {
    const content = [...card.childNodes].filter((node) => !node.matches?.("h2, header"));
    const isEmpty = !content.some((node) => node.textContent.trim() || node.matches?.("canvas, svg") || node.querySelector?.("canvas, svg"));
    if (isEmpty) faults.push(`the card ${quoted(card.textContent)} is empty`);
  }
  for (const input of document.querySelectorAll("input[placeholder]")) {
    const { fontSize, fontFamily, paddingLeft, paddingRight } = styleOf(input);
    pen.font = `${fontSize} ${fontFamily}`;
    const room = input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const isCut = !input.value && input.checkVisibility() && pen.measureText(input.placeholder).width > room + 1;
    if (isCut) faults.push(`the placeholder ${quoted(input.placeholder)} is cut`);
  }
  for (const failed of main.querySelectorAll(".failed")) faults.push(`failed: ${quoted(failed.textContent)}`);
  for (const box of main.querySelectorAll("h1, .scroll, .card, .tools")) {
    const { left, right } = boxOf(box);
    if (left < 0 || right > innerWidth + 1) faults.push(`${quoted(box.className || box.textContent)} goes on out of sight`);
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
  if (main.scrollWidth > main.clientWidth) faults.push(`the page's main part scrolls sideways`);
  if (inBothThemes) {
    const { style } = document.documentElement, before = style.colorScheme;
    for (const theme of ["light", "dark"]) {
      style.colorScheme = theme;
      checkContrast(all, theme);
    }
    style.colorScheme = before;
  }
  return [...new Set(faults)];
}
