/** A part of the page as one self-contained SVG, with all colors, sizes and texts, and where it is from. */

import { trace } from "../app/router.ts";
import { escapeXml } from "../format/xml.ts";

const MARGIN = 16;
const HEAD = 48;
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "fill-opacity"];
const TYPE = ["font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];

const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
const plainColors = new Map<string, string>();

/** The color as rgb(): only browsers understand oklch() and light-dark(). */
function plainColor(color: string): string {
  if (!color.includes("(")) return color;
  if (!plainColors.has(color)) {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    plainColors.set(
      color,
      alpha === 255 ? `rgb(${red},${green},${blue})` : `rgba(${red},${green},${blue},${alpha! / 255})`,
    );
  }
  return plainColors.get(color)!;
}

const attribute = ([name, value]: [string, string | number]) => `${name}="${escapeXml(String(value))}"`;
const element = (name: string, attributes: Record<string, string | number>, inside = "") =>
  `<${name} ${Object.entries(attributes).map(attribute).join(" ")}>${inside}</${name}>`;

const isHidden = (node: Element, { display, visibility, opacity }: CSSStyleDeclaration) =>
  display === "none" || visibility === "hidden" || opacity === "0" || node.matches(".hidden, .save");

/** A clone of an SVG element in which styles are attributes. */
function inlineStyles(node: Element): string {
  const style = getComputedStyle(node);
  if (isHidden(node, style)) return "";
  const own = [...node.attributes].filter(({ name }) =>
    !/^(class|style|role|tabindex|id|aria-.*|data-.*|on.*)$/.test(name)
  );
  const attributes: Record<string, string> = Object.fromEntries(own.map(({ name, value }) => [name, value]));
  for (const name of node.matches("text, tspan") ? [...STYLES, ...TYPE] : STYLES) {
    attributes[name] = plainColor(style.getPropertyValue(name));
  }
  const inside = [...node.childNodes].map((child) =>
    child instanceof Element ? inlineStyles(child) : escapeXml(child.textContent ?? "")
  );
  return element(node.tagName, attributes, inside.join(""));
}

type Box = { left: number; top: number };

function svgAt(node: SVGSVGElement, from: Box): string {
  const { left, top, width, height } = node.getBoundingClientRect();
  const place = { x: left - from.left, y: top - from.top, width, height, overflow: getComputedStyle(node).overflow };
  const view = node.getAttribute("viewBox");
  return element("svg", { ...place, ...(view && { viewBox: view }) }, [...node.children].map(inlineStyles).join(""));
}

/** What a canvas shows, as dots. */
function imageAt(node: HTMLCanvasElement, from: Box): string {
  const { left, top, width, height } = node.getBoundingClientRect();
  return element("image", { x: left - from.left, y: top - from.top, width, height, href: node.toDataURL() });
}

/** A text of the page, one element a line. */
function textAt(node: Text, from: Box): string {
  const parent = node.parentElement!;
  const style = getComputedStyle(parent);
  const lines = new Map<number, { text: string; left: number; bottom: number; height: number }>();
  const range = document.createRange();
  for (const { index, 0: word } of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.trimEnd().length);
    const { left, top, bottom, height } = range.getBoundingClientRect();
    const line = lines.get(top) ?? { text: "", left, bottom, height };
    lines.set(top, { ...line, text: line.text + word });
  }
  const type = Object.fromEntries(TYPE.slice(0, 3).map((name) => [name, style.getPropertyValue(name)]));
  return [...lines.values()].filter(({ height }) => height).map(({ text, left, bottom, height }) => {
    const place = { x: left - from.left, y: bottom - from.top - height * 0.22, fill: plainColor(style.color) };
    return element("text", { ...place, ...type }, escapeXml(text.trimEnd()));
  }).join("");
}

function boxAt(node: Element, { backgroundColor, borderRadius }: CSSStyleDeclaration, from: Box): string {
  const fill = plainColor(backgroundColor);
  const { left, top, width, height } = node.getBoundingClientRect();
  if (/,0\)$/.test(fill.replaceAll(" ", "")) || !width || !height) return "";
  return element("rect", {
    x: left - from.left,
    y: top - from.top,
    width,
    height,
    rx: parseFloat(borderRadius) || 0,
    fill,
  });
}

function drawnAt(node: Node, from: Box): string {
  if (node instanceof Text) return textAt(node, from);
  if (!(node instanceof Element)) return "";
  const style = getComputedStyle(node);
  if (isHidden(node, style)) return "";
  if (node instanceof SVGSVGElement) return svgAt(node, from);
  if (node instanceof HTMLCanvasElement) return imageAt(node, from);
  return boxAt(node, style, from) + [...node.childNodes].map((child) => drawnAt(child, from)).join("");
}

export interface Picture {
  svg: string;
  width: number;
  height: number;
}

/** The element as it is drawn now, below its title and its place. */
export function pictureOf(node: Element, title: string): Picture {
  const { left, top, width, bottom } = node.getBoundingClientRect();
  const charts = [...node.querySelectorAll("svg")].map((chart) => chart.getBoundingClientRect().bottom);
  const height = Math.max(bottom, ...charts) - top; // including what is scrolled out of view
  const { run, worker, span } = trace.peek();
  const { color, fontFamily, backgroundColor } = getComputedStyle(document.body);
  const size = { width: Math.ceil(width + 2 * MARGIN), height: Math.ceil(height + HEAD + MARGIN) };
  const line = (text: string, y: number, weight: number, opacity: number) =>
    element("text", {
      x: MARGIN,
      y,
      "font-family": fontFamily,
      "font-size": weight === 400 ? 12 : 14,
      "font-weight": weight,
      fill: plainColor(color),
      opacity,
    }, escapeXml(text));
  const inside = [
    element("rect", { ...size, fill: plainColor(backgroundColor) }),
    line(title, 22, 650, 1),
    line([run, worker, span].filter(Boolean).join(" · "), 39, 400, 0.75),
    element("g", {}, drawnAt(node, { left: left - MARGIN, top: top - HEAD })),
  ];
  const root = { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${size.width} ${size.height}`, ...size };
  return { svg: element("svg", root, inside.join("")), ...size };
}

const SHARP = 2; // pixels of the image for one of the page

/** The same as dots, sharp enough for a slide. */
export async function pngOf({ svg, width, height }: Picture): Promise<Blob> {
  const image = new Image(width * SHARP, height * SHARP);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * SHARP, height: height * SHARP });
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) =>
    canvas.toBlob((blob) => blob ? done(blob) : fail(new Error("no image")), "image/png")
  );
}
