/** What the surrounding TensorBoard page offers: its color theme, its address, its reload button. */

let page: Window = window;
try {
  void window.parent.document; // throws when the parent is of another origin
  page = window.parent;
} catch {
  // The page around is not TensorBoard: this one is the page.
}

const plugin = new URLSearchParams(location.search).get("name") ?? "pytorch_profiler";
const prefix = `p.${plugin}.`;

/** Follows TensorBoard's dark mode, or the system's where there is no TensorBoard around. */
export function followTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const body = page.document.body;
  const apply = () => {
    const dark = page === window ? system.matches : body.classList.contains("dark-mode");
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  };
  new MutationObserver(apply).observe(body, { attributeFilter: ["class"] });
  system.addEventListener("change", apply);
  apply();
}

export type Address = Record<string, string>;

const hash = () => page.location.hash.slice(1);

/** Whether the tab of this plugin is the one in front; TensorBoard keeps the frames of the others alive. */
export const isInFront = (): boolean => page === window || ["", plugin].includes(hash().split("&")[0]!);

/** Our part of the page's address: `#plugin&p.plugin.key=value`, as TensorBoard's own plugins have it. */
export function readAddress(): Address {
  const ours = [...new URLSearchParams(hash())].filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(ours.map(([key, value]) => [key.slice(prefix.length), value]));
}

function target(address: Address): string {
  const others = hash().split("&").slice(1).filter((pair) => pair && !pair.startsWith(prefix));
  const ours = Object.entries(address).filter(([, value]) => value).map(([key, value]) =>
    `${prefix}${encodeURIComponent(key)}=${encodeURIComponent(value)}`
  );
  // Not the hash alone: where the page around is none, a base address would turn it into another page's.
  return `${page.location.pathname}${page.location.search}#${[plugin, ...ours, ...others].join("&")}`;
}

let pending: (() => void) | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

function settle() {
  clearTimeout(timer);
  pending?.();
  pending = null;
}

/** Writes our part of the address, and leaves the parts of other plugins as they are. */
export function writeAddress(address: Address, how: "push" | "replace") {
  if (!isInFront()) return;
  // The state object belongs to TensorBoard's router, which looks for it when the user goes back.
  const { history } = page;
  if (how === "push") {
    settle();
    if (!page.location.href.endsWith(target(address))) history.pushState(history.state, "", target(address));
  } else {
    // Browsers refuse many changes in a row, and a filter changes with each key.
    clearTimeout(timer);
    pending = () => isInFront() && history.replaceState(history.state, "", target(address));
    timer = setTimeout(settle, 120);
  }
}

/** The whole address, with all changes. */
export function currentUrl(): string {
  settle();
  return page.location.href;
}

/** Calls `onChange` when the user went back or forward, or wrote another address. */
export function onAddressChange(onChange: () => void) {
  const follow = () => {
    clearTimeout(timer);
    pending = null;
    if (isInFront()) onChange();
  };
  page.addEventListener("popstate", follow);
  page.addEventListener("hashchange", follow);
}

/** Calls `onChange` when TensorBoard's reload button or timer fires; the wire format is that of its guest library. */
export function onReload(onChange: () => void) {
  if (page === window) return;
  const { port1, port2 } = new MessageChannel();
  page.postMessage("experimental.bootstrap", location.origin, [port2]);
  port1.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "experimental.DataReloaded") onChange();
    if (!message.isReply) port1.postMessage(JSON.stringify({ ...message, payload: null, isReply: true }));
  };
}
