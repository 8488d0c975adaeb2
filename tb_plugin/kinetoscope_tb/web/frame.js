// Runs before the page in a frame without a server: what the page asks goes to the window around it, by a port.
{
  const LONGEST_MS = 60_000;
  const LISTED_FOR_MS = 60_000; // the page asks every five seconds, and shows a kernel as busy with it
  const port = new Promise((resolve) => {
    addEventListener("message", ({ source, ports }) => source === parent && ports[0] && resolve(ports[0]));
  });
  const waiting = new Map();
  let count = 0, listing = null;
  port.then((port) => port.onmessage = ({ data: { id, answer } }) => waiting.get(id)?.(answer));

  globalThis.fetch = async (address, { method = "GET", headers = {}, body, signal } = {}) => {
    const { pathname, search } = new URL(address, document.baseURI), id = ++count;
    const isListing = pathname === "/runs";
    if (isListing && listing?.until > Date.now()) return new Response(listing.text);
    let timer;
    try {
      const answer = new Promise((resolve, reject) => {
        waiting.set(id, resolve);
        signal?.addEventListener("abort", () => reject(signal.reason));
        timer = setTimeout(() => reject(new Error("the notebook's kernel is busy or has ended")), LONGEST_MS);
      });
      (await port).postMessage({ id, request: { method, target: pathname + search, headers, body } });
      const { status, headers: received, content } = await answer;
      if (isListing) {
        const text = new TextDecoder().decode(content), isWhole = text.includes('"scanning":false');
        listing = isWhole ? { text, until: Date.now() + LISTED_FOR_MS } : null;
      }
      return new Response(content, { status, headers: received });
    } finally {
      clearTimeout(timer);
      waiting.delete(id);
    }
  };

  // A link to a file of the server that isn't there.
  addEventListener("click", (event) => {
    const link = event.target.closest("a[download]");
    if (!link?.href.startsWith(document.baseURI)) return;
    event.preventDefault();
    void (async () => {
      const file = document.createElement("a");
      file.href = URL.createObjectURL(await (await fetch(link.href)).blob());
      file.download = link.download;
      file.click();
      URL.revokeObjectURL(file.href);
    })();
  });

  location.hash = document.querySelector("meta[name=address]").content;
  history.pushState = history.replaceState = () => {}; // browsers refuse to write the address of `srcdoc`
}
