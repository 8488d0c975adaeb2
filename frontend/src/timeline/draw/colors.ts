/** The colors of the theme as numbers that go into pixels, and a shade of its own for each name. */

import type { Labels } from "../model/labels.ts";

/** Red, green, blue: 0 to 255. */
export type Color = [number, number, number];

/** How far each shade of a category fades from the theme's color to the background. */
const SHADES = [0.1, 0.3, 0.18, 0.4, 0.24, 0.14, 0.34, 0.46];

/** How far the colors of slices outside the search results fade. */
const DIMMED = 0.8;

export interface Palette {
  isDark: boolean;
  surface: Color;
  panel: Color;
  line: Color;
  text: Color;
  quiet: Color;
  accent: Color;
  warning: Color;
  /** Bookmarks. */
  mark: Color;
  /** The activity of devices and of the host. */
  strip: { device: Color; host: Color };
  /** By category, then shade. */
  colors: Color[][];
}

export const mixed = (a: Color, b: Color, part: number): Color =>
  a.map((value, i) => Math.round(value + (b[i]! - value) * part)) as Color;

/** As a pixel of an ImageData on a machine with little end first; all that browsers run on are. */
export const pixel = ([red, green, blue]: Color): number => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

export const css = ([red, green, blue]: Color, alpha = 1): string => `rgb(${red} ${green} ${blue} / ${alpha})`;

/** How light a color looks, 0 to 1: WCAG's relative luminance. */
export function luminance(color: Color): number {
  const [red, green, blue] = color.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as Color;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Whether black letters have more contrast to it than white ones: the better of the two has 4.5 to any color. */
export const needsDarkText = (color: Color): boolean => luminance(color) > 0.18;

/** Reads the theme's colors where an element stands. */
export function paletteOf(element: HTMLElement, categories: string[]): Palette {
  const probe = document.createElement("i");
  element.append(probe);
  const read = (name: string): Color => {
    probe.style.color = name;
    return (getComputedStyle(probe).color.match(/[\d.]+/g) ?? ["0", "0", "0"]).slice(0, 3).map(Number) as Color;
  };
  const [surface, panel, line, text, quiet, accent, warning, mark] = [
    "var(--surface)",
    "var(--panel)",
    "var(--line)",
    "var(--text)",
    "var(--quiet)",
    "var(--accent)",
    "var(--warning)",
    "var(--mark)",
  ].map(read) as [Color, Color, Color, Color, Color, Color, Color, Color];
  const colors = categories.map((category) => {
    const color = read(colorOf(category));
    return SHADES.map((shade) => mixed(color, surface, shade));
  });
  const strip = {
    device: mixed(read("var(--kernel)"), surface, 0.25),
    host: mixed(read("var(--cpu-exec)"), surface, 0.25),
  };
  probe.remove();
  return { isDark: luminance(surface) < 0.2, surface, panel, line, text, quiet, accent, warning, mark, strip, colors };
}

/** The shade of a name: the same wherever it occurs. */
export function shadeOf(name: string): number {
  let hash = 2166136261;
  for (let i = 0; i < Math.min(name.length, 96); i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return ((hash >>> 7) ^ (hash >>> 19)) % SHADES.length;
}

/** Colors of all labels of a source: as pixels, dimmed, and whether letters on them are dark. */
export class LabelColors {
  full = new Uint32Array(0);
  dimmed = new Uint32Array(0);
  darkLetters = new Uint8Array(0);
  private cacheKey: unknown = null;

  constructor(private readonly labels: Labels) {}

  /** Recomputes them if the theme changed or names were loaded. */
  follow(palette: Palette, arrivals: number) {
    const key = `${palette.isDark} ${arrivals}`;
    if (this.cacheKey === key) return;
    this.cacheKey = key;
    const { texts, categories, size } = this.labels;
    const inked = (color: Color) =>
      [pixel(color), pixel(mixed(color, palette.surface, DIMMED)), Number(needsDarkText(color))] as const;
    const inks = palette.colors.map((shades) => shades.map(inked)); // few, of many labels
    const unnamed = inked(mixed(palette.line, palette.surface, 0.3));
    this.full = new Uint32Array(size);
    this.dimmed = new Uint32Array(size);
    this.darkLetters = new Uint8Array(size);
    for (let label = 0; label < size; label++) {
      const text = texts[label];
      const ink = text === undefined ? unnamed : inks[categories[label]!]![shadeOf(text)]!;
      this.full[label] = ink[0];
      this.dimmed[label] = ink[1];
      this.darkLetters[label] = ink[2];
    }
  }
}

const CATEGORY_COLORS: Record<string, string> = {
  Kernel: "var(--kernel)",
  Communication: "var(--communication)",
  Memcpy: "var(--memcpy)",
  Memset: "var(--memset)",
  Step: "var(--step)",
  DataLoader: "var(--dataloader)",
  Annotation: "var(--annotation)",
  Operator: "var(--cpu-exec)",
  Runtime: "var(--runtime)",
  Module: "var(--module)",
  Python: "var(--python)",
  Wait: "var(--wait)",
};

export const colorOf = (category: string): string => CATEGORY_COLORS[category] ?? "var(--other)";
